"""``spark.read.format("lakebloom")``: the rows of Spark's own reader, and only the units that can match are read."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import datasource
from pyspark.sql.types import StructType

from lakebloom import BloomIndexConfig, Lakebloom, col, errors
from lakebloom.predicate.tree import to_json
from lakebloom.spark.data_source.source import LakebloomSource, ReadTask
from lakebloom.spark.versions import loses_rows_without_columns
from tests.spark.support import fresh_name, keys, write
from tests.storage.conftest import BUCKET, s3_endpoint, s3_options  # noqa: F401
from tests.test_package import ROOT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from lakebloom.predicate.tree import Predicate

EVERY_TYPE = """
    id, id % 2 = 0 AS bool, CAST(id - 50 AS TINYINT) AS tiny, CAST(id * 300 AS SMALLINT) AS small,
    CAST(id * 1000000 AS INT) AS i, id * 10000000000 AS big,
    CASE id WHEN 1 THEN FLOAT('NaN') WHEN 2 THEN FLOAT('-0.0') WHEN 3 THEN FLOAT('Infinity') ELSE id / 3F END AS f,
    CASE id WHEN 1 THEN DOUBLE('NaN') WHEN 2 THEN -0.0D WHEN 3 THEN DOUBLE('-Infinity') ELSE id / 3D END AS d,
    CAST(id / 7 AS DECIMAL(5,2)) AS dec5, CAST(id / 7 AS DECIMAL(15,3)) AS dec15,
    CAST(id / 7 AS DECIMAL(38,10)) AS dec38,
    date_add(DATE'1500-01-01', CAST(id * 5000 AS INT)) AS day,
    TIMESTAMP'1500-01-01 01:02:03.456789' + make_dt_interval(CAST(id * 5000 AS INT)) AS ts,
    TIMESTAMP_NTZ'1500-01-01 01:02:03.456789' + make_dt_interval(CAST(id * 5000 AS INT)) AS ntz,
    concat('ä\\u0000', id) AS s, encode(CAST(id AS STRING), 'UTF-16') AS b,
    CASE WHEN id % 5 > 0 THEN named_struct('a', nullif(id, 7), 'n', named_struct('x', CAST(id AS STRING))) END AS st,
    CASE id % 4 WHEN 0 THEN array() WHEN 1 THEN array(id, NULL) WHEN 2 THEN array(id) END AS l,
    CASE WHEN id % 3 > 0 THEN array(named_struct('d', date_add(DATE'2020-01-01', CAST(id AS INT)), 't', array('x'))) END
        AS ls,
    CASE id % 3 WHEN 0 THEN map() WHEN 1 THEN map('a', CAST(id AS DECIMAL(9,2)), 'b', NULL) END AS m,
    map(id, map('k', TIMESTAMP'2020-01-01 00:00:00')) AS mm, NULLIF(id % 3, 0) AS k,
    named_struct('x.y', id) AS `odd.name`
"""


PATIENT = {"timeoutMs": "600000"}
"""No test depends on time: the source has a limit of its own, after which it reads all files."""

has_push_down = pytest.mark.skipif(
    not hasattr(datasource, "EqualTo"), reason="needs conditions that Spark pushes to data sources (Spark 4.1)"
)


def through(spark: SparkSession, index: str, **options: str) -> DataFrame:
    return spark.read.format("lakebloom").options(**{**PATIENT, **options}).load(index)


def rows(frame: DataFrame, *order: str) -> list[str]:
    """As text, in which NaN equals NaN and -0.0 is not 0.0."""
    return [repr(row) for row in frame.orderBy(*(order or ("id",))).collect()]


def tasks(lake: Lakebloom, index: str, predicate: Predicate | None = None, **options: str) -> list[ReadTask]:
    where = {} if predicate is None else {"where": to_json(predicate).decode()}
    made = LakebloomSource({"path": index, "location": lake.location, **PATIENT, **where, **options})
    return made.reader(made.schema()).partitions()


def read_groups(lake: Lakebloom, index: str, predicate: Predicate | None = None) -> dict[str, tuple[int, ...] | None]:
    found = [read for task in tasks(lake, index, predicate) for read in task.reads]
    return {Path(read.file.uri).name: read.row_groups for read in found}


@pytest.mark.parametrize("timestamps", ["INT96", "TIMESTAMP_MICROS"])
def test_every_type_is_read_as_spark_reads_it(
    spark: SparkSession, source: Lakebloom, tmp_path: Path, timestamps: str
) -> None:
    path = str(tmp_path / "t")
    spark.conf.set("spark.sql.parquet.outputTimestampType", timestamps)
    try:
        spark.range(0, 100, 1, 3).selectExpr(*_columns(EVERY_TYPE)).write.parquet(path)
    finally:
        spark.conf.unset("spark.sql.parquet.outputTimestampType")
    source.create_index(path, BloomIndexConfig("all", ["id", "s", "st.a"], fpp=1e-6))
    expected, found = spark.read.parquet(path), through(spark, "all")
    assert found.schema == expected.schema
    assert rows(found) == rows(expected)
    condition = "s = concat('ä\\u0000', 70) OR st.a = 33 OR isnan(f)"
    assert rows(found.where(condition)) == rows(expected.where(condition))
    chosen = source.read("all", col("st.a") == 33, ["s", "id"])
    assert chosen.columns == ["s", "id"]
    assert rows(chosen) == rows(expected.where("st.a = 33").select("s", "id"))


def _columns(text: str) -> list[str]:
    """Cut a list of expressions at its commas outside of parentheses."""
    parts, depth = [""], 0
    for character in text:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def test_files_of_older_schemas(spark: SparkSession, source: Lakebloom, tmp_path: Path) -> None:
    table = tmp_path / "t"
    inner = pa.struct([("y", pa.int32()), ("X", pa.int32())])
    old = {
        "ID": pa.array([1, 2], pa.int32()),
        "f": pa.array([0.1, None], pa.float32()),
        "s": pa.array([{"y": 1, "X": 2}, None], inner),
        "l": pa.array([[{"y": 1, "X": 2}], []], pa.list_(inner)),
        "u": pa.array([1, 255], pa.uint8()),
        "w": pa.array(["a", "b"]).dictionary_encode(),
        "n": pa.array([1, 2], pa.int32()),
    }
    write(table / "old.parquet", old)
    schema = """id BIGINT, f DOUBLE, s STRUCT<x: BIGINT, z: STRING, y: BIGINT>, l ARRAY<STRUCT<x: INT, z: INT>>,
        u SMALLINT, w STRING, n DECIMAL(12,1), missing ARRAY<MAP<STRING, INT>>"""
    null = "CAST(NULL AS ARRAY<STRUCT<x: INT, z: INT>>)"
    new = f"id, 0.5D AS f, named_struct('x', id, 'z', 'new', 'y', id) AS s, {null} AS l"
    more = "7S AS u, 'c' AS w, 1.5BD AS n, array(map('a', 1)) AS missing"
    frame = spark.range(10, 12, 1, 1).selectExpr(*_columns(f"{new}, {more}"))
    frame.withColumn("n", frame.n.cast("decimal(12,1)")).write.mode("append").parquet(str(table))
    expected = spark.read.schema(schema).parquet(str(table))
    source.create_index(expected, BloomIndexConfig("evolved", ["id"], fpp=1e-6))
    found = through(spark, "evolved")
    assert found.schema == expected.schema
    assert rows(found) == rows(expected)
    assert rows(source.read("evolved", col("id") == 2)) == rows(expected.where("id = 2"))


def test_partition_columns(spark: SparkSession, source: Lakebloom, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    frame = spark.range(0, 8, 1, 1).selectExpr(
        "id", "id % 2 AS p", "CASE WHEN id < 6 THEN concat('a/ %', id % 3) END AS q", "DATE'2024-01-01' AS day"
    )
    frame.write.partitionBy("p", "q", "day").parquet(path)
    source.create_index(path, BloomIndexConfig("parts", ["id"], fpp=1e-6))
    expected, found = spark.read.parquet(path), through(spark, "parts")
    assert found.schema == expected.schema
    assert rows(found) == rows(expected)
    assert rows(through(spark, "parts", columns="q, p"), "p", "q") == rows(expected.select("q", "p"), "p", "q")


def test_char_columns_have_their_blanks(spark: SparkSession, source: Lakebloom, database: str, tmp_path: Path) -> None:
    name = f"{database}.{fresh_name()}"
    spark.sql(f"CREATE TABLE {name} (id BIGINT, c CHAR(3), v VARCHAR(9)) USING parquet LOCATION '{tmp_path / 't'}'")
    write(tmp_path / "t/x.parquet", {"id": [1, 2], "c": ["a", "äbc"], "v": ["v", None]})
    source.create_index(name, BloomIndexConfig("char", ["id"], fpp=1e-6))
    for condition in ("TRUE", "c = 'a'", "c = 'a   '", "v = 'v '"):
        assert rows(through(spark, "char").where(condition)) == rows(spark.table(name).where(condition))


def test_what_only_spark_can_read_is_refused(
    spark: SparkSession, source: Lakebloom, database: str, tmp_path: Path
) -> None:
    from pyspark.errors import PythonException

    old_day = pa.array([datetime.date(1500, 1, 1)])
    write(tmp_path / "t/x.parquet", {"id": pa.array([1]), "day": old_day, "days": pa.array([old_day.to_pylist()])})
    source.create_index(str(tmp_path / "t"), BloomIndexConfig("old", ["id"], fpp=1e-6))
    for column in ("day", "days"):
        with pytest.raises(PythonException, match=r"UNSUPPORTED_TYPE.*depends on its version"):
            through(spark, "old", columns=column).collect()
    assert through(spark, "old", columns="id").count() == 1

    name = f"{database}.{fresh_name()}"
    spark.sql(f"CREATE TABLE {name} (id BIGINT) USING parquet")
    spark.sql(f"INSERT INTO {name} VALUES (1)")
    spark.sql(f"ALTER TABLE {name} ADD COLUMN later INT DEFAULT 42")
    spark.sql(f"INSERT INTO {name} VALUES (2, 43)")
    source.create_index(name, BloomIndexConfig("defaults", ["id"], fpp=1e-6))
    with pytest.raises(PythonException, match="its default needs Spark; found DEFAULT 42"):
        through(spark, "defaults").collect()
    assert rows(through(spark, "defaults", columns="id")) == rows(spark.table(name).select("id"))


def test_types_without_arrow_values_can_be_left_out(spark: SparkSession, source: Lakebloom, tmp_path: Path) -> None:
    from pyspark.errors import AnalysisException

    spark.sql("SELECT 1L AS id, parse_json('{}') AS v").write.parquet(str(tmp_path / "t"))
    source.create_index(str(tmp_path / "t"), BloomIndexConfig("variant", ["id"], fpp=1e-6))
    with pytest.raises(AnalysisException, match=r"column v: values of type variant .*option columns"):
        through(spark, "variant")
    assert through(spark, "variant", columns="id").collect() == [(1,)]


def test_rows_without_columns_are_counted_or_refused(spark: SparkSession, source: Lakebloom, tmp_path: Path) -> None:
    write(tmp_path / "t/0.parquet", {"k": list(range(7))})
    source.create_index(tmp_path / "t", BloomIndexConfig("t", ["k"]))
    for frame in (through(spark, "t", columns=""), spark.read.schema(StructType()).format("lakebloom").load("t")):
        if loses_rows_without_columns(spark.version):
            with pytest.raises(PySparkException, match=r"with Spark 4\.0, which loses them"):
                frame.count()
        else:
            assert frame.count() == 7


@pytest.mark.parametrize(("granularity", "groups"), [("file", (0, 1, 2)), ("row_group", (1,)), (5, (1,))])
def test_units_that_cannot_match_are_not_read(
    spark: SparkSession, source: Lakebloom, tmp_path: Path, granularity: Any, groups: tuple[int, ...]
) -> None:
    table = tmp_path / "t"
    for part in range(4):
        write(table / f"{part}.parquet", {"k": pa.array(range(part * 30, part * 30 + 30))}, row_group_size=10)
    source.create_index(table, BloomIndexConfig("units", ["k"], fpp=1e-6, granularity=granularity))
    asked = (col("k") == 43) | (col("k") == 1000)
    assert read_groups(source, "units", asked) == {"1.parquet": groups}
    assert set(read_groups(source, "units")) == {f"{part}.parquet" for part in range(4)}
    assert source.read("units", asked).collect() == [(43,)]
    assert source.read("units", col("k") == 1000).collect() == []
    made = LakebloomSource({"path": "units", "location": source.location, "where": to_json(asked).decode()})
    reader = made.reader(made.schema())
    planned = reader.partitions()
    for part in (0, 2, 3):
        (table / f"{part}.parquet").unlink()
    batches = [batch for task in planned for batch in reader.read(task)]
    assert [value for batch in batches for value in batch.column(0).to_pylist()] == [43]


def test_pages_of_a_large_file(spark: SparkSession, source: Lakebloom, tmp_path: Path) -> None:
    """Several tasks read units of one row group, and only pages of them."""
    table = tmp_path / "t"
    values = pa.array(range(0, 1_000_000, 10))
    write(table / "large.parquet", {"k": values, "v": values}, max_rows_per_page=20_000, use_dictionary=False)
    source.create_index(table, BloomIndexConfig("pages", ["k"], fpp=1e-6))
    (task,) = tasks(source, "pages", col("k") == 430_010)
    (read,) = task.reads
    assert (read.row_groups, read.rows) == ((0,), ((40_000, 60_000),))
    assert source.read("pages", col("k") == 430_010).collect() == [(430_010, 430_010)]
    asked = col("k").isin([10, 430_010, 999_990])
    frame = source.read("pages", asked)
    assert sorted(frame.collect()) == [(key, key) for key in (10, 430_010, 999_990)]
    made = LakebloomSource(
        {"path": "pages", "location": source.location, "where": to_json(asked).decode(), "partitionBytes": "1000"}
    )
    parts = [read.rows for task in made.reader(made.schema()).partitions() for read in task.reads]
    assert parts == [((0, 20_000),), ((40_000, 60_000),), ((80_000, 100_000),)]


def test_files_that_the_index_does_not_know_are_read_in_full(
    spark: SparkSession, source: Lakebloom, tmp_path: Path
) -> None:
    table = keys(tmp_path / "t", range(10), range(10, 20), range(20, 30))
    source.create_index(table, BloomIndexConfig("hybrid", ["k"], fpp=1e-6))
    frame = source.read("hybrid", col("k").isin([5, 105, 205]))
    keys(table, [*range(100, 110)], [*range(200, 210)], first=2)
    (table / "1.parquet").unlink()
    assert read_groups(source, "hybrid", col("k") == 5) == {"0.parquet": (0,), "2.parquet": None, "3.parquet": None}
    assert rows(frame, "k") == ["Row(k=5)", "Row(k=105)", "Row(k=205)"]
    source.refresh_index("hybrid")
    assert read_groups(source, "hybrid", col("k") == 105) == {"2.parquet": (0,)}
    frames = [through(spark, "hybrid"), spark.read.parquet(str(table))]
    assert [frame.count() for frame in frames] == [30, 30]
    keys(table, [1], first=9)
    keeps_list = hasattr(datasource, "EqualTo")  # Spark 4.0 plans every query anew
    assert [frame.count() for frame in frames] == [30 if keeps_list else 31, 30]


def test_an_index_that_cannot_be_asked_is_done_without(
    spark: SparkSession, source: Lakebloom, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    import shutil

    table = keys(tmp_path / "t", range(10), range(10, 20))
    source.create_index(table, BloomIndexConfig("lost", ["k"], fpp=1e-6))
    asked = col("k") == 15
    for file in (tmp_path / "indexes/lost/segments").rglob("*.tile"):
        file.write_bytes(b"x" * file.stat().st_size)
    assert read_groups(source, "lost", asked) == {"0.parquet": None, "1.parquet": None}
    assert "all files are read: [CORRUPT_INDEX]" in caplog.text
    frame = source.read("lost", asked)
    shutil.rmtree(tmp_path / "indexes/lost")
    assert frame.collect() == [(15,)]


def test_the_log_says_what_is_skipped(source: Lakebloom, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    table = keys(tmp_path / "t", range(10), range(10, 20), range(20, 30))
    source.create_index(table, BloomIndexConfig("told", ["k"], fpp=1e-6))
    caplog.set_level("INFO", "lakebloom")
    tasks(source, "told", col("k") == 15)
    assert "index told: reading 1 of 3 files, 1 of the 1 row groups in them that are indexed" in caplog.text


def test_tasks_are_of_about_the_size_that_is_asked_for(spark: SparkSession, source: Lakebloom, tmp_path: Path) -> None:
    table = tmp_path / "t"
    write(table / "big.parquet", {"k": pa.array(range(10_000))}, row_group_size=1000, compression="none")
    keys(table, range(10), range(10, 20))
    source.create_index(table, BloomIndexConfig("sizes", ["k"], fpp=1e-6))
    assert len(tasks(source, "sizes")) == 1
    size = (table / "big.parquet").stat().st_size
    cut = [task for task in tasks(source, "sizes", partitionBytes=str(size // 3)) if "big" in task.reads[0].file.uri]
    assert [task.reads[0].row_groups for task in cut] == [(0, 1, 2), (3, 4, 5), (6, 7, 8), (9,)]
    assert all(task.reads[0].shared for task in cut)
    frame = through(spark, "sizes", partitionBytes=str(size // 3))
    assert frame.selectExpr("count(*)", "sum(k)").collect() == [(10_020, sum(range(10_000)) + sum(range(20)))]
    assert frame.rdd.getNumPartitions() == 6


def test_a_file_that_is_replaced_after_planning(source: Lakebloom, tmp_path: Path) -> None:
    table = keys(tmp_path / "t", range(10), range(10, 20))
    source.create_index(table, BloomIndexConfig("raced", ["k"], fpp=1e-6))
    made = LakebloomSource({"path": "raced", "location": source.location})
    reader = made.reader(made.schema())
    (task,) = reader.partitions()
    write(table / "1.parquet", {"k": pa.array([*range(15, 35)])}, row_group_size=3)
    values = [value for batch in reader.read(task) for value in batch.column(0).to_pylist()]
    assert sorted(values) == [*range(10), *range(15, 35)]
    shared = ReadTask([type(read)(read.file, read.row_groups, shared=True) for read in task.reads], None)
    with pytest.raises(errors.DataFileError, match="changed while a query read it"):
        list(reader.read(shared))
    (table / "0.parquet").unlink()
    with pytest.raises(errors.NotFoundError):
        list(reader.read(task))


def test_sql(spark: SparkSession, source: Lakebloom, tmp_path: Path) -> None:
    table = keys(tmp_path / "t", range(10), range(10, 20))
    source.create_index(table, BloomIndexConfig("by_k", ["k"], fpp=1e-6))
    where = to_json(col("k") == 15).decode()
    for name, options in {"whole": "", "some": f", where '{where}'", "text": ', where "k = 15"'}.items():
        spark.sql(
            f"CREATE OR REPLACE TEMPORARY VIEW {name} USING lakebloom "
            f"OPTIONS (index 'by_k', location '{tmp_path / 'indexes'}'{options})"
        )
    assert spark.sql("SELECT count(*) FROM whole WHERE k > 14").collect() == [(5,)]
    assert spark.sql("SELECT * FROM some").collect() == spark.sql("SELECT * FROM text").collect() == [(15,)]
    assert spark.sql("SELECT count(*) FROM whole JOIN some USING (k)").collect() == [(1,)]


def test_the_log_says_what_is_read(source: Lakebloom, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for part in range(8):
        ids = range(part * 1250, part * 1250 + 1250)
        write(tmp_path / f"events/{part}.parquet", {"user_id": [f"user-{i}" for i in ids]}, row_group_size=125)
    config = BloomIndexConfig("by_user", ["user_id"], granularity="row_group")
    source.create_index(tmp_path / "events", config)
    caplog.set_level("INFO", "lakebloom")
    tasks(source, "by_user", col("user_id") == "user-4711")
    (line,) = [record.getMessage() for record in caplog.records if record.name == "lakebloom.spark.data_source.source"]
    assert line in (ROOT / "docs" / "DATA_SOURCE.md").read_text()
