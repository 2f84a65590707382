"""Explains what ``lookup`` and ``read`` read of a table for a condition. Uses their plan, and reads no data."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lakebloom.index.lookup.file_reads import Read, reads_of, unindexed_reads
from lakebloom.index.query.explain import index_report, shown_place, why_unused, with_answers
from lakebloom.index.query.part_reports import parts_of
from lakebloom.index.query.query_reports import QueryReport
from lakebloom.index.query.reader import require_predicate
from lakebloom.index.query.scan_reports import FileState, IndexReport, ScanReport, Use, unit_name
from lakebloom.index.query.scans import PrunedFiles
from lakebloom.predicate.reasons import Reason
from lakebloom.predicate.sql.text import to_text
from lakebloom.predicate.tree import renamed
from lakebloom.storage.metered import Metered

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lakebloom.index.current_table import CurrentTable
    from lakebloom.index.query.reader import Reader
    from lakebloom.index.snapshot import Snapshot
    from lakebloom.predicate.prune.prune import Pruned
    from lakebloom.predicate.tree import Predicate
    from lakebloom.store.records import TableRecord
    from lakebloom.tables.file_identity import TableFile

__all__ = ["PlannedReads", "explain_condition", "explain_reads", "plan_reads", "unreadable_report"]


class PlannedReads(NamedTuple):
    """What to read, and what each part of the condition did for each segment; None: the index was not used."""

    reads: list[Read]
    pruned: list[Pruned] | None


def plan_reads(
    snapshot: Snapshot, source: TableRecord, predicate: Predicate, listed: Sequence[TableFile]
) -> PlannedReads:
    """Return what to read of the files that a table has now. ``source`` is its current record."""
    if source.snapshot is not None:
        logged: list[Pruned] = []
        return PlannedReads(reads_of(snapshot, predicate, listed, told=logged, table=source), logged)
    types = source.schema.types
    if types and any(types.get(column.path) != column.type for column in snapshot.commit.config.columns):
        return PlannedReads(unindexed_reads(listed), None)  # the table was replaced
    pruned: list[Pruned] = []
    return PlannedReads(reads_of(snapshot, predicate, listed, told=pruned), pruned)


def explain_condition(
    reader: Reader, predicate: Predicate, current: Callable[[Snapshot], CurrentTable] | None = None
) -> QueryReport:
    """Return what a condition would read of an index's table as it is now. Lists the table.

    ``current`` returns the table of a version. Raises the errors of ``candidates`` and of listing.
    """
    require_predicate(predicate)

    def explained(snapshot: Snapshot) -> QueryReport:
        table = (current or reader.recorded_table)(snapshot)
        names = snapshot.names if table.snapshot is None else table.record.schema.names
        named = renamed(predicate, names.require)
        return QueryReport((explain_reads(snapshot, table.record, named, table.list_files(reader.options)),))

    return reader.with_newest(explained)


def explain_reads(
    snapshot: Snapshot, record: TableRecord, predicate: Predicate, listed: Sequence[TableFile]
) -> ScanReport:
    """Return the report of such a plan."""
    before = _bytes_read(snapshot)
    planned = plan_reads(snapshot, record, predicate, listed)
    compared = snapshot.compared(listed)
    unknown = {file.uri for file in compared.unknown}
    read = {each.file.uri for each in planned.reads}
    report = ScanReport(
        table=record.name or ", ".join(map(shown_place, record.locations)),
        use=Use.UNUSED,
        predicate=to_text(predicate),
        states=tuple(_state(file, read, unknown) for file in listed),
        sizes=tuple(file.size_bytes for file in listed),
        files_stale=int(np.count_nonzero(compared.named & ~compared.known)),
    )
    name = snapshot.commit.config.name
    if planned.pruned is None:
        told = IndexReport(name, reason=Reason.READ_DIFFERS, message="its columns have other types by now")
        return replace(report, indexes=(told,), reasons=(Reason.READ_DIFFERS,), files_stale=0)
    nothing = np.zeros(snapshot.files.num_rows, dtype=np.bool_)
    answer = PrunedFiles(
        name,
        snapshot.files,
        snapshot.fingerprint,
        ~nothing,
        nothing,
        tuple(planned.pruned),
        snapshot,
        _bytes_read(snapshot) - before,
    )
    here = {file.uri for file in listed} - unknown
    units = answer.units_of(here)
    report = replace(
        report,
        indexes=(index_report(answer),),
        units=sum(int(np.count_nonzero(of_files)) for of_files in units),
        units_kept=sum(
            int(np.count_nonzero(of_files & pruned.keep))
            for of_files, pruned in zip(units, planned.pruned, strict=True)
        ),
        unit=unit_name(snapshot.granularity),
    )
    parts = parts_of([answer], here)
    if answer.has_effect:
        return with_answers(report, parts)
    return replace(report, parts=parts, reasons=why_unused([answer]))


def unreadable_report(name: str, record: TableRecord, listed: Sequence[TableFile], error: Exception) -> ScanReport:
    """Return the report of a plan that was made without the index, because it could not be read: all is read."""
    reason = Reason.TIMED_OUT if isinstance(error, TimeoutError) else Reason.INDEX_UNREADABLE
    return ScanReport(
        table=record.name or ", ".join(map(shown_place, record.locations)),
        use=Use.UNUSED,
        indexes=(IndexReport(name, reason=reason, message=str(error) or repr(error)),),
        reasons=(reason,),
        states=(FileState.KEPT,) * len(listed),
        sizes=tuple(file.size_bytes for file in listed),
    )


def _state(file: TableFile, read: set[str], unknown: set[str]) -> FileState:
    if file.uri in unknown:
        return FileState.UNINDEXED
    return FileState.KEPT if file.uri in read else FileState.SKIPPED


def _bytes_read(snapshot: Snapshot) -> int:
    return snapshot.storage.bytes_read if isinstance(snapshot.storage, Metered) else 0
