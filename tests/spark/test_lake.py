"""Where indexes are, with and without Spark; and an index where tasks cannot write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from lakebloom import BloomIndexConfig, Lakebloom, col
from lakebloom.errors import DataFileError, InvalidArgumentError, UnsupportedSourceError
from lakebloom.storage import normalise
from lakebloom.storage.hadoop.storage import HadoopStorage
from tests.spark.support import kept, keys, unit_filters

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
BY_K = BloomIndexConfig("by_k", ["k"], fpp=1e-6)


class TestLocation:
    def test_in_the_warehouse(self, spark: SparkSession) -> None:
        warehouse = normalise(spark.conf.get("spark.sql.warehouse.dir"))
        assert Lakebloom(spark).location == f"{warehouse}-lakebloom"

    def test_by_configuration(self, spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> None:
        spark.conf.set("spark.lakebloom.location", f"{tmp_path}/a b%20")
        request.addfinalizer(lambda: spark.conf.unset("spark.lakebloom.location"))
        assert Lakebloom(spark).location == f"file://{tmp_path}/a b%20"
        assert Lakebloom(spark, tmp_path / "other").location == f"file://{tmp_path}/other"
        Lakebloom(spark).create_index(keys(tmp_path / "t", range(10)), BY_K)
        assert (tmp_path / "a b%20/by_k/log").is_dir()

    def test_nowhere(self) -> None:
        with pytest.raises(InvalidArgumentError, match="the location of the indexes must be given"):
            Lakebloom()


def test_without_spark(lake: Lakebloom, tmp_path: Path) -> None:
    table = keys(tmp_path / "t", range(100), range(100, 200))
    lake.create_index(table, BY_K)
    alone = Lakebloom(location=tmp_path / "indexes")
    assert kept(alone, "by_k", col("k") == 150) == ["1.parquet"]
    assert alone.lookup("by_k", col("k") == 150)["k"].to_pylist() == [150]
    for build in (lambda: alone.create_index(table, BY_K), lambda: alone.refresh_index("by_k")):
        with pytest.raises(UnsupportedSourceError, match="building an index needs Spark"):
            build()
    alone.optimize_index("by_k")
    assert lake.index("by_k").segments == 1


@pytest.mark.parametrize("global_filter", [False, True])
def test_an_index_that_only_the_driver_can_write(
    spark: SparkSession, lake: Lakebloom, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, global_filter: bool
) -> None:
    """As on HDFS: tasks hand their files to the driver."""
    from lakebloom.index import catalog
    from lakebloom.spark.build import job

    table = keys(tmp_path / "t", *(range(i, i + 100) for i in range(0, 500, 100)))
    config = BloomIndexConfig("by_k", ["k"], global_filter=global_filter)
    lake.create_index(table, config)

    monkeypatch.setattr(catalog, "open_storage", lambda uri, *_: HadoopStorage(uri, spark))
    monkeypatch.setattr(job, "reachable", lambda uri: "/hadoop/" not in uri)
    distant = Lakebloom(spark, tmp_path / "hadoop")
    seen: list[Any] = []
    distant.create_index(table, config, progress=seen.append)
    assert seen[-1].files_done == 5
    assert unit_filters(distant, "by_k") == unit_filters(lake, "by_k")
    keys(table, range(1000, 1100), first=5)
    assert distant.refresh_index("by_k").files == 1
    assert kept(distant, "by_k", col("k") == 1050) == ["5.parquet"]
    assert distant.verify_index("by_k").ok
    assert distant.verify_index("by_k").orphaned == ()


def test_lookup_does_not_guess_a_default(spark: SparkSession, lake: Lakebloom, database: str) -> None:
    spark.sql(f"CREATE TABLE {database}.t (k BIGINT) USING parquet")
    spark.sql(f"INSERT INTO {database}.t VALUES (1)")
    spark.sql(f"ALTER TABLE {database}.t ADD COLUMN c INT DEFAULT 5")
    spark.sql(f"INSERT INTO {database}.t VALUES (2, 7)")
    lake.create_index(f"{database}.t", BloomIndexConfig("t", ["k", "c"], fpp=1e-6))
    assert lake.lookup("t", col("k") == 1, ["k"]).to_pylist() == [{"k": 1}]
    for predicate in (col("c") == 5, col("c").is_null()):
        assert len(kept(lake, "t", predicate)) == 1
        with pytest.raises(
            DataFileError, match=r"does not have the column c.*DEFAULT 5.*Hint: query the table with Spark"
        ):
            lake.lookup("t", predicate)
