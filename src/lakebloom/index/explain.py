"""Explaining a query: what each of its scans leaves out, by which index, and why not more.

Spark's side describes the scans of a plan (``DescribedScan``); the same advisor that answers the optimizer is asked
again, and what it says is counted against the files as Spark lists them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec

from lakebloom.errors import LakebloomError
from lakebloom.index.advise import Advice, Advisor, Reading, Unanswered
from lakebloom.index.ask import Reader
from lakebloom.index.query_reports import FileState, IndexReport, PartReport, QueryReport, ScanReport, Use
from lakebloom.predicate.reasons import Reason
from lakebloom.predicate.text import to_text
from lakebloom.predicate.tree import And, Predicate
from lakebloom.storage import to_local_path
from lakebloom.storage.metered import Metered
from lakebloom.tables.columns import format_name
from lakebloom.tables.files import is_same, spark_file
from lakebloom.tables.glob import fixed_part

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lakebloom.index.catalog import Catalog
    from lakebloom.store.records import Entry
    from lakebloom.tables.files import TableFile

__all__ = ["DescribedScan", "Figures", "explain"]


class Figures(msgspec.Struct, frozen=True):
    """What a plan says it leaves out of a scan."""

    files_kept: int
    bytes_kept: int
    files: int
    bytes: int


class DescribedScan(msgspec.Struct, frozen=True):
    """A scan of an optimized plan. ``cached`` is what a scan of Spark's cache prints; it has nothing else."""

    table: str | None = None
    roots: tuple[str, ...] = ()
    listing: str = ""
    plain: bool = False
    question: Reading | None = None
    files: tuple[tuple[str, int, int, str | None], ...] = ()
    """Path, size, time of change, and the ETag where Spark has kept it."""
    keys: tuple[Predicate, ...] = ()
    """The keys of joins that decided about files, too."""
    applied: Figures | None = None
    cached: str | None = None


def explain(catalog: Catalog, scans: Iterable[DescribedScan], *, enabled: bool, timeout_s: float) -> QueryReport:
    """Return the report of a query. ``catalog`` must meter its storages."""
    return QueryReport(tuple(_Explained(catalog, scan, timeout_s).report(enabled) for scan in scans))


def covers(entry: Entry, roots: Iterable[str]) -> bool:
    """Tell whether an index is about a place that a query reads, or a part of it."""
    places = [fixed_part(location) for location in entry.source.locations]
    return any(_within(root, place) or _within(place, root) for root in roots for place in places)


def _within(path: str, directory: str) -> bool:
    return path == directory or path.startswith(directory.rstrip("/") + "/")


@dataclass(slots=True)
class _Explained:
    catalog: Catalog
    scan: DescribedScan
    timeout_s: float

    def report(self, enabled: bool) -> ScanReport:
        if self.scan.cached is not None:
            return ScanReport("Spark's cache", Use.UNUSED, reasons=(Reason.CACHED,))
        files = [spark_file(*file) for file in self.scan.files]
        reading = self._reading(enabled)
        report = ScanReport(
            table=self.scan.table or ", ".join(map(_shown, self.scan.roots)),
            use=Use.UNUSED,
            predicate="" if reading is None or reading.predicate is None else to_text(reading.predicate),
            states=(FileState.KEPT,) * len(files),
            sizes=tuple(file.size_bytes for file in files),
        )
        if not self.scan.plain or reading is None:
            return replace(report, reasons=(Reason.UNSUPPORTED_TABLE,))
        answers = Advisor(lambda name: Reader(self.catalog.index(name))).ask(self._names(), reading, self.timeout_s)
        advice = [answer for answer in answers if isinstance(answer, Advice)]
        report = replace(report, indexes=tuple(map(self._index_report, answers)), parts=_parts(advice))
        advice = [answer for answer in advice if answer.has_effect]
        if not advice:
            return replace(report, reasons=_why_unused(answers))
        uris = {file.uri for answer in advice for file in answer.files}
        states = _states(files, advice)
        stale = sum(
            state is FileState.NOT_COVERED and file.uri in uris for file, state in zip(files, states, strict=True)
        )
        report = replace(report, states=states, files_stale=stale)
        reasons = [Reason.STALE_FILES] if FileState.NOT_COVERED in report.states else []
        if self.scan.applied is None:
            return replace(report, reasons=(Reason.DISABLED, *reasons))
        missed = [part for part in report.parts if part.reason not in (None, Reason.NOT_NEEDED)]
        return replace(report, use=Use.PARTIAL if missed or reasons else Use.FULL, reasons=tuple(reasons))

    def _reading(self, enabled: bool) -> Reading | None:
        """What is read, by the query's own condition and by the keys of joins, which are asked even while disabled."""
        reading, keys = self.scan.question, self.scan.keys
        if reading is None or not keys:
            return reading
        own = [reading.predicate] if enabled and reading.predicate is not None else []
        return msgspec.structs.replace(reading, predicate=And((*own, *keys)))

    def _names(self) -> list[str]:
        """The indexes over this place, and those that cannot tell their place."""
        found = []
        for name in self.catalog.names():
            try:
                if covers(self.catalog.index(name).log.newest(), self.scan.roots):
                    found.append(name)
            except LakebloomError:
                found.append(name)
        return found

    def _index_report(self, answer: Advice | Unanswered) -> IndexReport:
        if isinstance(answer, Unanswered):
            return IndexReport(answer.name, reason=answer.reason, message=answer.message)
        if answer.snapshot is None:
            return IndexReport(answer.name, files_known=len(answer.files))
        storage, entry = self.catalog.index(answer.name).storage, answer.snapshot.entry
        bytes_read = storage.bytes_read if isinstance(storage, Metered) else 0
        return IndexReport(answer.name, entry.version, len(entry.segments), len(answer.files), bytes_read)


def _why_unused(answers: list[Advice | Unanswered]) -> tuple[Reason, ...]:
    if not answers:
        return (Reason.NO_MATCHING_INDEX,)
    advice = [answer for answer in answers if isinstance(answer, Advice)]
    reasons = [answer.reason for answer in answers if isinstance(answer, Unanswered)]
    if advice:
        not_selective = any(part.reason is Reason.NOT_SELECTIVE for part in _parts(advice))
        reasons.append(Reason.NOT_SELECTIVE if not_selective else Reason.NO_USABLE_PREDICATE)
    return tuple(dict.fromkeys(reasons))


def _shown(uri: str) -> str:
    return to_local_path(uri) if uri.startswith("file:") else uri


def _states(files: list[TableFile], advice: list[Advice]) -> tuple[FileState, ...]:
    known: set[str] = set()
    skipped: set[str] = set()
    listed = {file.uri: file for file in files}
    for answer in advice:
        # What changed since Spark listed it is read like any file that the index does not know.
        for file, kept, changed in zip(answer.files, answer.kept.tolist(), answer.changed.tolist(), strict=True):
            if not changed and is_same(file, listed.get(file.uri)):
                known.add(file.uri)
                if not kept:
                    skipped.add(file.uri)
    return tuple(
        FileState.SKIPPED if file.uri in skipped else FileState.KEPT if file.uri in known else FileState.NOT_COVERED
        for file in files
    )


def _parts(advice: list[Advice]) -> tuple[PartReport, ...]:
    """What became of each part of the predicate, over all segments and indexes."""
    used: dict[tuple[str, str], PartReport] = {}
    unused: dict[str, PartReport] = {}
    for answer in advice:
        for pruned in answer.pruned:
            for part in pruned.used:
                key = part.text, answer.name
                so_far = used.get(key) or PartReport(part.text, answer.name, format_name(part.column))
                used[key] = replace(
                    so_far,
                    units_asked=so_far.units_asked + part.units_asked,
                    units_dropped=so_far.units_dropped + part.units_dropped,
                    false_positives=so_far.false_positives + part.false_positives,
                )
            for missed in pruned.unused:
                column = None if missed.column is None else format_name(missed.column)
                so_far_unused = unused.get(missed.text)
                # An index that knows the column has the last word.
                if so_far_unused is None or so_far_unused.reason is Reason.NO_INDEX:
                    unused[missed.text] = PartReport(missed.text, None, column, missed.reason)
    answered = {text for text, _ in used}
    return (*used.values(), *(part for text, part in unused.items() if text not in answered))
