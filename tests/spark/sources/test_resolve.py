"""What can be indexed, by what it is called; and what cannot, and why."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812

from lakebloom import BloomIndexConfig, Lakebloom, col
from lakebloom.errors import (
    DataFileError,
    InvalidArgumentError,
    NoFilesError,
    NotFoundError,
    TableShrunkError,
    UnsupportedSourceError,
)
from lakebloom.spark.sources.resolve import resolve
from tests.spark.support import fresh_name, indexed, kept, keys, write

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
BY_K = BloomIndexConfig("by_k", ["k"], fpp=1e-6)


def files_below(directory: Path) -> list[str]:
    return sorted(str(path) for path in directory.rglob("*.parquet"))


def _frame(spark: SparkSession, path: str | Path) -> DataFrame:
    return spark.read.parquet(str(path))


class TestPaths:
    @pytest.mark.parametrize(
        "spelling",
        [str, Path, lambda path: f"file:{path}", lambda path: f"file://{path}/", lambda path: f"{path}/./"],
        ids=["string", "PathLike", "file:", "file://", "with a slash"],
    )
    def test_a_directory(self, lake: Lakebloom, tmp_path: Path, spelling: Callable[[Path], Any]) -> None:
        table = keys(tmp_path / "t", range(100), range(100, 200))
        report = lake.create_index(spelling(table), BY_K)
        assert (report.files, report.rows, report.units) == (2, 200, 2)
        assert indexed(lake, "by_k") == files_below(table)
        assert kept(lake, "by_k", col("k") == 150) == ["1.parquet"]
        assert lake.lookup("by_k", col("k") == 150)["k"].to_pylist() == [150]

    def test_a_name_that_is_no_table_is_a_path(self, lake: Lakebloom) -> None:
        with pytest.raises(NotFoundError, match="no_such_table"):
            lake.create_index("no_such_table", BY_K)

    @pytest.mark.parametrize("read", [lambda _, path: path, _frame], ids=["path", "DataFrame"])
    def test_a_glob_finds_later_files(
        self, spark: SparkSession, lake: Lakebloom, tmp_path: Path, read: Callable[[SparkSession, str], Any]
    ) -> None:
        keys(tmp_path / "t/2024-01", range(10))
        keys(tmp_path / "t/2024-02", range(10, 20))
        keys(tmp_path / "t/2023-12", range(20, 30))
        lake.create_index(read(spark, f"{tmp_path}/t/2024-*/*.parquet"), BY_K)
        assert indexed(lake, "by_k") == [f"{tmp_path}/t/2024-{month}/0.parquet" for month in ("01", "02")]
        keys(tmp_path / "t/2024-03", range(30, 40))
        assert lake.refresh_index("by_k").files == 1
        assert kept(lake, "by_k", col("k") == 35) == ["0.parquet"]
        assert lake.candidates("by_k", col("k") == 25).num_rows == 0

    def test_a_glob_that_matches_nothing_any_more_has_no_files(self, lake: Lakebloom, tmp_path: Path) -> None:
        table = keys(tmp_path / "t", range(10), range(10))
        lake.create_index(f"{table}/*.parquet", BY_K)
        for file in table.iterdir():
            file.unlink()
        for mode in ("quick", "full"):
            with pytest.raises(TableShrunkError, match="no files any more"):
                lake.refresh_index("by_k", mode)
        assert lake.refresh_index("by_k", allow_shrink=True).committed
        assert lake.index("by_k").files == 0
        assert not lake.refresh_index("by_k", "full").committed

    @pytest.mark.parametrize(
        "names",
        [["a b", "100%20", "50%", "a+b"], ["k=v", "ünï ☃", "a#b", "it's"], ["[x]", "{y}", "q?", "a,b", "back\\slash"]],
    )
    def test_odd_names(self, lake: Lakebloom, tmp_path: Path, names: list[str]) -> None:
        table = tmp_path / "".join(names) / "t"
        for number, name in enumerate(names):
            write(table / f"{name}.parquet", {"k": pa.array([number])})
        lake.create_index(table, BY_K)
        assert indexed(lake, "by_k") == files_below(table)
        for number, name in enumerate(names):
            assert kept(lake, "by_k", col("k") == number) == [f"{name}.parquet"]
            assert lake.lookup("by_k", col("k") == number).num_rows == 1
        assert not lake.refresh_index("by_k").committed

    def test_a_location_that_is_gone_takes_only_its_own_files(
        self, spark: SparkSession, lake: Lakebloom, tmp_path: Path
    ) -> None:
        table = keys(tmp_path / "t", range(10), range(10, 20), range(20, 30))
        frame = spark.read.parquet(str(table / "0.parquet"), str(table / "2.parquet"))
        lake.create_index(frame, BY_K)
        assert indexed(lake, "by_k") == [str(table / "0.parquet"), str(table / "2.parquet")]
        (table / "0.parquet").unlink()
        lake.refresh_index("by_k", "full")
        assert indexed(lake, "by_k") == [str(table / "2.parquet")]


class TestPartitions:
    @pytest.fixture
    def table(self, tmp_path: Path) -> Path:
        keys(tmp_path / "t/day=2024-01-01/p=a%2Fb", range(10))
        keys(tmp_path / "t/day=2024-01-02/p=c d", range(10, 20))
        return tmp_path / "t"

    def test_a_partitioned_directory(self, spark: SparkSession, lake: Lakebloom, table: Path) -> None:
        lake.create_index(table, BY_K)
        assert indexed(lake, "by_k") == files_below(table)
        found = lake.lookup("by_k", col("k") == 13)
        assert found.select(["k", "p"]).to_pylist() == [{"k": 13, "p": "c d"}]
        keys(table / "day=2024-01-03/p=e", range(20, 30))
        assert lake.refresh_index("by_k").files == 1

    @pytest.mark.parametrize("column", ["p", "P", "day"])
    def test_partition_columns_are_refused(self, lake: Lakebloom, table: Path, column: str) -> None:
        with pytest.raises(InvalidArgumentError, match="is a partition column"):
            lake.create_index(table, BloomIndexConfig("x", [column]))

    def test_one_partition(self, spark: SparkSession, lake: Lakebloom, table: Path) -> None:
        lake.create_index(table / "day=2024-01-02", BY_K)
        assert resolve(spark, table / "day=2024-01-02").partition_columns == ("p",)
        assert indexed(lake, "by_k") == [f"{table}/day=2024-01-02/p=c d/0.parquet"]

    def test_base_path(self, spark: SparkSession, lake: Lakebloom, table: Path) -> None:
        frame = spark.read.option("basePath", str(table)).parquet(f"{table}/day=2024-01-02")
        assert resolve(spark, frame).partition_columns == ("day", "p")
        lake.create_index(frame, BY_K)
        assert kept(lake, "by_k", col("k") == 13) == ["0.parquet"]

    @pytest.mark.parametrize("case", ["bracket", "glob", "base path"])
    def test_lookup_knows_partitions(self, spark: SparkSession, lake: Lakebloom, tmp_path: Path, case: str) -> None:
        keys(tmp_path / "t[1]/day=1", range(10))
        keys(tmp_path / "t[1]/day=2", range(10, 20))
        escaped = f"{tmp_path}/t\\[1\\]"
        source = {
            "bracket": lambda: tmp_path / "t[1]",
            "glob": lambda: f"{tmp_path}/t?1?",
            "base path": lambda: spark.read.option("basePath", f"{tmp_path}/t[1]").parquet(f"{escaped}/day=2"),
        }[case]
        lake.create_index(source(), BY_K)
        assert kept(lake, "by_k", col("k") == 13) == ["0.parquet"]
        assert lake.lookup("by_k", col("k") == 13).to_pylist() == [{"k": 13, "day": 2}]


class TestTables:
    def test_managed(self, spark: SparkSession, lake: Lakebloom, database: str) -> None:
        spark.range(100).selectExpr("id AS k", "id % 2 AS p").write.partitionBy("p").saveAsTable(f"{database}.t")
        lake.create_index(f"{database}.t", BY_K)
        assert lake.index("by_k").source == f"{database}.t"
        assert lake.index("by_k").rows == 100
        assert kept(lake, "by_k", col("k") == 200) == []
        spark.sql(f"INSERT INTO {database}.t VALUES (200, 0)")
        assert lake.refresh_index("by_k").rows == 1
        assert lake.lookup("by_k", col("k") == 200)["p"].to_pylist() == [0]

    def test_external(self, spark: SparkSession, lake: Lakebloom, database: str, tmp_path: Path) -> None:
        table = keys(tmp_path / "elsewhere %20/t", range(10), range(10, 20))
        spark.sql(f"CREATE TABLE {database}.t (k BIGINT) USING parquet LOCATION '{table}'")
        lake.create_index(f"{database}.t", BY_K)
        assert indexed(lake, "by_k") == files_below(table)

    @pytest.mark.parametrize(
        "read",
        [
            lambda spark, name: spark.table(name),
            lambda spark, name: spark.read.table(name).alias("t"),
            lambda spark, name: spark.sql(f"SELECT * FROM {name}"),
            lambda spark, name: spark.sql(f"SELECT * FROM {name}").select("*"),
        ],
        ids=["table", "alias", "sql", "star"],
    )
    def test_dataframes(
        self, spark: SparkSession, lake: Lakebloom, database: str, read: Callable[[SparkSession, str], DataFrame]
    ) -> None:
        spark.range(100).withColumnRenamed("id", "k").write.saveAsTable(f"{database}.t")
        lake.create_index(read(spark, f"{database}.t"), BY_K)
        assert lake.index("by_k").source.endswith(f"{database}.t")
        assert lake.lookup("by_k", col("k") == 42).num_rows == 1

    def test_a_table_with_char_columns(self, spark: SparkSession, lake: Lakebloom, database: str) -> None:
        # Spark shows such a table through a projection that pads.
        spark.sql(f"CREATE TABLE {database}.t (k BIGINT, c CHAR(5), s STRUCT<c: CHAR(3)>) USING parquet")
        spark.sql(f"INSERT INTO {database}.t VALUES (1, 'a', named_struct('c', 'b'))")
        lake.create_index(f"{database}.t", BY_K)
        lake.create_index(spark.table(f"{database}.t"), BloomIndexConfig("again", ["k"]))
        assert lake.index("again").files == 1

    def test_a_temporary_view_of_files(self, spark: SparkSession, lake: Lakebloom, tmp_path: Path) -> None:
        name = fresh_name()
        spark.read.parquet(str(keys(tmp_path / "t", range(10)))).createOrReplaceTempView(name)
        lake.create_index(name, BY_K)
        assert lake.lookup("by_k", col("k") == 7).num_rows == 1

    def test_a_table_without_files(self, spark: SparkSession, lake: Lakebloom, database: str) -> None:
        spark.sql(f"CREATE TABLE {database}.t (k BIGINT) USING parquet")
        with pytest.raises(NoFilesError, match=r"nothing to index; found no files in .*/t\. Hint: check the path"):
            lake.create_index(f"{database}.t", BY_K)


def _streamed(spark: SparkSession, directory: Path) -> DataFrame:
    """What a streaming sink wrote: files may lie there that no batch committed."""
    source, target = keys(directory / "in", range(10)), directory / "out"
    stream = spark.readStream.schema("k BIGINT").parquet(str(source)).writeStream.format("parquet")
    stream.option("checkpointLocation", f"{directory}/check").trigger(availableNow=True).start(
        str(target)
    ).awaitTermination()
    return spark.read.parquet(str(target))


def _jdbc(spark: SparkSession, directory: Path) -> DataFrame:
    spark.sparkContext._jvm.System.setProperty("derby.stream.error.file", f"{directory}/derby.log")
    options = {
        "url": f"jdbc:derby:memory:{directory.name};create=true",
        "driver": "org.apache.derby.jdbc.EmbeddedDriver",
    }
    spark.range(3).withColumnRenamed("id", "k").write.format("jdbc").options(**options, dbtable="t").save()
    return spark.read.format("jdbc").options(**options, dbtable="t").load()


REFUSED: dict[str, tuple[Callable[[SparkSession, Path], Any], str]] = {
    "filter": (lambda spark, path: _frame(spark, path).where("k > 3"), "Filter in its plan"),
    "projection": (lambda spark, path: _frame(spark, path).select("k"), "Project in its plan"),
    "rename": (lambda spark, path: _frame(spark, path).withColumnRenamed("k", "j"), "Project in its plan"),
    "expression": (lambda spark, path: _frame(spark, path).withColumn("k", F.col("k") + 1), "Project in its plan"),
    "order": (lambda spark, path: _frame(spark, path).select("v", "k"), "Project in its plan"),
    "limit": (lambda spark, path: _frame(spark, path).limit(3), "Limit in its plan"),
    "distinct": (lambda spark, path: _frame(spark, path).distinct(), "Deduplicate in its plan"),
    "join": (lambda spark, path: _frame(spark, path).join(spark.range(3)), "Join in its plan"),
    "union": (lambda spark, path: _frame(spark, path).union(_frame(spark, path)), "Union in its plan"),
    "range": (lambda spark, path: spark.range(3).withColumnRenamed("id", "k"), "Project in its plan"),
    "rows": (lambda spark, path: spark.createDataFrame([(1,)], "k long"), "LogicalRDD in its plan"),
    "stream": (lambda spark, path: spark.readStream.schema("k long").parquet(str(path)), "Stream.*in its plan"),
    "jdbc": (_jdbc, "JDBCRelation in its plan"),
    "sink": (_streamed, "MetadataLogFileIndex, which lists them"),
    "pathGlobFilter": (
        lambda spark, path: spark.read.option("pathGlobFilter", "*.parquet").parquet(str(path)),
        "the option pathGlobFilter",
    ),
    "modifiedBefore": (
        lambda spark, path: spark.read.option("modifiedBefore", "2999-01-01T00:00:00").parquet(str(path)),
        "the option modifiedBefore",
    ),
    "recursiveFileLookup": (
        lambda spark, path: spark.read.option("recursiveFileLookup", "true").parquet(str(path)),
        "the option recursiveFileLookup",
    ),
    "credentials": (
        lambda spark, path: spark.read.option("fs.s3a.secret.key", "s3cr3t").parquet(str(path)),
        "the option fs.s3a.secret.key",
    ),
}


class TestRefused:
    @pytest.mark.parametrize("case", REFUSED)
    def test_what_is_not_simply_files(self, spark: SparkSession, lake: Lakebloom, tmp_path: Path, case: str) -> None:
        write(tmp_path / "t/0.parquet", {"k": pa.array([1, 2]), "v": pa.array(["a", "b"])})
        make, message = REFUSED[case]
        with pytest.raises(UnsupportedSourceError, match=f"{message}.*Hint"):
            lake.create_index(make(spark, tmp_path / "t"), BY_K)
        assert not (tmp_path / "indexes").exists()

    def test_a_view_with_a_projection(self, spark: SparkSession, lake: Lakebloom, database: str) -> None:
        spark.range(3).write.saveAsTable(f"{database}.t")
        spark.sql(f"CREATE VIEW {database}.v AS SELECT id AS k FROM {database}.t")
        with pytest.raises(UnsupportedSourceError, match="Project in its plan"):
            lake.create_index(f"{database}.v", BY_K)

    @pytest.mark.parametrize(
        ("make", "error", "message"),
        [
            (lambda path: path / "missing", NotFoundError, "missing as parquet.*check the path"),
            (lambda path: f"{path}/missing/*.parquet", NotFoundError, "missing/"),
            (lambda path: path / "empty", NoFilesError, "empty as parquet.*check the path"),
            (lambda path: path / "text", DataFileError, "text as parquet.*another format, such as spark.read.orc"),
            (lambda path: 7, InvalidArgumentError, "a Spark DataFrame, a path or the name of a table; found 7"),
            (lambda path: "", DataFileError, "cannot read  as parquet"),
        ],
        ids=["missing", "glob", "empty", "text", "int", "nothing"],
    )
    def test_what_is_not_there(
        self, lake: Lakebloom, tmp_path: Path, make: Callable[[Path], Any], error: type[Exception], message: str
    ) -> None:
        (tmp_path / "empty").mkdir()
        (tmp_path / "text").mkdir()
        (tmp_path / "text/a.parquet").write_text("no parquet")
        with pytest.raises(error, match=message):
            lake.create_index(make(tmp_path), BY_K)
        assert not (tmp_path / "indexes").exists()


@pytest.mark.parametrize("kind", ["csv", "json", "orc", "txt"])
def test_files_of_another_format_are_named_without_a_job(
    spark: SparkSession, tmp_path: Path, kind: str, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / f"t/part-0.{kind}").write_text("1,2\n3,4\n")
    with pytest.raises(DataFileError) as caught:
        resolve(spark, str(tmp_path / "t"))
    assert f"part-0.{kind} does not begin with PAR1" in caught.value.found
    assert f"spark.read.{'text' if kind == 'txt' else kind}(path)" in caught.value.hint
    assert "ERROR" not in capfd.readouterr().err  # of a task
    (tmp_path / "t/part-1.parquet").write_bytes(b"PAR1 and no more")  # one that could be: Spark says what is wrong
    with pytest.raises(DataFileError) as caught:
        resolve(spark, str(tmp_path / "t"))
    assert "PAR1" not in caught.value.found
