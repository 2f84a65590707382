"""Small builds run in the driver: without a job, and with the same index as by one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from lakebloom import BloomIndexConfig, Lakebloom
from lakebloom.store.global_filters import read_global
from tests.spark.conftest import DRIVER_KEY
from tests.spark.support import keys, snapshot, unit_filters, write

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from lakebloom.index.build.report import BuildReport

pytestmark = pytest.mark.spark


@pytest.fixture
def jobs_of(spark: SparkSession) -> Iterator[Callable[[Callable[[], object]], int]]:
    """Count the jobs that something starts."""
    groups = iter(range(1000))

    def count(run: Callable[[], object]) -> int:
        group = f"driver-builds-{next(groups)}"
        spark.sparkContext.setJobGroup(group, "counted")
        run()
        return len(spark.sparkContext.statusTracker().getJobIdsForGroup(group))

    yield count
    spark.sparkContext._jsc.clearJobGroup()


def filters(lake: Lakebloom, name: str) -> list[object]:
    """All bits of an index."""
    version = snapshot(lake, name)
    columns = [unit_filters(lake, name, column) for column in range(len(version.commit.config.columns))]
    merged = [read_global(version.storage, record) for record in version.commit.global_filters]
    return [columns, merged, [segment.num_units for segment in version.commit.segments]]


def said(report: BuildReport) -> BuildReport:
    """What a report says, without its times and its name."""
    return replace(report, name="", seconds={})


@pytest.mark.parametrize(
    "config",
    [
        BloomIndexConfig("x", ["k"]),
        BloomIndexConfig("x", ["k", "text"], granularity="row_group", fpp=1e-4),
        BloomIndexConfig("x", ["text"], granularity=30, global_filter=True),
    ],
    ids=lambda config: str(config.granularity),
)
def test_the_driver_builds_what_tasks_build(
    spark: SparkSession, lake: Lakebloom, tmp_path: Path, config: BloomIndexConfig
) -> None:
    for number in range(7):
        rows = [None if i % 10 == 0 else i for i in range(number * 100, number * 100 + 100)]
        text = [None if row is None else f"text-{row}" for row in rows]
        write(tmp_path / f"t/{number}.parquet", {"k": rows, "text": text}, row_group_size=40)
    (tmp_path / "t/7.parquet").write_bytes(b"PAR1 is not enough")
    here, there = replace(config, name="here"), replace(config, name="there")
    reports = [lake.create_index(tmp_path / "t", here)]
    spark.conf.set(DRIVER_KEY, "0")
    try:
        reports.append(lake.create_index(tmp_path / "t", there))
    finally:
        spark.conf.unset(DRIVER_KEY)
    assert said(reports[0]) == said(reports[1])
    assert [file.uri.rpartition("/")[2] for file in reports[0].skipped] == ["7.parquet"]
    assert filters(lake, "here") == filters(lake, "there")


def test_only_what_is_larger_starts_a_job(
    spark: SparkSession, lake: Lakebloom, tmp_path: Path, jobs_of: Callable[[Callable[[], object]], int]
) -> None:
    frame = spark.read.parquet(str(keys(tmp_path / "t", range(100), range(100, 200))))
    assert jobs_of(lambda: lake.create_index(frame, BloomIndexConfig("small", ["k"]))) == 0
    keys(tmp_path / "t", range(200, 300), first=2)
    assert jobs_of(lambda: lake.refresh_index("small")) == 0
    spark.conf.set(DRIVER_KEY, "100k")  # one file counts as 64 KiB at least, two as more
    try:
        assert jobs_of(lambda: lake.create_index(frame, BloomIndexConfig("large", ["k"]))) == 1
        keys(tmp_path / "t", range(300, 400), first=3)
        assert jobs_of(lambda: lake.refresh_index("large")) == 0
    finally:
        spark.conf.unset(DRIVER_KEY)
    assert lake.index("large").files == lake.index("small").files + 1 == 4
