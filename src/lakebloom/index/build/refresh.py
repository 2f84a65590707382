"""Brings an index up to date with its table.

*Quick*: new and changed files become new segments; the cost is that of these files. Units of files that changed or
are gone stay, and are never trusted; if most files are gone, their units are dropped. *Full*: these are dropped too,
and so is what is damaged, and segments are merged; with a global filter, which cannot forget, everything is built
again. A quick refresh does that, too, if the new values would overfill a global filter that may be larger: each time
the table has grown by half or more.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec
import numpy as np

from lakebloom.errors import CommitConflictError, IndexStateError, InvalidArgumentError, LakebloomError
from lakebloom.index.build.create import require_something, store_globals, summary_of
from lakebloom.index.build.plan import BuildResult
from lakebloom.index.build.report import BuildReport
from lakebloom.index.build.run import (
    grows_at,
    merger,
    plan_build,
    require_importable,
    resized_globals,
    run_build,
    shape_of,
)
from lakebloom.index.catalog import require_active
from lakebloom.index.maintain.damage import examine
from lakebloom.index.maintain.optimize import compacted, moved_globals, require_base
from lakebloom.index.maintain.shrinkage import files_gone, is_mostly_gone, shrinkage
from lakebloom.index.operation import Phases, discard, discarding, new_operation_id, require_stored
from lakebloom.index.snapshot import Snapshot
from lakebloom.index.units import Shape
from lakebloom.store.global_filters import read_global, write_global
from lakebloom.tables.columns import format_name
from lakebloom.tuning import MOST_GLOBAL_FPP, REFRESHED_BYTES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakebloom.index.build.plan import BuildPlan
    from lakebloom.index.build.run import Workshop
    from lakebloom.index.catalog import Index
    from lakebloom.sbbf.filter import Sbbf
    from lakebloom.store.records import Commit, GlobalRecord, SegmentRecord, TableRecord
    from lakebloom.tables.file_identity import TableFile

RefreshMode: TypeAlias = Literal["quick", "full"]


_STARTS = 3
"""How often a refresh starts before it gives up because other writers replace its base."""


def refresh_index(
    workshop: Workshop,
    name: str,
    mode: RefreshMode = "quick",
    *,
    from_embedded: bool = False,
    allow_shrink: bool = False,
) -> BuildReport:
    """Index what is new since the last version. Commits nothing if nothing is new.

    Raises TableShrunkError for a table that lost most of its files (``shrinkage``), unless ``allow_shrink``.
    """
    if mode not in ("quick", "full"):
        raise InvalidArgumentError('mode must be "quick" or "full"', found=mode)
    try:
        for _ in range(_STARTS - 1):
            with suppress(_BaseChangedError):
                return _refreshed(workshop, name, mode, from_embedded=from_embedded, allow_shrink=allow_shrink)
        return _refreshed(workshop, name, mode, from_embedded=from_embedded, allow_shrink=allow_shrink)
    except BaseException:
        workshop.catalog.index(name).release()  # what was read of it may be the reason
        raise


def _refreshed(
    workshop: Workshop, name: str, mode: RefreshMode, *, from_embedded: bool, allow_shrink: bool
) -> BuildReport:
    refresh = _Refresh(workshop, name, mode, from_embedded=from_embedded)
    if not allow_shrink:
        refresh.require_table()
    if mode == "full":
        return refresh.full()
    if not refresh.is_mostly_gone:
        return refresh.quick()
    # Otherwise the next refresh would find the same files gone again.
    dropped = refresh.without_gone()
    report = _Refresh(workshop, name, mode, from_embedded=from_embedded).quick()
    return report if report.committed else dropped


class _BaseChangedError(CommitConflictError):
    """Another writer replaced the base of this refresh. It starts again from the newest version."""


class _Refresh:
    """One refresh: the version it starts from, the table's files now, and those of them that are new."""

    def __init__(self, workshop: Workshop, name: str, mode: RefreshMode, *, from_embedded: bool) -> None:
        self._workshop = workshop
        self._phases = Phases()
        self._index = workshop.catalog.index(name)
        self._commit = self._index.active()
        self._from_embedded = from_embedded
        if from_embedded:
            require_importable(self._commit.config, self._commit.table)
        with self._phases.timed("list"):
            self._table = workshop.builder.table(self._commit.table)
            self._require_columns()
            self._listed = workshop.builder.list_files(self._table)
            self._sound = self._commit
            if mode == "quick":
                self._snapshot = self._index.opened(self._commit)
            else:
                self._sound = _without_damage(self._index, self._commit)
                self._snapshot = Snapshot(self._index.storage, self._sound)
            self._fresh = self._snapshot.unknown(self._listed)

    def require_table(self) -> None:
        """Raise TableShrunkError if the table lost most of its files."""
        found = shrinkage(self._snapshot, self._table, self._listed, self._workshop.catalog.options)
        if found is not None:
            raise found.error(self._index.name)

    @property
    def is_mostly_gone(self) -> bool:
        """Whether most indexed files are gone, whatever came in their place."""
        return is_mostly_gone(self._snapshot, self._listed)

    def without_gone(self) -> BuildReport:
        """Drop the units of files that are gone or changed. No data file is read."""
        return self._replace(None, BuildResult(()), self._dropped())

    def _gone(self) -> int:
        return files_gone(self._snapshot, self._table, self._listed)

    def _dropped(self) -> int:
        return sum(int(np.count_nonzero(~keep)) for keep in self._snapshot.listed(self._listed))

    def quick(self) -> BuildReport:
        """Add segments for the new files."""
        if not self._fresh:
            return self._moved()
        plan = self._plan(self._fresh)
        largest = plan.global_blocks or 0
        if self._commit.segments:
            # New values are inserted into the existing filters. Their sizes divide the largest, so it folds to each.
            sizes = [record.num_blocks for record in self._commit.global_filters]
            plan = replace(plan, global_blocks=math.lcm(*sizes) if sizes else None)
        result = self._build(plan, self._fresh)
        if not result.segments:
            return self._moved(result)
        if self._overfills(plan, result, largest):
            discard(self._index, plan.build_id)
            return self._rebuilt(0)
        with self._phases.timed("commit"), discarding(self._index, plan.build_id):
            source = self._stored_source(plan.build_id)
            committed = self._index.log.commit(lambda base: self._added(base, plan, result, source))
        assert committed is not None
        return BuildReport.of(committed, result, self._phases.seconds)

    def _overfills(self, plan: BuildPlan, result: BuildResult, largest: int) -> bool:
        """Tell whether the new values are too many for a global filter that may be larger."""
        limit = grows_at(self._commit.config)
        return bool(self._commit.segments) and any(
            record.num_blocks < largest and self._merged(record, plan, result).fpp > limit
            for record in self._commit.global_filters
        )

    def full(self) -> BuildReport:
        """Replace all segments by few, with the files that the table has now."""
        dropped = self._dropped()
        whole = len(self._sound.global_filters) == len(self._commit.config.columns)
        if self._commit.config.global_filter and self._listed and (self._fresh or dropped or not whole):
            return self._rebuilt(dropped)
        if not self._fresh:
            return self._replace(None, BuildResult(()), dropped)
        plan = self._plan(self._fresh)
        return self._replace(plan, self._build(plan, self._fresh), dropped)

    def _rebuilt(self, dropped: int) -> BuildReport:
        """Build everything again: a global filter can neither forget nor grow."""
        plan = self._plan(self._listed)
        result = self._build(plan, self._listed)
        return self._replace(plan, resized_globals(result, self._commit.config), dropped)

    def _require_columns(self) -> None:
        """Raise IndexStateError if the name belongs to another table by now; a log has ids for that."""
        if self._table.record.catalog is None or self._table.record.snapshot is not None:
            return
        types = self._table.record.schema.types
        for column in self._commit.config.columns:
            if types.get(column.path) != column.type:
                raise IndexStateError(
                    f"table {self._table.record.name} is not the table that index {self._index.name!r} was built from",
                    found=f"column {format_name(column.path)} {types.get(column.path, 'is not there')}, "
                    f"which was {column.type} when it was indexed",
                    hint="delete the index, and create it again",
                )

    def _stored_source(self, operation_id: str) -> TableRecord:
        return self._table.stored(self._index.storage, operation_id, self._commit.table)

    def _moved(self, result: BuildResult | None = None) -> BuildReport:
        """Commit the catalog's description of the table if it has changed, and nothing otherwise."""
        operation_id = new_operation_id()
        with self._phases.timed("commit"), discarding(self._index, operation_id):
            source = self._stored_source(operation_id)
            if source == self._commit.table:
                return self._unchanged(result)

            def change(base: Commit) -> Commit:
                self._require_same(base)
                moved = msgspec.structs.replace(
                    base, operation="refresh", table=source, summary={}, files_gone=self._gone()
                )
                return require_stored(self._index, moved, base)

            committed = self._index.log.commit(change)
        assert committed is not None
        return BuildReport.of(committed, BuildResult(()) if result is None else result, self._phases.seconds)

    def _unchanged(self, result: BuildResult | None = None) -> BuildReport:
        return BuildReport.unchanged(self._commit, self._phases.seconds, () if result is None else result.rejected)

    def _plan(self, files: Sequence[TableFile]) -> BuildPlan:
        config, table = self._commit.config, self._table.record
        with self._phases.timed("plan"):
            try:
                shape = shape_of(self._workshop, config, table, files, self._listed, from_embedded=self._from_embedded)
            except LakebloomError:
                shape = Shape(units=len(files), rows=0)  # the build will reject them all and say why
            return plan_build(
                self._workshop, config, table, files, self._listed, shape, from_embedded=self._from_embedded
            )

    def _build(self, plan: BuildPlan, files: Sequence[TableFile]) -> BuildResult:
        with self._phases.timed("build"):
            return run_build(self._workshop, self._index, plan, self._table.record, files, REFRESHED_BYTES)

    def _added(self, base: Commit, plan: BuildPlan, result: BuildResult, table: TableRecord) -> Commit:
        self._require_same(base)
        added = msgspec.structs.replace(
            base,
            operation="refresh",
            segments=base.segments + result.segments,
            global_filters=self._extended(base, plan, result),
            table=table,
            summary=summary_of(result),
            files_gone=self._gone(),
        )
        return require_stored(self._index, added, base)

    def _extended(self, base: Commit, plan: BuildPlan, result: BuildResult) -> tuple[GlobalRecord, ...]:
        """OR the new values into the global filters of the newest version."""
        if not base.segments:
            return store_globals(self._index, plan, resized_globals(result, base.config), result.segments)
        extended = []
        for record in base.global_filters:
            if plan.global_blocks is None or plan.global_blocks % record.num_blocks:
                raise self._conflict(base)
            merged = self._merged(record, plan, result)
            if merged.fpp > MOST_GLOBAL_FPP:
                continue
            ids = [*record.segments, *(segment.id for segment in result.segments)]
            label, prefix = str(record.column), f"{plan.build_id}-"
            extended.append(write_global(self._index.storage, record.column, label, merged, ids, prefix))
        return tuple(extended)

    def _merged(self, record: GlobalRecord, plan: BuildPlan, result: BuildResult) -> Sbbf:
        return read_global(self._index.storage, record) | result.global_filters[record.column].fold(record.num_blocks)

    def _replace(self, plan: BuildPlan | None, result: BuildResult, dropped: int) -> BuildReport:
        """Commit the new segments and the remaining units of the old ones, merged."""
        replaced = self._commit.segments
        rebuilt = bool(result.global_filters)
        if rebuilt:
            require_something(result, len(self._listed))
        operation_id = new_operation_id() if plan is None else plan.build_id
        with self._phases.timed("commit"), discarding(self._index, operation_id):
            kept_whole = () if rebuilt else self._sound.segments
            everything = msgspec.structs.replace(self._commit, segments=kept_whole + result.segments)
            snapshot = Snapshot(self._index.storage, everything, self._snapshot)
            run = merger(self._workshop, self._index)
            kept = compacted(self._index, snapshot, snapshot.listed(self._listed), operation_id, run=run)
            if kept == replaced and self._sound is self._commit:
                return self._moved(result)
            source = self._stored_source(operation_id)

            def change(base: Commit) -> Commit:
                self._require_same(base)
                added = require_base(base, self._commit, "the full refresh")
                if added and rebuilt:
                    raise self._conflict(base)
                changed = msgspec.structs.replace(
                    base,
                    operation="refresh",
                    segments=kept + added,
                    global_filters=(
                        store_globals(self._index, plan, result, kept)
                        if plan is not None and rebuilt
                        else self._moved_globals(base, kept)
                    ),
                    table=source,
                    summary={**summary_of(result), "units_dropped": dropped},
                    files_gone=0,
                )
                return require_stored(self._index, changed, base)

            committed = self._index.log.commit(change)
        assert committed is not None
        if result.segments:
            discard(self._index, operation_id, committed)  # they were merged
        return BuildReport.of(committed, result, self._phases.seconds)

    def _moved_globals(self, base: Commit, kept: Sequence[SegmentRecord]) -> tuple[GlobalRecord, ...]:
        sound = {record.file.path for record in self._sound.global_filters}
        damaged = {record.file.path for record in self._commit.global_filters} - sound
        moved = moved_globals(base, self._commit.segments, kept)
        return tuple(record for record in moved if record.file.path not in damaged)

    def _require_same(self, base: Commit) -> None:
        """Raise _BaseChangedError if another index replaced this one."""
        require_active(base)
        if base.origin != self._commit.origin:
            raise self._conflict(base)

    def _conflict(self, base: Commit) -> _BaseChangedError:
        return _BaseChangedError(
            f"cannot finish the refresh of index {self._index.name!r}",
            found=f"version {base.version} changed its segments or its global filters meanwhile",
            hint="run it again",
        )


def _without_damage(index: Index, commit: Commit) -> Commit:
    """Return a commit without the segments and filters of which a file is damaged; itself where none is."""
    damage = examine(index.storage, commit)
    damage.require_readable()
    if not damage.errors:
        return commit
    return msgspec.structs.replace(
        commit,
        segments=tuple(segment for segment in commit.segments if segment.id not in damage.segments),
        global_filters=tuple(f for f in commit.global_filters if f.column not in damage.global_filters),
    )
