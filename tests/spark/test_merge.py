"""Merging segments in a Spark job: the same filters, one task for each range, and nothing shuffled."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lakebloom import BloomIndexConfig, Lakebloom, col, errors
from lakebloom.index.maintain import optimize
from lakebloom.spark import merge as spark_merge
from lakebloom.spark.build import tasks
from lakebloom.store import merge
from tests.spark.support import unit_filters

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

FILES, KEYS = 12, 6000


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lakebloom:
    """An index in several segments, each merge of which is a Spark job of several ranges."""
    monkeypatch.setattr(spark_merge, "MERGED_HERE_BYTES", 0)
    monkeypatch.setattr(merge, "MERGED_BYTES", 8 * 32 * FILES * 10)  # ten rows a range
    monkeypatch.setattr(optimize, "MERGED_BYTES", 1)
    spark.range(0, KEYS, 1, FILES).write.parquet(str(tmp_path / "table"))
    lake = Lakebloom(spark, tmp_path / "indexes")
    lake.create_index(str(tmp_path / "table"), BloomIndexConfig("i", ["id"], fpp=1e-8))
    return lake


def test_the_job_writes_what_the_driver_would(lake: Lakebloom, monkeypatch: pytest.MonkeyPatch) -> None:
    before = unit_filters(lake, "i")
    segments = len(lake.catalog.index("i").active().segments)
    assert segments > 1
    sent: list[int] = []
    shard_tasks = tasks.shard_tasks

    def counted(spark, shards, work):  # type: ignore[no-untyped-def]
        sent.append(len(shards))
        job = shard_tasks(spark, shards, work)
        assert "Exchange" not in job._jdf.queryExecution().executedPlan().toString(), "nothing is shuffled"
        return job

    monkeypatch.setattr(tasks, "shard_tasks", counted)
    report = lake.optimize_index("i")
    assert (report.committed, report.segments) == (True, 1)
    (segment,) = lake.catalog.index("i").active().segments
    assert sent == [sum(len(tile.parts) for tile in segment.tiles)]
    assert sent[0] > 3
    assert unit_filters(lake, "i") == before
    assert lake.verify_index("i").ok
    assert [lake.lookup("i", col("id") == key).num_rows for key in (0, KEYS - 1, KEYS)] == [1, 1, 0]


def test_a_job_that_fails_leaves_the_index_as_it_was(lake: Lakebloom) -> None:
    index = lake.catalog.index("i")
    path = index.active().segments[0].tiles[0].parts[0].file.path
    data = bytearray(index.storage.read(path))
    data[-1] ^= 1
    index.storage.write(path, bytes(data))
    files = {file.path for file in index.storage.list("segments")}
    with pytest.raises(errors.BuildFailedError, match="a wrong checksum"):
        lake.optimize_index("i")
    assert index.log.newest().version == 1
    now = {file.path for file in index.storage.list("segments")}
    assert files <= now
    # Spark does not wait for other tasks of a job that failed: what they still write is left to vacuum.
    assert all("-merged-" in path for path in now - files)
