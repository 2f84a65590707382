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

from lakebloom.index.build.plan import RejectedFile, ShardResult
from lakebloom.store.merge import merge_segments
from lakebloom.store.records import ColumnRecord, ConfigRecord
from lakebloom.store.segments import Segment
from lakebloom.tables.file_identity import unlike
from lakebloom.tables.listing.settled import TOO_NEW, too_new_reason, unsettled

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from lakebloom.index.build.plan import BuildPlan, BuildResult, Shard
    from lakebloom.storage import Storage
    from lakebloom.store.records import SegmentRecord
    from lakebloom.tables.file_identity import TableFile


def settled(shards: Sequence[Shard]) -> tuple[list[Shard], dict[int, tuple[RejectedFile, ...]]]:
    """Wait until new files are old enough. Return the shards without files that take too long, and these by shard."""
    late = set(unsettled((file for shard in shards for file in shard.files), etag_known=False))
    ready = [replace(shard, files=tuple(file for file in shard.files if file not in late)) for shard in shards]
    rejected = {
        shard.number: tuple(
            RejectedFile(file.uri, TOO_NEW, too_new_reason(file)) for file in shard.files if file in late
        )
        for shard in shards
    }
    return ready, rejected


def with_rejected(result: BuildResult, rejected: Mapping[int, tuple[RejectedFile, ...]]) -> BuildResult:
    """Return the result of a build, with the files that no task got."""
    return replace(
        result,
        shards=[
            msgspec.structs.replace(done, rejected=done.rejected + rejected.get(done.shard, ()))
            for done in result.shards
        ],
    )


def without_changed(
    result: BuildResult, plan: BuildPlan, storage: Storage, shards: Sequence[Shard], listed: Iterable[TableFile]
) -> BuildResult:
    """Return the result of a build without files whose identity in ``listed`` differs from that in the shards."""
    now = {file.uri: file for file in listed}
    changed = {shard.number: set(unlike(now, shard.files)) for shard in shards}
    if not any(changed.values()):
        return result
    return replace(result, shards=[_cut(done, plan, storage, changed[done.shard]) for done in result.shards])


def _cut(done: ShardResult, plan: BuildPlan, storage: Storage, changed: set[TableFile]) -> ShardResult:
    if not changed:
        return done
    rejected = tuple(
        RejectedFile(file.uri, "FILE_CHANGED", "the file changed while it was indexed")
        for file in sorted(changed, key=lambda file: file.uri)
    )
    segment = None if done.segment is None else _rewritten(done.segment, done.shard, plan, storage, changed)
    return msgspec.structs.replace(done, segment=segment, rejected=done.rejected + rejected)


def _rewritten(
    record: SegmentRecord, shard: int, plan: BuildPlan, storage: Storage, changed: set[TableFile]
) -> SegmentRecord | None:
    segment = Segment(storage, record, _config(plan))
    files = segment.units.files.rows(np.arange(record.num_files))
    keep = segment.units.of_files(np.array([file not in changed for file in files], dtype=np.bool_))
    kept = None
    if keep.any():
        columns = [column.path for column in plan.columns]
        kept = merge_segments(storage, plan.segment_id(shard), columns, [(segment, keep)])
    for file in record.files:
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
