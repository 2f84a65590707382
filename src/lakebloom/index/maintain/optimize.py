"""Merges segments without reading a data file, into few wide ones.

A lookup reads a few planes of each tile, however wide it is: so it costs the more, the more segments there are, and
hardly more if they are wide. A large segment is not written again for the sake of a few small ones: it waits until they
are worth it, so that the work of all merges together grows no faster than the table.
"""

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
from lakebloom.tuning import LARGE_SEGMENT, MERGED_BYTES, MOST_WIDE_UNITS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakebloom.display.progress import Report
    from lakebloom.index.catalog import Catalog, Index
    from lakebloom.sbbf.kernels import BoolArray
    from lakebloom.store.merge import RunRanges
    from lakebloom.store.records import Commit, GlobalRecord, SegmentRecord
    from lakebloom.store.segments import Segment


def optimize_index(
    catalog: Catalog, name: str, progress: Report | None = None, run: RunRanges | None = None
) -> OperationReport:
    """Merge segments, and drop units of files that were indexed again since.

    Filters are copied unchanged, so every result stays the same. Commits nothing if there is nothing to merge or drop.
    ``run`` does the work elsewhere, for example in a Spark job; without it, it is done here.
    """
    index = catalog.index(name)
    commit = index.active()
    snapshot = Snapshot(index.storage, commit)
    operation_id = new_operation_id()
    with discarding(index, operation_id):
        merged = compacted(index, snapshot, snapshot.current, operation_id, progress, run)
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
    run: RunRanges | None = None,
) -> tuple[SegmentRecord, ...]:
    """Write the kept units into few segments and return these. A segment that needs no change is not copied.

    ``progress`` gets the number of the table's files, and of the index's bytes, that are done.
    """
    columns = [column.path for column in snapshot.commit.config.columns]
    made: list[SegmentRecord] = []
    batches = _batches(snapshot, keep)
    done = _Merging(batches, progress)
    for batch in batches:
        if len(batch) == 1 and batch[0][1].all() and is_merged(batch[0][0].record):
            made.append(batch[0][0].record)
        else:
            segment_id = f"{operation_id}-merged-{uuid.uuid4().hex[:8]}"
            made.append(merge_segments(index.storage, segment_id, columns, batch, run))
        done.add(batch)
    return tuple(made)


def is_merged(record: SegmentRecord) -> bool:
    """Tell whether the filters of each size are in one tile."""
    sizes: dict[tuple[int, int], list[int]] = {}
    for tile in sorted(record.tiles, key=lambda tile: tile.layer):
        sizes.setdefault((tile.column, tile.number), []).append(tile.num_blocks)
    return len({(column, *blocks) for (column, _), blocks in sizes.items()}) == len(sizes)


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
    """Collect segments with the same column types, up to a number of units. A large one may stay alone."""
    alike: dict[tuple[str, ...], list[tuple[Segment, BoolArray]]] = {}
    for segment, kept in zip(snapshot.segments, keep, strict=True):
        if kept.any():
            alike.setdefault(segment.record.types, []).append((segment, kept))
    batches: list[list[tuple[Segment, BoolArray]]] = []
    for of_types in alike.values():
        alone = _large(of_types)
        batches += [[each] for each in of_types if each[0].record.id in alone]
        units = MOST_WIDE_UNITS
        for each in of_types:
            if each[0].record.id not in alone:
                units += int(each[1].sum())
                if units > MOST_WIDE_UNITS:
                    batches.append([])
                    units = int(each[1].sum())
                batches[-1].append(each)
    return batches


def _large(segments: Sequence[tuple[Segment, BoolArray]]) -> set[str]:
    """Return the segments that are many times as large as all smaller ones together, and need no change."""
    found: set[str] = set()
    sizes = {segment.record.id: segment.record.size_bytes for segment, _ in segments}
    whole = {segment.record.id for segment, kept in segments if kept.all() and is_merged(segment.record)}
    rest = sum(sizes.values())
    for segment_id in sorted(sizes, key=sizes.__getitem__, reverse=True):
        rest -= sizes[segment_id]
        if segment_id not in whole or sizes[segment_id] < max(MERGED_BYTES, LARGE_SEGMENT * rest):
            break
        found.add(segment_id)
    return found
