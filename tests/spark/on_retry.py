"""Tasks that fail after they have written everything. Part of on_cluster."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from lakebloom import BloomIndexConfig, Lakebloom, col
from lakebloom.errors import BuildFailedError
from lakebloom.index.build.plan import BuildPlan, Shard
from lakebloom.spark.build import job, spark_reader
from tests.spark.support import kept, keys, snapshot, unit_filters

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

_run_group, _group_task = job.run_shard, spark_reader._ShardTask


def _lost_at_first(plan: BuildPlan, group: Shard, *, capture: bool) -> Iterator[Any]:
    """Do all the work and lose the answer, as when an executor dies; the second attempt may answer."""
    from pyspark import TaskContext

    rows = list(_run_group(plan, group, capture=capture))
    context = TaskContext.get()
    if context is None or context.attemptNumber() == 0:
        raise ConnectionError("the executor is gone")
    yield from rows


def _always_lost(plan: BuildPlan, group: Shard, *, capture: bool) -> Iterator[Any]:
    list(_run_group(plan, group, capture=capture))
    raise ConnectionError("the executor is gone")


class _LostScan(_group_task):
    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        rows = list(_group_task.__call__(self, batches))
        context = TaskContext.get()
        if rows and (context is None or context.attemptNumber() == 0):
            raise ConnectionError("the executor is gone")
        yield from rows


def lose_answers(spark: SparkSession, directory: Path) -> dict[str, Any]:
    """Build with tasks that lose their first answer, and with tasks that never answer."""
    table = keys(directory / "t", *(range(i, i + 100) for i in range(0, 600, 100)))
    lake = Lakebloom(spark, directory / "indexes")
    lake.create_index(table, BloomIndexConfig("calm", ["k"], fpp=1e-6, global_filter=True))

    found: dict[str, Any] = {}
    job.run_shard = _lost_at_first
    lake.create_index(table, BloomIndexConfig("retried", ["k"], fpp=1e-6, global_filter=True))
    found["parquet"] = _facts(lake, "retried")
    job.run_shard = _always_lost
    try:
        lake.create_index(table, BloomIndexConfig("failed", ["k"], fpp=1e-6))
    except BuildFailedError as error:
        found["failed"] = [str(error), [record.name for record in lake.indexes()]]
    job.run_shard = _run_group
    found["again"] = lake.create_index(table, BloomIndexConfig("failed", ["k"], fpp=1e-6)).version

    spark.range(0, 600, 1, 6).withColumnRenamed("id", "k").write.orc(str(directory / "orc"))
    spark_reader._ShardTask = _LostScan  # type: ignore[misc]
    lake.create_index(spark.read.orc(str(directory / "orc")), BloomIndexConfig("scanned", ["k"], fpp=1e-6))
    spark_reader._ShardTask = _group_task  # type: ignore[misc]
    found["orc"] = _facts(lake, "scanned")
    return found


def _facts(lake: Lakebloom, name: str) -> dict[str, Any]:
    segments = snapshot(lake, name).commit.segments
    groups = [segment.id.split("-")[1] for segment in segments]
    orphaned = len(lake.verify_index(name, sample=0).orphaned)
    everything = _grace(lake, name)
    return {
        "one segment a group": len(groups) == len(set(groups)),
        "files": sum(segment.num_files for segment in segments),
        "orphaned": orphaned,
        "vacuumed": everything,
        "left": len(lake.verify_index(name, sample=0).orphaned),
        "kept": len(kept(lake, name, col("k") == 250)),
        "same": len(unit_filters(lake, name)) == 6,
    }


def _grace(lake: Lakebloom, name: str) -> int:
    """Vacuum as if a day had gone by."""
    assert lake._spark is not None
    lake._spark.conf.set("spark.lakebloom.vacuum.graceMs", "0")
    try:
        return lake.vacuum_index(name, datetime.timedelta(days=7)).files_removed
    finally:
        lake._spark.conf.unset("spark.lakebloom.vacuum.graceMs")
