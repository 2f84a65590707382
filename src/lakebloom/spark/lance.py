"""Builds a Bloom filter index of a Lance dataset: each task reads one shard of fragments and writes a segment.

It uses only the DataFrame API, so it runs on classic sessions and on Connect. No value passes through the JVM or the
driver. A task that is tried again writes another segment. Only segments that tasks reported are committed; Lance's
``cleanup_old_versions`` removes the others.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from lakebloom.display.tables import Printable
from lakebloom.errors import LakebloomError, NoFilesError
from lakebloom.lance.building import BuiltSegment, ZonePlan, ZoneRule, build_segment
from lakebloom.lance.committing import commit_segments, existing, merged, remove_segments, require_free, segment_record
from lakebloom.lance.index_file import FPP, ROWS_PER_ZONE
from lakebloom.lance.pylance import open_dataset
from lakebloom.lance.segments import DatasetColumn, find_column
from lakebloom.lance.zones import require_type
from lakebloom.sbbf import sizing
from lakebloom.spark.build.job import failures_named, parallelism
from lakebloom.spark.build.tasks import answers
from lakebloom.tuning import LANCE_TASK_ROWS

if TYPE_CHECKING:
    import os

    from lance import LanceDataset
    from lance.dataset import Index
    from pyspark.sql import SparkSession

__all__ = ["LanceIndexReport", "build_index"]


@dataclass(frozen=True, slots=True)
class LanceIndexReport(Printable):
    """The result of building an index of a Lance dataset."""

    dataset: str
    version: int
    """The version of the dataset that has the index."""
    name: str
    column: str
    rule: ZoneRule
    fragments: int
    rows: int
    zones: int
    segments: int
    filter_bytes: int
    index_bytes: int
    """The size of the index's files."""
    elapsed_s: float


@dataclass(frozen=True, slots=True)
class _Job:
    """What every task needs to know."""

    uri: str
    version: int
    column: str
    plan: ZonePlan
    storage_options: Mapping[str, str] | None


def build_index(
    spark: SparkSession,
    dataset: LanceDataset | str | os.PathLike[str],
    column: str,
    *,
    name: str | None = None,
    rule: ZoneRule = "putze",
    rows_per_zone: int = ROWS_PER_ZONE,
    fpp: float = FPP,
    segments: int | None = 1,
    replace: bool = False,
    storage_options: Mapping[str, str] | None = None,
) -> LanceIndexReport:
    """Build a Bloom filter index for a column of a Lance dataset and commit it, so that Lance's queries use it.

    ``rule`` sizes the filters: "putze", as small as the values of each zone allow, or "lance", exactly as Lance
    builds them. The default ``name`` is the name of the column with ``_idx``, as in Lance. ``segments`` is the
    number of files of the index: 1, as in Lance, for which the driver merges the files of the tasks; None keeps one
    file per task. ``replace`` drops an index of the same name in the same commit. ``storage_options`` are those of
    Lance.

    Raises ColumnNotFoundError, UnsupportedTypeError, InvalidArgumentError, IndexExistsError, NoFilesError for a dataset
    without rows, CommitConflictError, BuildFailedError if the Spark job fails, and the errors of opening a dataset.
    """
    started = time.perf_counter()
    plan = ZonePlan(rows_per_zone, fpp, rule)
    if segments is not None:
        segments = sizing.whole("segments", segments, least=1)
    opened = open_dataset(dataset, storage_options)
    if storage_options is None:
        storage_options = opened.latest_storage_options()
    # Tasks need an absolute path and a fixed version.
    job = _Job(_absolute(opened.uri), opened.version, column, plan, storage_options)
    opened = open_dataset(job.uri, storage_options, job.version)
    found = find_column(opened, column)
    require_type(found.type)
    name = f"{found.name}_idx" if name is None else name
    if not replace:
        require_free(opened, name)
    shards = _shards(opened, parallelism(spark))
    if not shards:
        raise NoFilesError(f"the dataset {job.uri} has no rows", hint="write some before it is indexed")
    with failures_named("the Spark job that builds the Lance index failed"):
        built = answers(spark, shards, partial(build_shard, job), BuiltSegment)
    version, sizes = _commit(opened, name, found, built, segments, storage_options)
    return LanceIndexReport(
        dataset=job.uri,
        version=version,
        name=name,
        column=found.name,
        rule=plan.rule,
        fragments=sum(len(segment.fragment_ids) for segment in built),
        rows=sum(segment.rows for segment in built),
        zones=sum(segment.zones for segment in built),
        segments=len(sizes),
        filter_bytes=sum(segment.filter_bytes for segment in built),
        index_bytes=sum(sizes),
        elapsed_s=time.perf_counter() - started,
    )


def _absolute(uri: str) -> str:
    return uri if "://" in uri else str(Path(uri).absolute())


def _shards(dataset: LanceDataset, at_once: int) -> list[list[int]]:
    """Return the fragments in shards of neighbours with about the same number of rows, one shard per task."""
    rows = {fragment.fragment_id: fragment.metadata.num_rows for fragment in dataset.get_fragments()}
    total = sum(rows.values())
    tasks = max(at_once, -(-total // LANCE_TASK_ROWS))
    shards: dict[int, list[int]] = {}
    before = 0
    for fragment_id in sorted(rows):
        middle = before + rows[fragment_id] / 2
        shards.setdefault(int(middle * tasks / total), []).append(fragment_id)
        before += rows[fragment_id]
    return list(shards.values())


def build_shard(job: _Job, fragment_ids: Sequence[int]) -> BuiltSegment:
    """Write the segment of one shard of fragments, in a task."""
    dataset = open_dataset(job.uri, job.storage_options, job.version)
    return build_segment(dataset, find_column(dataset, job.column), fragment_ids, job.plan, job.storage_options)


def _commit(
    dataset: LanceDataset,
    name: str,
    column: DatasetColumn,
    built: Sequence[BuiltSegment],
    segments: int | None,
    storage_options: Mapping[str, str] | None,
) -> tuple[int, list[int]]:
    """Merge and commit segments; return the dataset's version and the size of each file."""
    records = [segment_record(dataset, name, column, segment) for segment in built]
    written = {record.uuid for record in records}
    final: list[Index] = []
    try:
        final = merged(dataset, records, segments)
        committed = commit_segments(dataset, final, existing(dataset, name))
    except LakebloomError:
        remove_segments(dataset, written | {record.uuid for record in final}, storage_options)
        raise
    remove_segments(dataset, written - {record.uuid for record in final}, storage_options)
    return committed.version, [sum(file.size_bytes for file in record.files or ()) for record in final]
