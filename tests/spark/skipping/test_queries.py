"""Where queries come from: frames, SQL, views, tables, subqueries, joins, caches, writes, streams."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812

from lakebloom import BloomIndexConfig, Lakebloom
from tests.spark.skipping.letters import BY_LETTER, letters, write_letters
from tests.spark.skipping.support import (
    EXACT,
    ask,
    callbacks,
    configured,
    file_counts,
    files_read,
    plan_of,
    rows,
    size_of,
    skipping,
)
from tests.spark.support import fresh_name, keys, write

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("queries")


@pytest.fixture(scope="module")
def lake(spark: SparkSession, home: Path) -> Lakebloom:
    lake = Lakebloom(spark, home / "indexes")
    lake.create_index(write_letters(home / "t"), BY_LETTER)
    return lake


@pytest.fixture(scope="module")
def view(spark: SparkSession, home: Path, lake: Lakebloom) -> Iterator[str]:
    spark.read.parquet(str(home / "t")).createOrReplaceTempView("letters")
    spark.sql("SELECT * FROM VALUES (1, 'x'), (3, 'y'), (NULL, 'z') AS t(k, w)").createOrReplaceTempView("small")
    yield "letters"
    spark.catalog.dropTempView("letters")
    spark.catalog.dropTempView("small")


QUERIES = {
    "SELECT * FROM letters WHERE k = 1": "af",
    "SELECT count(*), sum(v) FROM letters WHERE k = 1": "af",
    "SELECT v FROM (SELECT k AS j, v FROM letters) WHERE j = 3": "b",
    "SELECT * FROM letters a WHERE a.k = 3 ORDER BY v LIMIT 5": "b",
    "WITH c AS (SELECT * FROM letters WHERE k = 3) SELECT * FROM c WHERE v > 0": "b",
    "SELECT * FROM letters WHERE k = (SELECT max(k) FROM letters WHERE s = 'five')": "abcdefc",
    "SELECT w FROM small WHERE k IN (SELECT k FROM letters WHERE s = 'three')": "b",
    "SELECT w FROM small WHERE EXISTS (SELECT * FROM letters WHERE letters.k = small.k AND s = 'one')": "a",
    "SELECT w FROM small WHERE NOT EXISTS (SELECT * FROM letters WHERE letters.k = small.k AND s = 'one')": "a",
    "SELECT w FROM small WHERE k NOT IN (SELECT k FROM letters WHERE s = 'one')": "a",
    "SELECT k FROM letters WHERE k = 1 UNION ALL SELECT n FROM letters WHERE n = 5": "afc",
    "SELECT k FROM letters WHERE k = 1 INTERSECT SELECT k FROM letters WHERE s = 'one'": "afa",
    "SELECT k FROM letters WHERE k = 1 EXCEPT SELECT k FROM letters WHERE s = 'one'": None,
    "SELECT * FROM letters l JOIN small USING (k) WHERE l.s = 'three'": "b",
    "SELECT * FROM small LEFT JOIN letters l ON small.k = l.k AND l.s = 'three'": "b",
    "SELECT * FROM small FULL JOIN letters l ON small.k = l.k AND l.s = 'three'": "abcdef",
    "SELECT * FROM letters l LEFT ANTI JOIN small ON small.k = l.k WHERE l.s = 'two'": "a",
    "SELECT * FROM letters a JOIN letters b ON a.k = b.k WHERE a.k = 3": "bb",
    "SELECT s, count(*) FROM letters GROUP BY s HAVING s = 'one'": "a",
    "SELECT *, row_number() OVER (PARTITION BY k ORDER BY v) FROM letters WHERE k = 5": "c",
    "SELECT * FROM letters WHERE k = 5 AND rand() < 2": "c",
    "SELECT * FROM letters TABLESAMPLE (100 PERCENT) WHERE k = 5": None,
}


@pytest.mark.usefixtures("view")
@pytest.mark.parametrize("query", QUERIES)
def test_sql(spark: SparkSession, lake: Lakebloom, query: str) -> None:
    expected = QUERIES[query]
    read = letters(ask(lake, lambda: spark.sql(query)))
    assert expected is None or sorted(read) == sorted(expected)


@pytest.fixture(scope="module")
def odd(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Lakebloom, Path]:
    home = tmp_path_factory.mktemp("odd")
    table = home / "a b%20+#=[x]{ü☃},'"
    for number, name in enumerate(["a b", "50%", "100%20", "a+b", "a#b", "k=v", "ünï ☃", "[x]", "{y}", "it's", "q?"]):
        write(table / f"{name}.parquet", {"k": [number]})
    lake = Lakebloom(spark, home / "indexes")
    lake.create_index(table, BloomIndexConfig("x", ["k"], fpp=EXACT))
    return lake, table


@pytest.fixture(scope="module")
def parted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("parted")
    for day in (1, 2, 3):
        keys(home / f"t/day={day}", [day * 10], [day * 10 + 1], [7])
    return home / "t"


@pytest.fixture(scope="module")
def by_day(spark: SparkSession, parted: Path) -> Lakebloom:
    lake = Lakebloom(spark, parted.parent / "indexes")
    lake.create_index(parted, BloomIndexConfig("x", ["k"], fpp=EXACT))
    return lake


class TestFrames:
    def test_a_filter_on_a_renamed_column(self, spark: SparkSession, lake: Lakebloom, home: Path) -> None:
        frame = spark.read.parquet(str(home / "t"))
        renamed = frame.withColumnRenamed("k", "j").select("j", (F.col("v") + 1).alias("k"))
        assert letters(ask(lake, lambda: renamed.where(F.col("j") == 3))) == "b"
        assert letters(ask(lake, lambda: renamed.where("k = 3"))) == "abcdef"

    def test_a_chain_of_filters(self, spark: SparkSession, lake: Lakebloom, home: Path) -> None:
        frame = spark.read.parquet(str(home / "t"))
        chained = lambda: frame.where("k = 1").select("k", "s", "v").where(F.col("s").isin("one")).where("v > 0")  # noqa: E731
        assert letters(ask(lake, chained)) == "a"

    def test_what_spark_knows_of_files(self, spark: SparkSession, lake: Lakebloom, home: Path) -> None:
        frame = spark.read.parquet(str(home / "t")).select("*", "_metadata.file_name", F.col("_metadata.row_index"))
        assert letters(ask(lake, lambda: frame.where("k = 1 AND file_name = 'f.parquet'"))) in ("f", "af")
        assert letters(ask(lake, lambda: frame.where("k = 4 AND row_index = 1"))) == "b"

    def test_a_cached_frame(self, spark: SparkSession, lake: Lakebloom, home: Path) -> None:
        expected = rows(spark.read.parquet(str(home / "t")).where("k = 1"))
        with skipping(lake):
            cached = spark.read.parquet(str(home / "t")).where("k = 1").cache()
            try:
                assert rows(cached) == expected
                assert letters(files_read(cached)) == "af"
                before = callbacks(lake)
                assert rows(cached.where("s = 'one'")) == [row for row in expected if "'one'" in row]
                assert callbacks(lake) == before, "what is cached is not planned again"
            finally:
                cached.unpersist()

    def test_a_frame_planned_before_stays_as_it_was(self, spark: SparkSession, lake: Lakebloom, home: Path) -> None:
        before = spark.read.parquet(str(home / "t")).where("k = 1")
        assert letters(files_read(before)) == "abcdef"
        with skipping(lake):
            assert letters(files_read(before)) == "abcdef"
            after = spark.read.parquet(str(home / "t")).where("k = 1")
            assert letters(files_read(after)) == "af"
        assert rows(after) == rows(before)
        assert letters(files_read(after)) == "af"

    def test_equal_scans_are_read_once(self, spark: SparkSession, lake: Lakebloom, view: str) -> None:
        half = "SELECT k, count(*) FROM letters {0} WHERE {0}.k = 1 AND {0}.v + 1 > 0 GROUP BY k"
        query = f"{half.format('a')} UNION ALL {half.format('b')}"
        assert letters(ask(lake, lambda: spark.sql(query))) == "af"
        with skipping(lake):
            frame = spark.sql(query)
            frame.collect()
            assert "ReusedExchange" in plan_of(frame)
            other = spark.sql(query.replace("b.k = 1", "b.k = 3"))
            other.collect()
            assert "ReusedExchange" not in plan_of(other)


class TestPaths:
    def test_odd_names(self, spark: SparkSession, odd: tuple[Lakebloom, Path]) -> None:
        lake, table = odd
        escaped = "".join(f"\\{c}" if c in "[]{}*?\\" else c for c in str(table))
        frame = spark.read.parquet(escaped)
        with skipping(lake):
            for file in table.iterdir():
                (number,) = pa.parquet.read_table(file)["k"].to_pylist()
                assert files_read(frame.where(f"k = {number}")) == [file.name]
        assert ask(lake, lambda: frame.where("k IN (1, 7)")) == ["50%.parquet", "[x].parquet"]

    @pytest.mark.parametrize(
        ("path", "files"),
        [("t", "af"), ("t/", "af"), ("t/a.parquet", "a"), ("t/b.parquet", ""), ("t/{a,b,c}.parquet", "a"), ("*", "af")],
    )
    def test_parts_of_the_table(self, spark: SparkSession, lake: Lakebloom, home: Path, path: str, files: str) -> None:
        if path == "*":
            path = "[t]"
        assert letters(ask(lake, lambda: spark.read.parquet(f"{home}/{path}").where("k = 1"))) == files

    def test_files_that_are_named_twice(self, spark: SparkSession, lake: Lakebloom, home: Path) -> None:
        twice = [f"{home}/t/a.parquet", f"{home}/t/a.parquet", f"{home}/t/b.parquet"]
        ask(lake, lambda: spark.read.parquet(*twice).where("k = 1"))

    def test_more_than_the_table(self, spark: SparkSession, lake: Lakebloom, home: Path, tmp_path: Path) -> None:
        other = keys(tmp_path / "other", [1], [2])
        read = lambda: spark.read.parquet(str(home / "t"), str(other)).where("k = 1")  # noqa: E731
        assert ask(lake, read) == ["0.parquet", "1.parquet", "a.parquet", "f.parquet"]

    def test_an_index_of_some_files(self, spark: SparkSession, tmp_path: Path) -> None:
        table = keys(tmp_path / "t", [1], [2], [3])
        some = Lakebloom(spark, tmp_path / "indexes")
        some.create_index(f"{table}/[01].parquet", BloomIndexConfig("x", ["k"], fpp=EXACT))
        assert ask(some, lambda: spark.read.parquet(str(table)).where("k = 1")) == ["0.parquet", "2.parquet"]

    def test_a_sibling_with_the_same_beginning(self, spark: SparkSession, lake: Lakebloom, home: Path) -> None:
        other = keys(home / "t2", [1], [2])
        before = callbacks(lake)
        assert len(ask(lake, lambda: spark.read.parquet(str(other)).where("k = 1"))) == 2
        assert callbacks(lake) == before


class TestPartitions:
    @pytest.fixture(params=["path", "table"])
    def table(self, request: pytest.FixtureRequest, spark: SparkSession, parted: Path, database: str) -> Any:
        if request.param == "path":
            return lambda: spark.read.parquet(str(parted))
        name = f"{database}.parted"
        spark.sql(f"CREATE TABLE {name} (k BIGINT, day INT) USING parquet PARTITIONED BY (day) LOCATION '{parted}'")
        spark.sql(f"MSCK REPAIR TABLE {name}")
        return lambda: spark.table(name)

    def test_with_a_key(self, by_day: Lakebloom, table: Any) -> None:
        for predicate, files in {
            "k = 10": 1,
            "k = 10 AND day = 1": 1,
            "k = 10 AND day = 2": 0,
            "k = 7 AND day >= 2": 2,
            "k = 7 OR day = 2": 9,
            "k = 7 AND (day = 2 OR day = 3)": 2,
            "day = 2": 3,
            "k IS NULL AND day = 1": 0,
            "k = 7 AND day + 1 = 3": 1,
        }.items():
            assert len(ask(by_day, lambda: table().where(predicate))) == files, predicate  # noqa: B023

    def test_a_partition_by_its_own_path(self, spark: SparkSession, by_day: Lakebloom, parted: Path) -> None:
        assert len(ask(by_day, lambda: spark.read.parquet(f"{parted}/day=1").where("k = 10"))) == 1
        based = spark.read.option("basePath", str(parted))
        assert len(ask(by_day, lambda: based.parquet(f"{parted}/day=1").where("k = 7 AND day = 1"))) == 1

    def test_a_partition_column_that_the_files_have_too(self, spark: SparkSession, tmp_path: Path) -> None:
        """Spark believes the path, a filter would believe the file."""
        for day in (1, 2):
            write(tmp_path / f"t/day={day}/0.parquet", {"k": [day], "day": pa.array([9 - day], pa.int32())})
        lake = Lakebloom(spark, tmp_path / "indexes")
        file = f"{tmp_path}/t/day=1/0.parquet"
        schema = "k BIGINT, day INT"
        lake.create_index(spark.read.schema(schema).parquet(file), BloomIndexConfig("x", ["k"], fpp=EXACT))
        for predicate in ("day = 8", "day = 1", "day = 7", "k = 1 AND day = 1"):
            ask(lake, lambda: spark.read.parquet(str(tmp_path / "t")).where(predicate))  # noqa: B023
            ask(lake, lambda: spark.read.schema(schema).parquet(file).where(predicate))  # noqa: B023

    def test_dynamic_pruning(self, spark: SparkSession, by_day: Lakebloom, table: Any) -> None:
        days = spark.createDataFrame([(2, "x"), (3, "y")], "day INT, w STRING")

        def joined() -> DataFrame:
            return table().where("k = 7").join(days.where("w = 'x'").hint("broadcast"), "day")

        expected = rows(joined())
        with configured(spark, {"spark.sql.optimizer.dynamicPartitionPruning.reuseBroadcastOnly": "false"}):
            with skipping(by_day):
                frame = joined()
                assert rows(frame) == expected
            assert "dynamicpruning" in plan_of(frame)
            assert file_counts(frame) == [1], "of nine files three hold the key, and one of them is of the day"


class TestTables:
    def test_a_managed_table(self, spark: SparkSession, database: str, tmp_path: Path) -> None:
        name = f"{database}.t"
        spark.range(0, 30, 1, 3).withColumnRenamed("id", "k").write.saveAsTable(name)
        lake = Lakebloom(spark, tmp_path / "indexes")
        lake.create_index(name, BloomIndexConfig("x", ["k"], fpp=EXACT))
        assert len(ask(lake, lambda: spark.table(name).where("k = 15"))) == 1
        assert len(ask(lake, lambda: spark.sql(f"SELECT * FROM {name} WHERE k IN (1, 15, 99)"))) == 2
        spark.sql(f"CREATE VIEW {database}.v AS SELECT k + 1 AS j, k FROM {name}")
        assert len(ask(lake, lambda: spark.table(f"{database}.v").where("k = 15"))) == 1
        assert len(ask(lake, lambda: spark.table(f"{database}.v").where("j = 15"))) == 3
        spark.sql(f"INSERT INTO {name} VALUES (15)")
        assert len(ask(lake, lambda: spark.table(name).where("k = 15"))) == 2
        spark.sql(f"TRUNCATE TABLE {name}")
        spark.sql(f"INSERT INTO {name} VALUES (15)")
        assert len(ask(lake, lambda: spark.table(name).where("k = 15"))) == 1

    def test_a_bucketed_table(self, spark: SparkSession, database: str, tmp_path: Path) -> None:
        name = f"{database}.b"
        numbers = spark.range(0, 40, 1, 2).selectExpr("id AS k", "id % 7 AS m")
        numbers.write.bucketBy(4, "m").sortBy("m").saveAsTable(name)
        lake = Lakebloom(spark, tmp_path / "indexes")
        lake.create_index(name, BloomIndexConfig("x", ["k"], fpp=EXACT))
        assert len(ask(lake, lambda: spark.table(name).where("k = 15"))) == 1
        assert len(ask(lake, lambda: spark.table(name).where("k = 15 AND m = 1"))) <= 1
        both = lambda: spark.table(name).where("k IN (15, 16)").join(spark.table(name).withColumnRenamed("k", "j"), "m")  # noqa: E731
        with configured(spark, {"spark.sql.autoBroadcastJoinThreshold": "-1"}):
            ask(lake, both)

    def test_statistics_are_those_of_the_files_kept(self, spark: SparkSession, database: str, tmp_path: Path) -> None:
        name = f"{database}.a"
        spark.range(0, 3000, 1, 3).withColumnRenamed("id", "k").write.saveAsTable(name)
        spark.sql(f"ANALYZE TABLE {name} COMPUTE STATISTICS FOR ALL COLUMNS")
        lake = Lakebloom(spark, tmp_path / "indexes")
        lake.create_index(name, BloomIndexConfig("x", ["k"], fpp=EXACT))
        query = f"SELECT * FROM {name} WHERE k = 15"
        full = size_of(spark.sql(query))
        for cbo in ("false", "true"):
            with configured(spark, {"spark.sql.cbo.enabled": cbo}), skipping(lake):
                assert size_of(spark.sql(query)) <= full / 2

    def test_a_side_that_becomes_small_is_broadcast(self, spark: SparkSession, tmp_path: Path) -> None:
        for number in range(10):
            values = list(range(number * 1000, (number + 1) * 1000))
            write(
                tmp_path / f"t/{number}.parquet", {"k": values, "v": values}, compression="none", use_dictionary=False
            )
        lake = Lakebloom(spark, tmp_path / "indexes")
        lake.create_index(tmp_path / "t", BloomIndexConfig("x", ["k"], fpp=EXACT))
        read = spark.read.parquet(str(tmp_path / "t"))
        threshold = sum(file.stat().st_size for file in (tmp_path / "t").iterdir()) // 4

        def joined() -> DataFrame:
            return read.join(read.where("k = 5").withColumnRenamed("k", "j"), "v")

        settings = {"spark.sql.autoBroadcastJoinThreshold": str(threshold), "spark.sql.adaptive.enabled": "false"}
        with configured(spark, settings):
            assert "SortMergeJoin" in plan_of(joined())
            with skipping(lake):
                assert "BroadcastHashJoin" in plan_of(joined())
            ask(lake, joined)


class TestWrites:
    def test_insert_and_create(self, spark: SparkSession, lake: Lakebloom, database: str, view: str) -> None:
        with skipping(lake):
            before = callbacks(lake)
            spark.sql(f"CREATE TABLE {database}.copy USING parquet AS SELECT k, s FROM letters WHERE k = 1")
            assert callbacks(lake) > before
            spark.sql(f"INSERT INTO {database}.copy SELECT k, s FROM letters WHERE s = 'five'")
            spark.sql(f"INSERT INTO {database}.copy SELECT k, s FROM letters WHERE v = 3")
        assert sorted(spark.table(f"{database}.copy").toPandas()["s"]) == ["five", "one", "three", "ünï"]

    def test_a_table_over_itself(self, spark: SparkSession, database: str, tmp_path: Path) -> None:
        """The rows that a partition keeps are read from the files that it replaces."""
        name = f"{database}.self"
        spark.sql(f"CREATE TABLE {name} (k BIGINT, p INT) USING parquet PARTITIONED BY (p)")
        spark.sql(f"INSERT INTO {name} VALUES (1, 1), (2, 1)")
        spark.sql(f"INSERT INTO {name} VALUES (3, 1), (4, 2)")
        lake = Lakebloom(spark, tmp_path / "indexes")
        lake.create_index(name, BloomIndexConfig("x", ["k"], fpp=EXACT))
        with skipping(lake):
            kept = spark.table(name).where("k = 3").localCheckpoint()
            kept.select("k", "p").write.mode("overwrite").insertInto(name)
            assert rows(spark.table(name)) == ["Row(k=3, p=1)"]


class TestStreams:
    def test_a_streaming_source_is_left_alone(self, spark: SparkSession, tmp_path: Path) -> None:
        table = keys(tmp_path / "t", [1], [2])
        lake = Lakebloom(spark, tmp_path / "indexes")
        lake.create_index(table, BloomIndexConfig("x", ["k"], fpp=EXACT))
        name = fresh_name()
        with skipping(lake):
            stream = spark.readStream.schema("k BIGINT").parquet(str(table)).where("k = 1").writeStream
            query = stream.format("memory").queryName(name).trigger(availableNow=True).start()
            query.awaitTermination()
            assert callbacks(lake) == 0
        assert rows(spark.table(name)) == ["Row(k=1)"]
        spark.catalog.dropTempView(name)

    def test_a_second_generation_of_sources(self, spark: SparkSession, lake: Lakebloom, home: Path) -> None:
        """Sources of version 2 have no file index to exchange: everything is read."""
        with configured(spark, {"spark.sql.sources.useV1SourceList": ""}):
            read = lambda: spark.read.parquet(str(home / "t")).where("k = 1")  # noqa: E731
            assert ask(lake, read) == []
            assert len(rows(read())) == 2
