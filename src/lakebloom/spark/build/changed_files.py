"""Rejects files that changed while Spark read them, and files that are too new.

A task that opens files itself checks them before and after. A task that gets rows from Spark cannot. So the driver
lists the table again after the job: a file with the same identity as in the plan did not change. The units of the other
files are removed from their segments; these files stay unindexed, and queries read them.

Spark's listings seldom have ETags. An object is indexed only when the second of its last change is over
(``tables/listing/settled.py``), so that a query sees in its own listing that the object was overwritten later.
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
    """Wait until new files are old enough. Return the groups without files that take too long, and these by group."""
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
    """Return the result of a build, with the files that no task got."""
    return replace(
        result,
        groups=[
            msgspec.structs.replace(done, skipped=done.skipped + skipped.get(done.group, ())) for done in result.groups
        ],
    )


def without_changed(
    result: BuildResult, plan: BuildPlan, storage: Storage, groups: Sequence[FileGroup], listed: Iterable[TableFile]
) -> BuildResult:
    """Return the result of a build without files whose identity in ``listed`` differs from that in the groups."""
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
    """Return the columns of a segment, which are needed to read it."""
    return ConfigRecord(
        name=plan.index_uri.rpartition("/")[2],
        columns=tuple(ColumnRecord(column.path, column.type) for column in plan.columns),
        fpp=plan.fpp,
        expected_items=plan.expected_items,
        granularity=plan.granularity,
        global_filter=plan.global_blocks is not None,
    )
