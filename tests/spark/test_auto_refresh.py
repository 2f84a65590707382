"""enable(auto_refresh=True): whichever way the session writes to a table, its index knows the files afterwards."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from lakebloom import BloomIndexConfig, Lakebloom
from lakebloom.errors import UnsupportedSessionError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

WAIT_S = 300


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Iterator[Lakebloom]:
    lake = Lakebloom(spark, tmp_path / "indexes")
    yield lake
    lake.disable()
    assert lake.wait_for_refresh(WAIT_S)


def assert_covered(lake: Lakebloom, name: str, files: int) -> None:
    assert lake.wait_for_refresh(WAIT_S)
    status = lake.status(name)[0]
    assert (status.files, status.lag, status.refresh_problem, status.problem) == (files, 0, "", "")


def test_files_at_a_path(spark: SparkSession, lake: Lakebloom, tmp_path: Path) -> None:
    table, rows = str(tmp_path / "t"), spark.range(0, 10, 1, 1)
    rows.write.parquet(table)
    lake.create_index(table, BloomIndexConfig("i", ["id"]))
    assert not lake.auto_refresh
    rows.write.mode("append").parquet(table)
    assert lake.wait_for_refresh(WAIT_S)
    assert lake.status("i")[0].lag == 1, "off by default"
    lake.enable(auto_refresh=True)
    lake.enable()
    assert lake.auto_refresh
    rows.write.mode("append").parquet(table)
    assert_covered(lake, "i", 3)
    rows.write.mode("append").format("parquet").save(table)
    rows.write.mode("append").parquet(table)
    assert_covered(lake, "i", 5)

    # A stream's batches: its session is a copy of this one.
    def add(batch: DataFrame, number: int) -> None:
        batch.coalesce(1).write.mode("append").parquet(table)

    stream = spark.readStream.schema("id bigint").parquet(table).writeStream.foreachBatch(add)
    stream.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(
        availableNow=True
    ).start().awaitTermination()
    assert_covered(lake, "i", 6)

    versions = len(lake.history("i"))
    rows.write.parquet(str(tmp_path / "elsewhere"))
    spark.read.parquet(table).where("id = 5").collect()
    spark.sql("SHOW TABLES").collect()
    assert_covered(lake, "i", 6)
    assert len(lake.history("i")) == versions, "nothing else causes a refresh"
    lake.delete_index("i")
    rows.write.mode("append").parquet(table)
    assert lake.wait_for_refresh(WAIT_S)
    assert lake.status("i")[0].refresh_problem == ""
    lake.restore_index("i")
    lake.disable()
    assert not lake.auto_refresh
    rows.write.mode("append").parquet(table)
    assert lake.wait_for_refresh(WAIT_S)
    assert lake.status("i")[0].lag == 2


def test_tables_of_the_catalog(spark: SparkSession, lake: Lakebloom, database: str, tmp_path: Path) -> None:
    table, rows = f"{database}.t", spark.range(0, 10, 1, 1).selectExpr("id", "id % 2 AS p")
    rows.write.partitionBy("p").saveAsTable(table)
    lake.create_index(table, BloomIndexConfig("i", ["id"]))
    lake.create_index(str(tmp_path / "warehouse" / "t"), BloomIndexConfig("by_path", ["id"]))
    lake.enable(auto_refresh=True)
    rows.write.mode("append").partitionBy("p").saveAsTable(table)
    assert_covered(lake, "i", 4)
    rows.write.insertInto(table)
    assert_covered(lake, "i", 6)
    assert_covered(lake, "by_path", 6)
    spark.sql(f"INSERT INTO {table} PARTITION (p = 7) SELECT /*+ COALESCE(1) */ id FROM range(5)")
    assert_covered(lake, "i", 7)
    rows.select("id").write.parquet(str(tmp_path / "elsewhere"))
    spark.sql(f"ALTER TABLE {table} ADD PARTITION (p = 8) LOCATION '{tmp_path / 'elsewhere'}'")
    assert_covered(lake, "i", 8)


def test_all_files_are_others(spark: SparkSession, lake: Lakebloom, database: str, tmp_path: Path) -> None:
    """One that got others in their place is refreshed. One that lost them may be a mistake: nothing is forced."""
    for name in ("directory", "made"):
        spark.range(0, 10, 1, 1).write.parquet(str(tmp_path / name))
        lake.create_index(str(tmp_path / name), BloomIndexConfig(name, ["id"]))
    shutil.rmtree(tmp_path / "made")
    spark.range(0, 10, 1, 1).write.saveAsTable(f"{database}.emptied")
    lake.create_index(f"{database}.emptied", BloomIndexConfig("emptied", ["id"]))
    lake.enable(auto_refresh=True)
    spark.sql(f"TRUNCATE TABLE {database}.emptied")
    spark.sql(f"INSERT OVERWRITE DIRECTORY '{tmp_path}/directory' USING parquet SELECT id FROM range(5)")
    spark.sql(f"CREATE TABLE {database}.made USING parquet LOCATION '{tmp_path}/made' AS SELECT id FROM range(5)")
    assert lake.wait_for_refresh(WAIT_S)
    for name in ("directory", "made"):
        (status,) = lake.status(name)
        assert (status.version > 1, status.lag, status.refresh_problem) == (True, 0, ""), status
    (status,) = lake.status("emptied")
    assert (status.version, "TABLE_SHRUNK" in status.refresh_problem) == (1, True), status


def test_a_refresh_that_fails(
    spark: SparkSession, lake: Lakebloom, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table, rows = str(tmp_path / "t"), spark.range(0, 10, 1, 1)
    rows.write.parquet(table)
    lake.create_index(table, BloomIndexConfig("i", ["id"]))
    lake.enable(auto_refresh=True)
    home = tmp_path / "indexes" / "i"
    tables = list((home / "segments").glob("*/files.arrow"))
    for path in tables:
        path.rename(path.with_suffix(".away"))
    for _ in range(2):
        rows.write.mode("append").parquet(table)
        assert lake.wait_for_refresh(WAIT_S)
    (status,) = Lakebloom(spark, tmp_path / "indexes").status("i")
    assert status.refresh_problem == ""
    assert "[CORRUPT_INDEX]" in lake.status("i")[0].refresh_problem
    assert len([record for record in caplog.records if "automatic refresh" in record.getMessage()]) == 1
    for path in tables:
        path.with_suffix(".away").rename(path)
    rows.write.mode("append").parquet(table)
    assert_covered(lake, "i", 4)


def test_it_needs_a_classic_session(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedSessionError, match=r"auto_refresh .* no session.*refresh_index"):
        Lakebloom(location=tmp_path).enable(auto_refresh=True)
