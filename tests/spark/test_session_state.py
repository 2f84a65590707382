"""Every test finds the shared session as if it were the first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lakebloom import BloomIndexConfig, Lakebloom
from tests.session_state import SessionState
from tests.spark.support import keys

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

# Spark's list of tables is made by code that it compiles.
pytestmark = pytest.mark.usefixtures("compiled")
NEW, CHANGED = "spark.sql.files.maxPartitionBytes", "spark.sql.shuffle.partitions"


def test_a_session_becomes_what_it_was(spark: SparkSession, database: str, tmp_path: Path) -> None:
    spark.range(1).createOrReplaceTempView("stays")
    state, partitions = SessionState(spark), spark.conf.get(CHANGED)
    other = spark.newSession()
    other.createDataFrame([(1,)], "k int").collect()
    assert spark.getActiveSession() is other
    spark.conf.set(NEW, "1234567")
    spark.conf.set(CHANGED, "77")
    spark.range(1).createOrReplaceTempView("goes")
    spark.range(2).cache()
    spark.sql(f"USE {database}")
    lake = Lakebloom(spark, tmp_path / "indexes")
    lake.create_index(keys(tmp_path / "t", [1], [2]), BloomIndexConfig("i", ["k"]))
    lake.enable(auto_refresh=True)

    state.restore()
    assert spark.getActiveSession() is spark
    assert (spark.conf.get(NEW), spark.conf.get(CHANGED)) != ("1234567", "77")
    assert spark.conf.get(CHANGED) == partitions
    assert [table.name for table in spark.catalog.listTables()] == ["stays"]
    assert spark.catalog.currentDatabase() == "default"
    assert not spark.range(2).storageLevel.useMemory
    assert not lake.enabled
    assert spark.read.parquet(str(tmp_path / "t")).where("k = 1").count() == 1
