"""Fewer, cleaner segments: merging them without reading a data file."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from lakebloom.errors import CommitConflictError
from lakebloom.index.catalog import require_active
from lakebloom.index.reports import OperationReport
from lakebloom.index.snapshot import Snapshot
from lakebloom.store.merge import merge_segments

if TYPE_CHECKING:
    from lakebloom.index.catalog import Catalog, Index
    from lakebloom.sbbf.kernels import BoolArray
    from lakebloom.store.records import Entry, SegmentRecord
    from lakebloom.store.segments import Segment
    from lakebloom.tables.files import TableFile

_MAX_MERGED_BYTES = 512 << 20
"""A merged segment's tiles are held in memory one group at a time; this bounds them."""


def optimize_index(catalog: Catalog, name: str) -> OperationReport:
    """Merge small segments into few, and leave out units of files that were indexed again since.

    Filters are copied as they are: every answer stays the same. Commits nothing where there is nothing to gain.
    """
    index = catalog.index(name)
    entry = index.active()
    snapshot = Snapshot(index.storage, entry)
    merged = compacted(index, snapshot, None)
    if merged == entry.segments:
        return OperationReport.of(entry, committed=False)
    replaced = [segment.id for segment in entry.segments]

    def change(base: Entry) -> Entry:
        require_active(base)
        if [segment.id for segment in base.segments[: len(replaced)]] != replaced:
            raise CommitConflictError(
                f"cannot finish optimizing index {name!r}",
                found=f"version {base.version} replaced its segments meanwhile",
                hint="run it again",
            )
        added = base.segments[len(replaced) :]
        return msgspec.structs.replace(
            base,
            operation="optimize",
            segments=merged + added,
            global_filters=tuple(
                msgspec.structs.replace(record, segments=tuple(segment.id for segment in merged + added))
                if set(replaced) <= set(record.segments)
                else record
                for record in base.global_filters
            ),
            summary={"segments_before": len(replaced), "segments_after": len(merged)},
        )

    committed = index.log.commit(change)
    assert committed is not None
    return OperationReport.of(committed, committed=True)


def compacted(index: Index, snapshot: Snapshot, listed: set[TableFile] | None) -> tuple[SegmentRecord, ...]:
    """Write the units that still count into few segments, and return these in an order that keeps "last wins".

    ``listed``: the table's files now, None to keep all that the index knows.
    """
    columns = [column.path for column in snapshot.entry.config.columns]
    made: list[SegmentRecord] = []
    for group in _groups(snapshot, listed):
        if len(group) == 1 and group[0][1].all():
            made.append(group[0][0].record)
        else:
            made.append(merge_segments(index.storage, f"merged-{uuid.uuid4().hex[:20]}", columns, group))
    return tuple(made)


def _groups(snapshot: Snapshot, listed: set[TableFile] | None) -> list[list[tuple[Segment, BoolArray]]]:
    """Gather segments that were hashed under the same types, up to a size."""
    groups: dict[tuple[str, ...], list[list[tuple[Segment, BoolArray]]]] = {}
    for segment, current in zip(snapshot.segments, snapshot.current, strict=True):
        keep = current
        if listed is not None:
            keep = keep & np.array([file in listed for file in segment.units.files], dtype=np.bool_)
        if not keep.any():
            continue
        same_types = groups.setdefault(segment.record.types, [[]])
        size = segment.record.size_bytes + sum(other.record.size_bytes for other, _ in same_types[-1])
        if same_types[-1] and size > _MAX_MERGED_BYTES:
            same_types.append([])
        same_types[-1].append((segment, keep))
    return [group for same_types in groups.values() for group in same_types if group]
