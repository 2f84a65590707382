"""Merges segments without reading a data file."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from lakebloom.display.progress import Progress
from lakebloom.errors import CommitConflictError
from lakebloom.index.catalog import require_same
from lakebloom.index.operation import discarding, new_operation_id, require_stored
from lakebloom.index.reports import OperationReport
from lakebloom.index.snapshot import Snapshot
from lakebloom.store.merge import merge_segments
from lakebloom.tuning import MERGED_BYTES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakebloom.display.progress import Report
    from lakebloom.index.catalog import Catalog, Index
    from lakebloom.sbbf.kernels import BoolArray
    from lakebloom.store.records import Commit, GlobalRecord, SegmentRecord
    from lakebloom.store.segments import Segment


def optimize_index(catalog: Catalog, name: str, progress: Report | None = None) -> OperationReport:
    """Merge small segments, and drop units of files that were indexed again since.

    Filters are copied unchanged, so every result stays the same. Commits nothing if there is nothing to merge or drop.
    """
    index = catalog.index(name)
    commit = index.active()
    snapshot = Snapshot(index.storage, commit)
    operation_id = new_operation_id()
    with discarding(index, operation_id):
        merged = compacted(index, snapshot, snapshot.current, operation_id, progress)
        if merged == commit.segments:
            return OperationReport.of(commit, committed=False)

        def change(base: Commit) -> Commit:
            added = require_base(base, commit, "optimizing")
            changed = msgspec.structs.replace(
                base,
                operation="optimize",
                segments=merged + added,
                global_filters=moved_globals(base, commit.segments, merged),
                summary={"segments_before": len(commit.segments), "segments_after": len(merged)},
            )
            return require_stored(index, changed, base)

        committed = index.log.commit(change)
    assert committed is not None
    return OperationReport.of(committed, committed=True)


def require_base(base: Commit, started: Commit, doing: str) -> tuple[SegmentRecord, ...]:
    """Return the segments that were added after those to replace. Raises CommitConflictError if these are gone."""
    require_same(base, started, doing)
    replaced = started.segments
    if base.segments[: len(replaced)] != replaced:
        raise CommitConflictError(
            f"cannot finish {doing} of index {base.config.name!r}",
            found=f"version {base.version} replaced its segments meanwhile",
            hint="run it again",
        )
    return base.segments[len(replaced) :]


def moved_globals(
    base: Commit, replaced: Sequence[SegmentRecord], merged: Sequence[SegmentRecord]
) -> tuple[GlobalRecord, ...]:
    """Return the global filters after segments were replaced. Values that were dropped stay in them: that is safe."""
    gone = {segment.id for segment in replaced}
    moved = []
    for record in base.global_filters:
        if gone <= set(record.segments):
            ids = {segment.id for segment in merged} | (set(record.segments) - gone)
            record = msgspec.structs.replace(record, segments=tuple(sorted(ids)))
        moved.append(record)
    return tuple(moved)


def compacted(
    index: Index,
    snapshot: Snapshot,
    keep: Sequence[BoolArray],
    operation_id: str,
    progress: Report | None = None,
) -> tuple[SegmentRecord, ...]:
    """Write the kept units into few segments and return these. A segment that keeps all units is not copied.

    ``progress`` gets the number of the table's files, and of the index's bytes, that are done.
    """
    columns = [column.path for column in snapshot.commit.config.columns]
    made: list[SegmentRecord] = []
    batches = _batches(snapshot, keep)
    done = _Merging(batches, progress)
    for batch in batches:
        if len(batch) == 1 and batch[0][1].all():
            made.append(batch[0][0].record)
        else:
            segment_id = f"{operation_id}-merged-{uuid.uuid4().hex[:8]}"
            made.append(merge_segments(index.storage, segment_id, columns, batch))
        done.add(batch)
    return tuple(made)


class _Merging:
    """The progress of a merge."""

    def __init__(self, batches: Sequence[Sequence[tuple[Segment, BoolArray]]], progress: Report | None) -> None:
        self._progress = progress
        records = [segment.record for batch in batches for segment, _ in batch]
        self._now = Progress(0, sum(r.num_files for r in records), 0, sum(r.size_bytes for r in records), 0)
        if progress is not None and records:
            progress(self._now)

    def add(self, batch: Sequence[tuple[Segment, BoolArray]]) -> None:
        """Count merged segments."""
        records = [segment.record for segment, _ in batch]
        self._now = replace(
            self._now,
            files_done=self._now.files_done + sum(record.num_files for record in records),
            bytes_done=self._now.bytes_done + sum(record.size_bytes for record in records),
            rows_done=self._now.rows_done + sum(record.num_rows for record in records),
        )
        if self._progress is not None:
            self._progress(self._now)


def _batches(snapshot: Snapshot, keep: Sequence[BoolArray]) -> list[list[tuple[Segment, BoolArray]]]:
    """Collect segments with the same column types, up to a size."""
    batches: dict[tuple[str, ...], list[list[tuple[Segment, BoolArray]]]] = {}
    for segment, kept in zip(snapshot.segments, keep, strict=True):
        if not kept.any():
            continue
        same_types = batches.setdefault(segment.record.types, [[]])
        size = segment.record.size_bytes + sum(other.record.size_bytes for other, _ in same_types[-1])
        if same_types[-1] and size > MERGED_BYTES:
            same_types.append([])
        same_types[-1].append((segment, kept))
    return [batch for same_types in batches.values() for batch in same_types if batch]
