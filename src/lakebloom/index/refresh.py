"""Bringing an index up to date with its table.

*Quick*: files that are new, or changed, become new segments; the cost is that of these files. Units of files that
changed or vanished stay behind, and are never trusted. *Full*: these go too, and segments are compacted; with a global
filter, which cannot forget, everything is built anew.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from lakebloom.errors import CommitConflictError, InvalidArgumentError
from lakebloom.index.building import Phases, discard, plan_build, resized_globals, run_build
from lakebloom.index.catalog import require_active
from lakebloom.index.compact import compacted
from lakebloom.index.create import WRITER, store_globals, summary_of
from lakebloom.index.plan import BuildResult
from lakebloom.index.reports import BuildReport
from lakebloom.index.snapshot import Snapshot
from lakebloom.store.global_filters import read_global, write_global

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakebloom.index.building import Workshop
    from lakebloom.index.catalog import Index
    from lakebloom.index.plan import BuildPlan
    from lakebloom.store.records import Entry, GlobalRecord
    from lakebloom.tables.files import TableFile

RefreshMode: TypeAlias = Literal["quick", "full"]


def refresh_index(workshop: Workshop, name: str, mode: RefreshMode = "quick") -> BuildReport:
    """Index what is new since the last version. Nothing new commits nothing."""
    if mode not in ("quick", "full"):
        raise InvalidArgumentError('mode must be "quick" or "full"', found=mode)
    phases = Phases()
    index = workshop.catalog.index(name)
    entry = index.active()
    with phases.timed("list"):
        listed = workshop.builder.list_files(entry.source)
        snapshot = Snapshot(index.storage, entry)
        known = set(snapshot.files.values())
        fresh = [file for file in listed if file not in known]
        outdated = len(known - set(listed))
    rebuild = mode == "full" and entry.config.global_filter and bool(fresh or outdated)
    files = listed if rebuild else fresh
    if mode == "quick" and not fresh:
        return BuildReport.unchanged(entry, phases.seconds)
    if mode == "full" and not fresh and not outdated and len(entry.segments) == 1:
        return BuildReport.unchanged(entry, phases.seconds)
    plan, result = _build(workshop, index, entry, files, listed, phases, rebuild=rebuild)
    try:
        with phases.timed("commit"):
            if mode == "quick":
                committed = index.log.commit(lambda base: _add(index, base, result))
            else:
                committed = _replace_all(index, snapshot, listed, result, rebuild=rebuild)
    except Exception:
        if plan is not None:
            discard(index, plan)
        raise
    assert committed is not None
    return BuildReport.of(committed, result, phases.seconds)


def _build(
    workshop: Workshop,
    index: Index,
    entry: Entry,
    files: Sequence[TableFile],
    listed: Sequence[TableFile],
    phases: Phases,
    *,
    rebuild: bool,
) -> tuple[BuildPlan | None, BuildResult]:
    if not files:
        return None, BuildResult(())
    with phases.timed("plan"):
        plan = plan_build(workshop, entry.config, entry.source, files, listed)
        if entry.global_filters and not rebuild:
            # New values go into the filters that are there. Their sizes divide the largest, so they fold to each.
            plan = replace(plan, global_blocks=math.lcm(*(record.num_blocks for record in entry.global_filters)))
    with phases.timed("build"):
        result = run_build(workshop, index, plan, entry.source, files)
    return plan, resized_globals(result, entry.config) if rebuild else result


def _add(index: Index, base: Entry, result: BuildResult) -> Entry:
    require_active(base)
    return msgspec.structs.replace(
        base,
        operation="refresh",
        writer=WRITER,
        segments=base.segments + result.segments,
        global_filters=_extended(index, base, result),
        summary=summary_of(result),
    )


def _extended(index: Index, base: Entry, result: BuildResult) -> tuple[GlobalRecord, ...]:
    """OR the new values into the global filters of the newest version."""
    if not result.global_filters:
        return base.global_filters
    added = [segment.id for segment in result.segments]
    extended = []
    for record in base.global_filters:
        merged = read_global(index.storage, record) | result.global_filters[record.column].fold(record.num_blocks)
        label = str(record.column)
        extended.append(write_global(index.storage, record.column, label, merged, [*record.segments, *added]))
    return tuple(extended)


def _replace_all(
    index: Index, snapshot: Snapshot, listed: Sequence[TableFile], result: BuildResult, *, rebuild: bool
) -> Entry | None:
    """Commit the new segments, and the old ones without what is gone."""
    kept = () if rebuild else compacted(index, snapshot, set(listed))
    replaced = snapshot.entry
    dropped = sum(segment.num_units for segment in replaced.segments) - sum(segment.num_units for segment in kept)

    def change(base: Entry) -> Entry:
        require_active(base)
        if base.segments != replaced.segments:
            raise CommitConflictError(
                f"cannot finish the full refresh of index {index.name!r}",
                found=f"version {base.version} changed its segments meanwhile",
                hint="run it again",
            )
        return msgspec.structs.replace(
            base,
            operation="refresh",
            writer=WRITER,
            segments=kept + result.segments,
            global_filters=store_globals(index, base.config, result) if rebuild else base.global_filters,
            summary={**summary_of(result), "units_dropped": 0 if rebuild else dropped},
        )

    return index.log.commit(change)
