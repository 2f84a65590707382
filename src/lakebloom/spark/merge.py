"""Merging segments in a Spark job: each task writes one range of rows of one tile. Nothing is shuffled."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lakebloom.sbbf.kernels.choose import load_compiled
from lakebloom.spark.build.job import failures_named, interruptible
from lakebloom.spark.build.tasks import answers
from lakebloom.spark.sources.listing import reachable
from lakebloom.storage import open_index_storage
from lakebloom.store.merge import MergedRange, RunRanges, merge_range
from lakebloom.store.records import PartRecord
from lakebloom.tuning import MERGED_HERE_BYTES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakebloom.index.catalog import Index

__all__ = ["spark_merger"]


def spark_merger(spark: SparkSession, index: Index) -> RunRanges | None:
    """Return what writes merged ranges with Spark; None for an index that only the driver can reach."""
    uri, options = index.storage.uri, index.options
    if not reachable(uri):
        return None

    def work(task: MergedRange) -> PartRecord:
        load_compiled()
        return merge_range(open_index_storage(uri, options), task)

    def run(tasks: Sequence[MergedRange]) -> list[PartRecord]:
        if sum(task.size_bytes for task in tasks) <= MERGED_HERE_BYTES:
            return [merge_range(index.storage, task) for task in tasks]
        with (
            failures_named("the Spark job that merges segments failed"),
            interruptible(spark, f"lakebloom-merge-{uuid.uuid4().hex[:8]}"),
        ):
            return answers(spark, tasks, work, PartRecord)

    return run
