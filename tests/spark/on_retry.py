"""Tasks that fail after they have written everything, run by test_retry in a process of its own."""

from __future__ import annotations

import datetime
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lakebloom import BloomIndexConfig, Lakebloom, col
from lakebloom.errors import BuildFailedError
from lakebloom.index.plan import BuildPlan, FileGroup
from lakebloom.spark import build, scan
from tests.spark.support import kept, keys, snapshot, unit_filters

_run_group = build.run_group


def _lost_at_first(plan: BuildPlan, group: FileGroup, *, capture: bool) -> Iterator[Any]:
    """Do all the work and lose the answer, as when an executor dies; the second attempt may answer."""
    from pyspark import TaskContext

    rows = list(_run_group(plan, group, capture=capture))
    context = TaskContext.get()
    if context is None or context.attemptNumber() == 0:
        raise ConnectionError("the executor is gone")
    yield from rows


def _always_lost(plan: BuildPlan, group: FileGroup, *, capture: bool) -> Iterator[Any]:
    list(_run_group(plan, group, capture=capture))
    raise ConnectionError("the executor is gone")


class _LostScan(scan._GroupTask):
    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        rows = list(scan._GroupTask.__call__(self, batches))
        context = TaskContext.get()
        if rows and (context is None or context.attemptNumber() == 0):
            raise ConnectionError("the executor is gone")
        yield from rows


def main(directory: Path) -> dict[str, Any]:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2,2]").config("spark.ui.enabled", "false")  # two cores, two attempts
    builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.ui.showConsoleProgress", "false")
    spark = builder.config("spark.sql.shuffle.partitions", "4").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    table = keys(directory / "t", *(range(i, i + 100) for i in range(0, 600, 100)))
    lake = Lakebloom(spark, directory / "indexes")
    lake.create_index(table, BloomIndexConfig("calm", ["k"], fpp=1e-6, global_filter=True))

    found: dict[str, Any] = {}
    build.run_group = _lost_at_first
    lake.create_index(table, BloomIndexConfig("retried", ["k"], fpp=1e-6, global_filter=True))
    found["parquet"] = _facts(lake, directory, "retried")
    build.run_group = _always_lost
    try:
        lake.create_index(table, BloomIndexConfig("failed", ["k"], fpp=1e-6))
    except BuildFailedError as error:
        found["failed"] = [str(error), [str(path) for path in (directory / "indexes/failed").rglob("*.arrow")]]
    build.run_group = _run_group

    spark.range(0, 600, 1, 6).withColumnRenamed("id", "k").write.orc(str(directory / "orc"))
    scan._GroupTask = _LostScan  # type: ignore[misc]
    lake.create_index(spark.read.orc(str(directory / "orc")), BloomIndexConfig("scanned", ["k"], fpp=1e-6))
    found["orc"] = _facts(lake, directory, "scanned")
    spark.stop()
    return found


def _facts(lake: Lakebloom, directory: Path, name: str) -> dict[str, Any]:
    segments = snapshot(lake, name).entry.segments
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


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]))))  # noqa: T201
