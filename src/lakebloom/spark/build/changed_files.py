"""Leaving out what changed while Spark read it, and what is too new to be read.

A task that opens files itself looks at them before and after. One that is sent rows by Spark cannot, so the driver
lists the table again when the job is done: a file that is still what it was when the plan was made was that all the
time. The units of the others are cut out of their segments; queries then read these files, as they read any file that
the index does not know.

Spark's listings seldom have ETags. So that a query can tell by its own listing that an object was overwritten, objects
are indexed only when the second of their last change is over (``tables/listing/settled.py``).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from lakebloom.index.build.plan import GroupResult, SkippedFile
from lakebloom.store.merge import merge_segments
from lakebloom.store.records import ColumnRecord, ConfigRecord
from lakebloom.store.segments import Segment
from lakebloom.tables.file_identity import unlike
from lakebloom.tables.listing.settled import TOO_NEW, too_new_reason, unsettled

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from lakebloom.index.build.plan import BuildPlan, BuildResult, FileGroup
    from lakebloom.storage import Storage
    from lakebloom.store.records import SegmentRecord
    from lakebloom.tables.file_identity import TableFile


def settled(groups: Sequence[FileGroup]) -> tuple[list[FileGroup], dict[int, tuple[SkippedFile, ...]]]:
    """Wait for new files, and return the groups without those that take too long; these by the group's number."""
    late = set(unsettled((file for group in groups for file in group.files), etag_known=False))
    ready = [replace(group, files=tuple(file for file in group.files if file not in late)) for group in groups]
    skipped = {
        group.number: tuple(
            SkippedFile(file.uri, TOO_NEW, too_new_reason(file)) for file in group.files if file in late
        )
        for group in groups
    }
    return ready, skipped


def with_skipped(result: BuildResult, skipped: Mapping[int, tuple[SkippedFile, ...]]) -> BuildResult:
    """Return what was built, with files that no task was given."""
    return replace(
        result,
        groups=[
            msgspec.structs.replace(done, skipped=done.skipped + skipped.get(done.group, ())) for done in result.groups
        ],
    )


def without_changed(
    result: BuildResult, plan: BuildPlan, storage: Storage, groups: Sequence[FileGroup], listed: Iterable[TableFile]
) -> BuildResult:
    """Return what was built, without the files that ``listed`` does not show as the groups have them."""
    now = {file.uri: file for file in listed}
    changed = {group.number: set(unlike(now, group.files)) for group in groups}
    if not any(changed.values()):
        return result
    return replace(result, groups=[_cut(done, plan, storage, changed[done.group]) for done in result.groups])


def _cut(done: GroupResult, plan: BuildPlan, storage: Storage, changed: set[TableFile]) -> GroupResult:
    if not changed:
        return done
    skipped = tuple(
        SkippedFile(file.uri, "FILE_CHANGED", "the file changed while it was indexed")
        for file in sorted(changed, key=lambda file: file.uri)
    )
    segment = None if done.segment is None else _rewritten(done.segment, done.group, plan, storage, changed)
    return msgspec.structs.replace(done, segment=segment, skipped=done.skipped + skipped)


def _rewritten(
    record: SegmentRecord, group: int, plan: BuildPlan, storage: Storage, changed: set[TableFile]
) -> SegmentRecord | None:
    segment = Segment(storage, record, _config(plan))
    keep = np.array([file not in changed for file in segment.units.files], dtype=np.bool_)
    kept = None
    if keep.any():
        columns = [column.path for column in plan.columns]
        kept = merge_segments(storage, plan.segment_id(group), columns, [(segment, keep)])
    for file in (record.units, *(tile.file for tile in record.tiles)):
        storage.delete(file.path)
    return kept


def _config(plan: BuildPlan) -> ConfigRecord:
    """Return what a segment needs to know to be read: its columns."""
    return ConfigRecord(
        name=plan.index_uri.rpartition("/")[2],
        columns=tuple(ColumnRecord(column.path, column.type) for column in plan.columns),
        fpp=plan.fpp,
        expected_items=plan.expected_items,
        granularity=plan.granularity,
        global_filter=plan.global_blocks is not None,
    )
