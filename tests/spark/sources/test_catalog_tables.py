"""The table of a catalog consists of what the catalog lists. Whatever is done to it, Spark is the judge."""

from __future__ import annotations

import datetime
import shutil
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lakebloom import BloomIndexConfig, Lakebloom, col
from lakebloom.errors import CorruptIndexError, IndexStateError, NotFoundError, UnsupportedSourceError
from lakebloom.spark.sources.catalog_tables import CatalogTables
from tests.spark.needs import HAS_DATA_SOURCE, readers
from tests.spark.support import snapshot, write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
KEYS = [f"k{number}" for number in range(40)]
Rows = list[tuple[Any, ...]]


class Judge:
    """Asks Spark and every reader of lakebloom for the same rows."""

    def __init__(self, spark: SparkSession, lake: Lakebloom, table: str) -> None:
        self.spark, self.lake, self.table = spark, lake, table
        self.asked = col("k").isin(KEYS)

    def spark_rows(self, condition: str = "true") -> Rows:
        return _sorted(tuple(row) for row in self.spark.sql(f"SELECT * FROM {self.table} WHERE {condition}").collect())

    def looked_up(self, lake: Lakebloom, predicate: Any = None) -> Rows:
        rows = lake.lookup("i", self.asked if predicate is None else predicate).to_pylist()
        return _sorted(tuple(row.values()) for row in rows)

    def check(self) -> None:
        """All answers are Spark's before a refresh, and after it also those of a process without Spark."""
        expected = self.spark_rows()
        assert self.looked_up(self.lake) == expected
        if HAS_DATA_SOURCE:
            assert _sorted(tuple(row) for row in self.lake.read("i", self.asked).collect()) == expected
        self.lake.refresh_index("i")
        alone = Lakebloom(location=self.lake.location)
        assert self.looked_up(self.lake) == self.looked_up(alone) == expected
        listed = self.spark.sql(f"SELECT count(DISTINCT _metadata.file_path) FROM {self.table}").collect()[0][0]
        for some in (self.lake, alone):
            assert len(set(some.candidates("i", self.asked)["path"].to_pylist())) == listed
            report = some.verify_index("i")
            assert (report.ok, len(report.not_indexed), report.files_checked) == (True, 0, listed)
        status = self.lake.status("i")[0]
        assert (status.files, status.lag) == (listed, 0)
        assert not self.lake.refresh_index("i").committed, "nothing is new"
        self.lake.enable()
        try:
            some_keys = ("k9", "k13", "k20", "k31")
            assert self.spark_rows(f"k IN {some_keys}") == [row for row in expected if row[0] in some_keys]
        finally:
            self.lake.disable()


def _sorted(rows: Any) -> Rows:
    return sorted(rows, key=repr)


def test_partitions(spark: SparkSession, lake: Lakebloom, database: str, tmp_path: Path) -> None:
    table, home = f"{database}.t", tmp_path / "t"
    spark.sql(f"CREATE TABLE {table} (k STRING, p INT, q STRING) USING parquet PARTITIONED BY (p, q) LOCATION '{home}'")
    for number in range(3):
        write(home / f"p={number}/q=a/0.parquet", {"k": [f"k{number}", "k9"]})
    spark.sql(f"MSCK REPAIR TABLE {table}")
    odd = "a b/c=d%20é:'\\\\"
    spark.sql(f"INSERT INTO {table} VALUES ('k3', 3, \"{odd}\"), ('k4', 4, NULL), ('k5', NULL, ''), ('k6', 6, 'null')")
    lake.create_index(table, BloomIndexConfig("i", ["k"], fpp=1e-6))
    judge = Judge(spark, lake, table)
    assert len(judge.spark_rows()) == 10
    judge.check()
    write(tmp_path / "elsewhere/0.parquet", {"k": ["k20", "k9"]})
    write(tmp_path / "elsewhere/sub/0.parquet", {"k": ["k21"]})
    write(tmp_path / "p=1/q=a/0.parquet", {"k": ["k22"]})

    def alter(change: str) -> None:
        spark.sql(f"ALTER TABLE {table} {change}")

    changes: list[Callable[[], object]] = [
        # A partition is dropped and its files stay; a directory comes that nobody adds.
        lambda: (alter("DROP PARTITION (p=1, q='a')"), shutil.copytree(home / "p=0", home / "p=77")),
        # Partitions elsewhere, one of them in a directory whose name says otherwise; a row that is inserted.
        lambda: (
            alter(f"ADD PARTITION (p=9, q='x') LOCATION '{tmp_path}/elsewhere'"),
            alter(f"ADD PARTITION (p=10, q='z') LOCATION '{tmp_path}/p=1/q=a'"),
            spark.sql(f"INSERT INTO {table} VALUES ('k9', 0, 'a'), ('k11', 11, 'new')"),
        ),
        # A file that is put there; a partition that moves; another that gets a new name.
        lambda: (
            write(home / "p=3/q=b/1.parquet", {"k": ["k12"]}),
            alter("ADD PARTITION (p=3, q='b')"),
            write(tmp_path / "moved/0.parquet", {"k": ["k13"]}),
            alter(f"PARTITION (p=2, q='a') SET LOCATION '{tmp_path}/moved'"),
            alter("PARTITION (p=0, q='a') RENAME TO PARTITION (p=100, q='a')"),
        ),
        # Two partitions change places; a hidden place; the table's own directory; a place that is not there.
        lambda: (
            alter(f"PARTITION (p=9, q='x') SET LOCATION '{tmp_path}/nowhere'"),
            alter(f"PARTITION (p=2, q='a') SET LOCATION '{tmp_path}/elsewhere'"),
            alter(f"PARTITION (p=9, q='x') SET LOCATION '{tmp_path}/moved'"),
            write(home / "_hidden/h/0.parquet", {"k": ["k14"]}),
            alter(f"ADD PARTITION (p=14, q='h') LOCATION '{home}/_hidden/h'"),
            write(home / "0.parquet", {"k": ["k16"]}),
            alter(f"ADD PARTITION (p=16, q='own') LOCATION '{home}'"),
            alter(f"ADD PARTITION (p=15, q='n') LOCATION '{tmp_path}/not there'"),
        ),
        # Files come to that place.
        lambda: write(tmp_path / "not there/0.parquet", {"k": ["k15"]}),
        # Found by the catalog itself: what is there and has the right names.
        lambda: (
            alter("DROP PARTITION (p=100, q='a')"),
            spark.sql(f"MSCK REPAIR TABLE {table} SYNC PARTITIONS"),
        ),
        # The table moves, and gets a new column.
        lambda: (
            alter(f"SET LOCATION '{tmp_path}/later'"),
            spark.sql(f"INSERT INTO {table} VALUES ('k30', 30, 'later')"),
            alter("ADD COLUMNS (extra INT)"),
        ),
    ]
    for number, change in enumerate(changes):
        change()
        spark.catalog.refreshTable(table)
        try:
            judge.check()
            predicate = judge.asked & ((col("p") == 9) | (col("q") == "z") | col("p").is_null())
            assert judge.looked_up(lake, predicate) == judge.spark_rows("p = 9 OR q = 'z' OR p IS NULL")
        except AssertionError as error:
            raise AssertionError(f"change {number}") from error
    assert len(snapshot(lake, "i").commit.table.locations) == 1


def test_another_table_of_the_same_name(spark: SparkSession, lake: Lakebloom, database: str, tmp_path: Path) -> None:
    table = f"{database}.t"
    spark.sql(f"CREATE TABLE {table} (k STRING, p INT) USING parquet PARTITIONED BY (p) LOCATION '{tmp_path}/t'")
    spark.sql(f"INSERT INTO {table} VALUES ('k0', 0)")
    lake.create_index(table, BloomIndexConfig("i", ["k"], fpp=1e-6))
    spark.sql(f"DROP TABLE {table}")
    write(tmp_path / "other/0.parquet", {"k": ["k31"], "n": [1]})
    spark.sql(f"CREATE TABLE {table} (k STRING, n BIGINT) USING parquet LOCATION '{tmp_path}/other'")
    Judge(spark, lake, table).check()

    spark.sql(f"DROP TABLE {table}")
    for ask in (lake.refresh_index, lambda name: lake.lookup(name, col("k") == "k31"), *readers(lake)):
        with pytest.raises(NotFoundError, match="catalog cannot describe the table"):
            ask("i")
    alone = Lakebloom(location=lake.location)
    assert alone.lookup("i", col("k") == "k31").num_rows == 1, "what the last refresh found"
    spark.sql(f"CREATE TABLE {table} (k BIGINT) USING parquet LOCATION '{tmp_path}/fourth'")
    write(tmp_path / "fourth/0.parquet", {"k": [7]})
    found = lake.lookup("i", col("k") == 7)["k"].to_pylist()
    for read in readers(lake):
        assert found == [row.k for row in read("i", col("k") == 7).collect()]
    with pytest.raises(IndexStateError, match="not the table that index"):
        lake.refresh_index("i")
    spark.sql(f"DROP TABLE {table}")
    spark.sql(f"CREATE TABLE {table} (k STRING) USING csv LOCATION '{tmp_path}/fifth'")
    with pytest.raises(UnsupportedSourceError, match="now a different table; found format csv"):
        lake.lookup("i", col("k") == "k1")


def test_a_table_without_partitions_moves(spark: SparkSession, lake: Lakebloom, database: str, tmp_path: Path) -> None:
    table = f"{database}.t"
    write(tmp_path / "one/0.parquet", {"k": ["k0", "k9"]})
    write(tmp_path / "two/0.parquet", {"k": ["k1"]})
    spark.sql(f"CREATE TABLE {table} (k STRING) USING parquet LOCATION '{tmp_path}/one'")
    lake.create_index(table, BloomIndexConfig("i", ["k"], fpp=1e-6))
    judge = Judge(spark, lake, table)
    judge.check()
    spark.sql(f"ALTER TABLE {table} SET LOCATION '{tmp_path}/two'")
    assert lake.candidates("i", col("k") == "k0").num_rows == 0
    assert lake.lookup("i", col("k") == "k0", unindexed="skip").num_rows == 0
    judge.check()
    spark.sql(f"ALTER TABLE {table} SET LOCATION '{tmp_path}/three'")
    judge.check()
    spark.sql(f"INSERT INTO {table} VALUES ('k3')")
    judge.check()


def test_names_that_depend_on_the_session(spark: SparkSession, lake: Lakebloom, database: str, tmp_path: Path) -> None:
    spark.sql(f"USE {database}")
    try:
        spark.sql("CREATE TABLE odd_name (k STRING, `P x` INT) USING parquet PARTITIONED BY (`P x`)")
        spark.sql("INSERT INTO odd_name VALUES ('k0', 1), ('k9', 2)")
        spark.table("odd_name").createOrReplaceTempView("seen")
        lake.create_index("seen", BloomIndexConfig("i", ["k"], fpp=1e-6))
    finally:
        spark.sql("USE default")
    judge = Judge(spark, lake, f"{database}.odd_name")
    judge.check()
    spark.sql(f"ALTER TABLE {judge.table} DROP PARTITION (`p X`=2)")
    judge.check()


def test_partitions_that_share_a_directory_are_refused(
    spark: SparkSession, lake: Lakebloom, database: str, tmp_path: Path
) -> None:
    """Spark shows each of their rows twice."""
    table = f"{database}.t"
    spark.sql(f"CREATE TABLE {table} (k STRING, p INT) USING parquet PARTITIONED BY (p) LOCATION '{tmp_path}/t'")
    spark.sql(f"INSERT INTO {table} VALUES ('k0', 0)")
    lake.create_index(table, BloomIndexConfig("i", ["k"]))
    spark.sql(f"ALTER TABLE {table} ADD PARTITION (p=1) LOCATION '{tmp_path}/t/p=0'")
    for ask in (lake.refresh_index, lambda name: lake.lookup(name, col("k") == "k0"), *readers(lake)):
        with pytest.raises(UnsupportedSourceError, match=r"two partitions .* have the same location"):
            ask("i")


def test_directories_that_the_catalog_does_not_list(
    spark: SparkSession, lake: Lakebloom, database: str, tmp_path: Path
) -> None:
    """A table whose partitions Spark finds itself is what lies in its location."""
    table = f"{database}.t"
    write(tmp_path / "t/p=0/0.parquet", {"k": ["k0"]})
    spark.conf.set("spark.sql.hive.manageFilesourcePartitions", "false")
    try:
        spark.sql(f"CREATE TABLE {table} (k STRING, p INT) USING parquet PARTITIONED BY (p) LOCATION '{tmp_path}/t'")
        lake.create_index(table, BloomIndexConfig("i", ["k"], fpp=1e-6))
        write(tmp_path / "t/p=1/0.parquet", {"k": ["k1", "k9"]})
        spark.catalog.refreshTable(table)
        Judge(spark, lake, table).check()
    finally:
        spark.conf.unset("spark.sql.hive.manageFilesourcePartitions")


def test_many_partitions_stay_out_of_the_log(
    spark: SparkSession, lake: Lakebloom, database: str, tmp_path: Path
) -> None:
    table, count = f"{database}.t", 300
    spark.sql(f"CREATE TABLE {table} (k BIGINT, p INT) USING parquet PARTITIONED BY (p) LOCATION '{tmp_path}/t'")
    for number in range(count):
        write(tmp_path / f"t/p={number}/0.parquet", {"k": pa.array([number], pa.int64())})
    spark.sql(f"MSCK REPAIR TABLE {table}")
    lake.create_index(table, BloomIndexConfig("i", ["k"], fpp=1e-6))
    entry = snapshot(lake, "i").commit
    record = entry.table.partitions
    assert record is not None
    assert (record.count, record.places) == (count, ())
    assert record.file.path in entry.paths
    assert record.file.size_bytes < 100 * count
    alone = Lakebloom(location=lake.location)
    assert alone.lookup("i", col("k") == 217).to_pylist() == [{"k": 217, "p": 217}]
    # Asking again brings nothing over from the JVM, and nothing is read or listed again.
    tables = CatalogTables(spark, {})
    first = tables.current(entry.table)
    assert tables.current(entry.table) is first
    assert len(lake.verify_index("i").orphaned) == 0
    spark.sql(f"ALTER TABLE {table} DROP PARTITION (p=217)")
    assert lake.lookup("i", col("k") == 217).num_rows == 0
    assert alone.lookup("i", col("k") == 217).num_rows == 1, "without Spark it is what the last refresh found"
    assert lake.refresh_index("i").committed
    assert alone.lookup("i", col("k") == 217).num_rows == 0
    lake.vacuum_index("i", datetime.timedelta(0))
    assert alone.lookup("i", col("k") == 216).num_rows == 1
    # A list that is damaged is no list: nothing is guessed from directories.
    partitions = snapshot(lake, "i").commit.table.partitions
    assert partitions is not None
    (tmp_path / "indexes/i" / partitions.file.path).write_bytes(b"x")
    with pytest.raises(CorruptIndexError, match=partitions.file.path):
        Lakebloom(location=lake.location).lookup("i", col("k") == 216)
    assert not lake.verify_index("i").ok
    assert lake.lookup("i", col("k") == 216).num_rows == 1
    assert all(read("i", col("k") == 216).count() == 1 for read in readers(lake))
    lake.refresh_index("i")
    assert Lakebloom(location=lake.location).lookup("i", col("k") == 216).num_rows == 1
    assert lake.verify_index("i").ok
