"""Explains a query: what each of its scans skips, by which index, and why not more.

Java describes the scans of a plan (``DescribedScan``): what it skips, and what the indexes decided when it was made.
The report is about that plan, even if the indexes have changed since.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from lakebloom.index.current_table import places_of
from lakebloom.index.query.part_reports import merged, parts_of
from lakebloom.index.query.query_reports import QueryReport
from lakebloom.index.query.scan_reports import (
    FileState,
    IndexReport,
    JoinKeysReport,
    PartReport,
    ScanReport,
    Use,
)
from lakebloom.index.query.scans import PrunedFiles, Reading, ScanPruner, Unanswered
from lakebloom.predicate.reasons import Reason
from lakebloom.predicate.sql.text import to_text
from lakebloom.predicate.tree import And, Predicate
from lakebloom.storage import to_local_path
from lakebloom.tables.file_identity import spark_file
from lakebloom.tables.file_matching import ABSENT, Listing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from lakebloom.store.records import Commit
    from lakebloom.tables.file_identity import TableFile

__all__ = [
    "DescribedScan",
    "Note",
    "Seen",
    "UnprunedJoin",
    "covering",
    "explain",
    "index_report",
    "parts_of",
    "shown_place",
    "why_unused",
    "with_answers",
]


class Note(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the indexes decided about a condition while the query was planned; Java keeps it with the plan."""

    indexes: tuple[IndexReport, ...] = ()
    parts: tuple[PartReport, ...] = ()

    @classmethod
    def of(cls, answers: Sequence[PrunedFiles | Unanswered]) -> Note:
        """Return what to keep of some results."""
        pruned_files = [answer for answer in answers if isinstance(answer, PrunedFiles)]
        return cls(tuple(map(index_report, answers)), parts_of(pruned_files))


class Seen(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What happened while the query was planned, if no file of a scan is skipped because of its condition."""

    there: tuple[str, ...] = ()
    """All indexes that Java knew."""
    note: Note | None = None
    """What the indexes decided; None if none has a column of the condition."""
    failure: str | None = None
    """The error that stopped the rule."""


class UnprunedJoin(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A join whose other side's keys could have skipped files of a scan; see ``JoinKeysReport``."""

    join: str
    side: str
    column: str
    key: str
    reason: str
    message: str

    def report(self) -> JoinKeysReport:
        """Return the report of it."""
        reason = Reason.of_unknown(self.reason)
        return JoinKeysReport(self.join, self.side, self.column, self.key, reason, self.message)


class DescribedScan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A scan of an optimized plan. A scan of Spark's cache has only ``cached``, its text."""

    table: str | None = None
    roots: tuple[str, ...] = ()
    plain: bool = False
    reading: Reading | None = None
    files: tuple[tuple[str, int, int, str | None], ...] = ()
    """Path, size, modification time, and the ETag if Spark has it."""
    states: str = ""
    """What the plan does with each file: # read, . skipped, ? new, ! changed."""
    keys: tuple[Predicate, ...] = ()
    """The keys of joins that also decided about files."""
    notes: tuple[Note, ...] = ()
    """What this lake's indexes decided, if files are skipped because of it."""
    predicates: tuple[Predicate, ...] = ()
    """The predicates of these decisions, in the same order."""
    seen: Seen | None = None
    """What they decided, if no file is skipped because of it; None if the plan was made without them."""
    others: tuple[str, ...] = ()
    """The indexes of other Lakebloom objects that skip files."""
    at_run_time: bool = False
    """Whether more files may be skipped when the query runs."""
    partitions: str = ""
    """The conditions by which Spark chose partitions; ``files`` are those of these partitions."""
    files_of_table: int | None = None
    """How many files all partitions have; None if they were not listed."""
    needs_all_rows: bool = False
    """Whether an operator above the condition, or between it and the files, needs every row."""
    cached: str | None = None
    joins: tuple[UnprunedJoin, ...] = ()
    """The joins that skip none of its files, although an index has their key."""
    source: dict[str, str] | None = None
    """The options of a scan of lakebloom's data source."""


def explain(
    scan_pruner: ScanPruner,
    names: Callable[[Sequence[str]], list[str | Unanswered]],
    scans: Iterable[DescribedScan],
    timeout_s: float,
    read: Callable[[Mapping[str, str]], ScanReport],
) -> QueryReport:
    """Return the report of a query as it was planned. ``names`` returns the indexes over some locations now.

    ``read`` explains a scan of lakebloom's data source by its options.

    Indexes are queried again only for what the plan does not tell: why a condition skips nothing, and what would be
    skipped in a plan that was made without them.
    """
    return QueryReport(
        tuple(
            _with_joins(_Explained(scan_pruner, names, scan, timeout_s).report(), scan.joins)
            if scan.source is None
            else read(scan.source)
            for scan in scans
        )
    )


def _with_joins(report: ScanReport, described: Sequence[UnprunedJoin]) -> ScanReport:
    """Add why joins skip nothing. If nothing else is skipped either, that is the reason to show."""
    if not described:
        return report
    joins = tuple(dict.fromkeys(join.report() for join in described))
    if FileState.SKIPPED in report.states:
        return replace(report, joins=joins)
    own = [reason for reason in report.reasons if reason is not Reason.NO_USABLE_PREDICATE]
    reasons = tuple(dict.fromkeys((*own, *(join.reason for join in joins))))
    use = Use.PARTIAL if report.use is Use.FULL else report.use
    return replace(report, joins=joins, reasons=reasons, use=use)


def covers(commit: Commit, roots: Iterable[str]) -> bool:
    """Tell whether an index covers a location that a query reads, or a part of it."""
    places = places_of(commit.table)
    return any(_within(root, place) or _within(place, root) for root in roots for place in places)


def covering(found: Mapping[str, Commit | Exception], roots: Sequence[str]) -> list[str | Unanswered]:
    """Return the indexes over some locations, and those whose location is unknown.

    Deleted ones are named only if there are no others.
    """
    names: list[str | Unanswered] = []
    deleted: list[str] = []
    for name, commit in found.items():
        if isinstance(commit, TimeoutError):
            names.append(Unanswered(name, Reason.TIMED_OUT, str(commit)))
        elif isinstance(commit, Exception):
            names.append(name)
        elif covers(commit, roots):
            (deleted if commit.state == "deleted" else names).append(name)
    # A deleted index matters only if there is no other.
    return names or [Unanswered(name, Reason.DELETED) for name in deleted]


def _within(path: str, directory: str) -> bool:
    return path == directory or path.startswith(directory.rstrip("/") + "/")


@dataclass(slots=True)
class _Explained:
    scan_pruner: ScanPruner
    names: Callable[[Sequence[str]], list[str | Unanswered]]
    scan: DescribedScan
    timeout_s: float

    def report(self) -> ScanReport:
        if self.scan.cached is not None:
            return ScanReport("Spark's cache", Use.UNUSED, reasons=(Reason.CACHED,), at_run_time=self.scan.at_run_time)
        reading = self._reading()
        report = ScanReport(
            table=self.scan.table or ", ".join(map(shown_place, self.scan.roots)),
            use=Use.UNUSED,
            predicate="" if reading is None or reading.predicate is None else to_text(reading.predicate),
            states=tuple(_STATES[state] for state in self.scan.states),
            sizes=tuple(file[1] for file in self.scan.files),
            files_stale=self.scan.states.count("!"),
            at_run_time=self.scan.at_run_time,
            others=self.scan.others,
            partition_predicate=self.scan.partitions,
            files_of_table=self.scan.files_of_table,
        )
        if not self.scan.notes and not self.scan.others:
            report = replace(report, states=(FileState.KEPT,) * report.files, files_stale=0)
        report = self._explained(report)
        # The reason names a deleted index. In the list of indexes it would look usable.
        return replace(report, indexes=tuple(index for index in report.indexes if index.reason is not Reason.DELETED))

    def _explained(self, report: ScanReport) -> ScanReport:
        if not self.scan.plain or self.scan.reading is None:
            return replace(report, reasons=(Reason.UNSUPPORTED_TABLE,))
        if self.scan.notes:
            return self._as_planned(report, self.scan.reading)
        if self.scan.needs_all_rows:
            return replace(report, reasons=(Reason.NEEDS_ALL_ROWS,))
        if self.scan.seen is None:
            return self._planned_without(report, self.scan.reading)
        return self._planned_without_effect(report, self.scan.reading, self.scan.seen)

    def _as_planned(self, report: ScanReport, reading: Reading) -> ScanReport:
        """Report what the plan skips, by what was decided when it was made."""
        notes = self.scan.notes
        indexes = tuple(dict.fromkeys(index for note in notes for index in note.indexes))
        readings = [msgspec.structs.replace(reading, predicate=predicate) for predicate in self.scan.predicates]
        told = [self._here(note, each) for note, each in zip(notes, readings, strict=True)]
        parts = merged([part for parts in told for part in parts])
        return with_answers(replace(report, indexes=indexes), parts)

    def _here(self, note: Note, reading: Reading) -> Sequence[PartReport]:
        """Return what each part did to the files of this scan. The indexes decided about all files of the table."""
        versions = {index.name: index.version for index in note.indexes if index.reason is None}
        states = zip(self.scan.files, self.scan.states, strict=True)
        here = {spark_file(*file).uri for file, state in states if state in "#."}
        if all(index.files_known <= len(here) for index in note.indexes):
            return note.parts
        singles = [name for name, version in versions.items() if version]  # the others are combinations of these
        pruned_files = [answer for answer in self._prune(singles, reading) if isinstance(answer, PrunedFiles)]
        if {answer.name: index_report(answer).version for answer in pruned_files} == versions:
            return parts_of(pruned_files, here)
        # The indexes have changed: what they did to these files is unknown now.
        return [
            replace(part, units_asked=0, units_dropped=0, dropped_by_bounds=0, false_positives=0.0)
            for part in note.parts
        ]

    def _planned_without_effect(self, report: ScanReport, reading: Reading, seen: Seen) -> ScanReport:
        """Report why nothing is skipped, although the rule handled the scan."""
        now = self.names(self.scan.roots)
        later = [name for name in now if isinstance(name, str) and name not in seen.there]
        note = _note_of(seen)
        if note is not None:
            reasons = _why_in_vain(note.indexes, note.parts)
        else:
            answers = self._prune([name for name in now if name not in later], reading)
            note = Note.of(answers)
            # An index that can decide now could have decided then, unless it has changed.
            useful = any(isinstance(answer, PrunedFiles) and answer.has_effect for answer in answers)
            reasons = (Reason.PLANNED_BEFORE,) if useful else why_unused(answers) if answers or not later else ()
        if later:
            reasons = tuple(dict.fromkeys((*reasons, Reason.PLANNED_BEFORE)))
        told = tuple(IndexReport(name, reason=Reason.PLANNED_BEFORE) for name in later)
        return replace(report, indexes=(*note.indexes, *told), parts=note.parts, reasons=reasons)

    def _planned_without(self, report: ScanReport, reading: Reading) -> ScanReport:
        """Report what would be skipped in a plan that was made without this lake's indexes."""
        answers = self._prune(self.names(self.scan.roots), reading)
        note = Note.of(answers)
        report = replace(report, indexes=note.indexes, parts=note.parts)
        pruned_files = [answer for answer in answers if isinstance(answer, PrunedFiles) and answer.has_effect]
        if not pruned_files:
            return replace(report, reasons=why_unused(answers))
        if self.scan.others:  # what the plan skips matters more than what it could skip
            return replace(report, reasons=(Reason.DISABLED,))
        files = [spark_file(*file) for file in self.scan.files]
        states, stale = _states(files, pruned_files)
        reasons = [Reason.STALE_FILES] if FileState.UNINDEXED in states else []
        return replace(report, states=states, files_stale=stale, reasons=(Reason.DISABLED, *reasons))

    def _prune(self, names: Sequence[str | Unanswered], reading: Reading) -> list[PrunedFiles | Unanswered]:
        unanswered = [name for name in names if isinstance(name, Unanswered)]
        known = [name for name in names if isinstance(name, str)]
        return [*unanswered, *self.scan_pruner.prune(known, reading, self.timeout_s)]

    def _reading(self) -> Reading | None:
        """The predicates of the plan: the query's condition, and the keys of joins."""
        reading, keys = self.scan.reading, self.scan.keys
        if reading is None or not keys:
            return reading
        own = [reading.predicate] if reading.predicate is not None else []
        return msgspec.structs.replace(reading, predicate=And((*own, *keys)))


def _note_of(seen: Seen) -> Note | None:
    if seen.failure is None:
        return seen.note
    return Note((IndexReport("of this place", reason=Reason.INDEX_UNREADABLE, message=seen.failure),))


def with_answers(report: ScanReport, parts: tuple[PartReport, ...]) -> ScanReport:
    """Return the report of a scan that used indexes, with what each part of the condition did."""
    missed = [part for part in parts if part.reason not in (None, Reason.NOT_NEEDED, Reason.PARTITIONS)]
    reasons = (Reason.STALE_FILES,) if FileState.UNINDEXED in report.states else ()
    return replace(report, parts=parts, use=Use.PARTIAL if missed or reasons else Use.FULL, reasons=reasons)


_STATES = {"#": FileState.KEPT, ".": FileState.SKIPPED, "?": FileState.UNINDEXED, "!": FileState.UNINDEXED}


def index_report(answer: PrunedFiles | Unanswered) -> IndexReport:
    """Return the report of one index."""
    if isinstance(answer, Unanswered):
        return IndexReport(answer.name, reason=answer.reason, message=answer.message)
    if answer.snapshot is None:
        return IndexReport(answer.name, files_known=answer.files.num_current)
    commit = answer.snapshot.commit
    return IndexReport(answer.name, commit.version, len(commit.segments), answer.files.num_current, answer.bytes_read)


def _why_in_vain(indexes: Sequence[IndexReport], parts: Sequence[PartReport]) -> tuple[Reason, ...]:
    reasons = [index.reason for index in indexes if index.reason is not None]
    if len(reasons) < len(indexes):
        reasons.append(_why_not_answered({part.reason for part in parts}))
    return tuple(dict.fromkeys(reasons))


def _why_not_answered(of_parts: set[Reason | None]) -> Reason:
    for reason in (Reason.NOT_SELECTIVE, Reason.OR_NOT_ANSWERED):
        if reason in of_parts:
            return reason
    return Reason.PARTITIONS if of_parts == {Reason.PARTITIONS} else Reason.NO_USABLE_PREDICATE


def why_unused(answers: Sequence[PrunedFiles | Unanswered]) -> tuple[Reason, ...]:
    """Return why none of these results skips anything."""
    if not answers:
        return (Reason.NO_MATCHING_INDEX,)
    note = Note.of(answers)
    return _why_in_vain(note.indexes, note.parts)


def shown_place(uri: str) -> str:
    """Return a location for people to read."""
    return to_local_path(uri) if uri.startswith("file:") else uri


def _states(files: list[TableFile], pruned_files: list[PrunedFiles]) -> tuple[tuple[FileState, ...], int]:
    """Return what happens to each listed file, and how many of them changed since they were indexed."""
    listing = Listing.of(files)
    known, skipped, named = (np.zeros(len(files), dtype=np.bool_) for _ in range(3))
    for answer in pruned_files:
        places, same = answer.files.match(listing)
        # A file that changed since Spark listed it is unindexed, and is read.
        unchanged = same & ~answer.changed
        known[places[unchanged]] = True
        skipped[places[unchanged & ~answer.kept]] = True
        named[places[places != ABSENT]] = True
    states = [
        FileState.SKIPPED if is_skipped else FileState.KEPT if is_known else FileState.UNINDEXED
        for is_skipped, is_known in zip(skipped.tolist(), known.tolist(), strict=True)
    ]
    return tuple(states), int(np.count_nonzero(named & ~known))
