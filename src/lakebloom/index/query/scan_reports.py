"""What ``explain`` and ``last_query`` return: the figures of a query, printed for a terminal and for a notebook."""

from __future__ import annotations

import abc
import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lakebloom.display.tables import Printable, amount
from lakebloom.display.visible import visible
from lakebloom.index.query.scan_reports_html import last_query_html, query_html, scan_html
from lakebloom.predicate.reasons import Reason

__all__ = [
    "FileState",
    "IndexReport",
    "JoinFigures",
    "JoinKeysReport",
    "JoinReport",
    "LastQuery",
    "PartReport",
    "QueryReport",
    "ScanFigures",
    "ScanReport",
    "Use",
    "unit_name",
]

_MAP_WIDTH, _MAP_LINES = 100, 10


class Use(str, enum.Enum):
    """How far indexes helped a scan."""

    FULL = "FULL"
    """Indexes answered every part of the condition, for every file. How many files that skips is another matter."""
    PARTIAL = "PARTIAL"
    """Some parts were not answered, or some files are not covered."""
    UNUSED = "UNUSED"
    """Nothing is skipped; the reasons say why."""


class FileState(str, enum.Enum):
    """What becomes of a file, as a character of the skip map."""

    KEPT = "#"
    SKIPPED = "."
    NOT_COVERED = "?"

    @property
    def word(self) -> str:
        """As the map of squares calls it."""
        return {"#": "read", ".": "skipped", "?": "not covered"}[self.value]


@dataclass(frozen=True, slots=True)
class IndexReport(Printable):
    """What an index that is about the scanned place did: it answered, or ``reason`` says why not.

    Several indexes that were asked together have no version.
    """

    name: str
    version: int = 0
    segments: int = 0
    files_known: int = 0
    bytes_read: int = 0
    reason: Reason | None = None
    message: str = ""


@dataclass(frozen=True, slots=True)
class PartReport(Printable):
    """A part of the condition: answered by an index's filters, or ``reason`` says why not."""

    text: str
    index: str | None
    column: str | None
    reason: Reason | None = None
    units_asked: int = 0
    units_dropped: int = 0
    false_positives: float = 0.0
    """How many of the units asked about are expected to be kept for nothing."""
    unit: str = "file"
    """What a unit is: a file, a row group, a zone."""

    @property
    def effect(self) -> str:
        """What an answered part did, in words."""
        if not self.units_asked:
            return "answered"
        text = f"dropped {self.units_dropped:,} of {_counted(self.units_asked, self.unit)}"
        return f"{text}, {self.false_positives:.2g} false positives expected" if self.false_positives else text


@dataclass(frozen=True, slots=True)
class JoinKeysReport(Printable):
    """A join whose other side's keys could have skipped files of a scan, and did not."""

    join: str
    """The kind of join, as Spark calls it; Subquery where a column is compared with a subquery of one value."""
    side: str
    """The side of the join that the scan is on; empty for a subquery."""
    column: str
    key: str
    """What the column is compared with, as SQL."""
    reason: Reason
    message: str = ""
    """What was found that explains the reason, such as the number of keys."""

    @property
    def place(self) -> tuple[str, str]:
        """The join, and what it compares."""
        return f"{self.join} join, {self.side} side" if self.side else "subquery", f"{self.column} = {self.key}"

    def line(self) -> str:
        """The report as text."""
        join, condition = self.place
        found = f" (found: {self.message})" if self.message else ""
        return f"{join}, {condition}: skips nothing, {_with_remedy(self.reason)}{found}"


@dataclass(frozen=True, slots=True)
class ScanReport:
    """One scanned table of a query."""

    table: str
    use: Use
    predicate: str = ""
    indexes: tuple[IndexReport, ...] = ()
    parts: tuple[PartReport, ...] = ()
    reasons: tuple[Reason, ...] = ()
    states: tuple[FileState, ...] = ()
    """What becomes of each file, in the order in which Spark lists them."""
    sizes: tuple[int, ...] = ()
    files_stale: int = 0
    """How many of the files that are not covered changed since they were indexed; the others are new."""
    others: tuple[str, ...] = ()
    """Indexes of other Lakebloom objects by which the plan skips files, too."""
    at_run_time: bool = False
    """Whether the query decides on more when it runs: the figures are then the most that it reads. Of a cache that has
    no rows yet nothing is known."""
    units: int = 0
    """How many units the index has of these files; given by ``read`` and ``lookup``, which skip less than a file."""
    units_kept: int = 0
    unit: str = "file"
    """What a unit is: a file, a row group, a zone."""
    partition_predicate: str = ""
    """The conditions by which Spark chose partitions, before any index was asked."""
    files_of_table: int | None = None
    """How many files all partitions have; None where nobody has listed them."""
    joins: tuple[JoinKeysReport, ...] = ()
    """The joins whose keys could have skipped files of this table, and did not."""

    @property
    def files(self) -> int:
        """How many files there are to read or to skip: those of the partitions that the query reads."""
        return len(self.states)

    @property
    def files_skipped(self) -> int:
        """How many are not read."""
        return self.states.count(FileState.SKIPPED)

    @property
    def files_kept(self) -> int:
        """How many are read."""
        return self.files - self.files_skipped

    @property
    def files_not_covered(self) -> int:
        """How many no index knows as they are now."""
        return self.states.count(FileState.NOT_COVERED)

    @property
    def bytes(self) -> int:
        """The size of all files."""
        return sum(self.sizes)

    @property
    def bytes_kept(self) -> int:
        """The size of those that are read."""
        pairs = zip(self.states, self.sizes, strict=True)
        return sum(size for state, size in pairs if state is not FileState.SKIPPED)

    @property
    def is_preview(self) -> bool:
        """Whether the figures are those of the same query planned with the indexes, which this one was not."""
        return Reason.DISABLED in self.reasons and not self.others

    @property
    def skip_map(self) -> list[str]:
        """One character a file, or a few files, in at most ten lines: # read, . skipped, ? not covered."""
        each = self.files_for_each_character
        groups = [self.states[start : start + each] for start in range(0, self.files, each)]
        order = (FileState.KEPT, FileState.NOT_COVERED, FileState.SKIPPED)
        line = "".join(next(state for state in order if state in group).value for group in groups)
        return [line[start : start + _MAP_WIDTH] for start in range(0, len(line), _MAP_WIDTH)]

    @property
    def files_for_each_character(self) -> int:
        """How many files a character of the skip map stands for."""
        return max(1, -(-self.files // (_MAP_WIDTH * _MAP_LINES)))

    def lines(self) -> Iterator[str]:
        """The report as text."""
        yield f"{self.table}: {self.summary}"
        if self.units_summary:
            yield f"  {self.units_summary}"
        if self.predicate:
            yield f"  where {self.predicate}"
        if self.partition_predicate:
            yield f"  {self.partition_summary}"
        for index in self.indexes:
            yield from self._index_lines(index)
        if self.others:
            yield f"  skipped by other Lakebloom objects, too: {', '.join(self.others)}"
        missed = self.unanswered
        if missed:
            yield "  not answered by an index"
            width = max(len(part.text) for part, _ in missed)
            yield from (f"    {part.text:<{width}}  {_with_remedy(reason)}" for part, reason in missed)
        yield from (f"  {join.line()}" for join in self.joins)
        yield from (f"  {_with_remedy(reason)}" for reason in self.other_reasons)
        if FileState.SKIPPED in self.states:
            each = self.files_for_each_character
            unit = "a file" if each == 1 else f"{each} files"
            yield f"  files, a character is {unit}: # read, . skipped, ? not covered"
            yield from (f"    {line}" for line in self.skip_map)

    def _repr_html_(self) -> str:
        return scan_html(self)

    @property
    def unanswered(self) -> list[tuple[PartReport, Reason]]:
        """The parts of the condition that no index answered, each with the reason; not those that partitions answer."""
        missed = [(part, part.reason) for part in self.parts if part.reason is not None]
        return [(part, reason) for part, reason in missed if reason is not Reason.PARTITIONS]

    @property
    def other_reasons(self) -> list[Reason]:
        """The reasons that stand beside no part, no index and no join."""
        told = {reason for _, reason in self.unanswered} | {index.reason for index in self.indexes}
        told |= {join.reason for join in self.joins}
        return [reason for reason in self.reasons if reason not in told]

    @property
    def summary(self) -> str:
        """How many files are skipped, how many are read, and whether an index answered, in words."""
        if not self.states:
            return "unknown until the cache is filled" if self.at_run_time else "no files"
        would, most, least = "", "", ""
        if self.is_preview:
            would = "would be "
        if self.at_run_time:
            least, most = "at least ", "at most "
        share = amount(self.bytes) if not self.files_skipped else f"{amount(self.bytes_kept)} of {amount(self.bytes)}"
        skipped = f"{least}{self.files_skipped:,} of {_files(self.files)} {would}skipped"
        read = f"{most}{_files(self.files_kept)} {would or 'to '}read ({share})"
        text = f"{skipped}{self.answer}; {read}"
        if not self.files_not_covered:
            return text
        new = self.files_not_covered - self.files_stale
        return f"{text}, {new:,} new and {self.files_stale:,} changed among them"

    @property
    def units_summary(self) -> str:
        """The same of units, in words; nothing where units are files, or where whole files are read anyway."""
        if not self.units or self.unit == "file":
            return ""
        kept = _counted(self.units_kept, self.unit)
        return f"{self.units - self.units_kept:,} of {_counted(self.units, self.unit)} skipped; {kept} to read"

    @property
    def answer(self) -> str:
        """What the indexes did, where the number of files does not tell."""
        if self.files_skipped or self.is_preview or self.others:
            return ""
        if self.use is Use.UNUSED:
            return ": no index was used"
        how = "the whole condition" if self.use is Use.FULL else "a part of the condition"
        return f": the index answered {how}, and any file may hold a match"

    @property
    def partition_summary(self) -> str:
        """What the partitions answered, in words."""
        left = _files(self.files)
        if self.files_of_table is not None:
            left = f"{self.files:,} of the table's {_files(self.files_of_table)}"
        return f"partitions answer {self.partition_predicate}: {left} left"

    def _index_lines(self, index: IndexReport) -> Iterator[str]:
        if index.reason is not None:
            message = f" ({index.message})" if index.message else ""
            yield f"  index {index.name}: {_with_remedy(index.reason)}{message}"
            return
        answered = [part for part in self.parts if part.index == index.name]
        alone = " by itself" if any(other.reason is None and not other.version for other in self.indexes) else ""
        nothing = "" if answered else f": answered nothing{alone}"
        if index.version:
            cost = f"{_counted(index.segments, 'segment')}, {amount(index.bytes_read)} read"
            yield f"  index {index.name}, version {index.version} ({cost}){nothing}"
        else:
            yield f"  indexes {index.name}, asked together{nothing}"
        for part in answered:
            yield f"    {part.text}: column {part.column} {part.effect}"


def _with_remedy(reason: Reason) -> str:
    return f"{reason.value}: {reason.meaning}. Remedy: {reason.remedy}"


def _files(number: int) -> str:
    return _counted(number, "file")


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"


def unit_name(granularity: str | int) -> str:
    """Return what people call a unit of this granularity.

    >>> unit_name("row_group"), unit_name(8192)
    ('row group', 'zone')
    """
    return "zone" if isinstance(granularity, int) else granularity.replace("_", " ")


class _Scans(abc.ABC):
    """Something with scans, printed one after the other."""

    __slots__ = ()

    @abc.abstractmethod
    def _lines(self) -> Iterator[str]: ...

    def __str__(self) -> str:
        return "\n".join(map(visible, self._lines()))

    __repr__ = __str__


@dataclass(frozen=True, slots=True)
class JoinReport(Printable):
    """A side of a join whose key a global filter is about: filtered by it, or ``reason`` says why not."""

    index: str
    column: str
    key: str
    side: str
    join: str
    rate: float = 0.0
    """How often a row without a partner passes."""
    filter_bytes: int = 0
    files_merged: int = 0
    """How many files were added to the filter on the fly."""
    reason: Reason | None = None

    def line(self) -> str:
        """The report as text."""
        place = f"{self.side} side of the {self.join} join on {self.key}"
        if self.reason is not None:
            return f"{place}: not filtered by {self.index}.{self.column}, {_with_remedy(self.reason)}"
        merged = f", {_files(self.files_merged)} added to it" if self.files_merged else ""
        passing = f"of rows without a partner {100 * self.rate:.2g} % pass"
        return f"{place}: filtered by {self.index}.{self.column} ({amount(self.filter_bytes)}{merged}); {passing}"


@dataclass(frozen=True, repr=False)
class QueryReport(_Scans):
    """What ``explain`` says of a query."""

    scans: tuple[ScanReport, ...]
    joins: tuple[JoinReport, ...] = ()

    def _lines(self) -> Iterator[str]:
        if not self.scans:
            yield "this query reads no files"
        for scan in self.scans:
            yield from scan.lines()
        for join in self.joins:
            yield join.line()

    def _repr_html_(self) -> str:
        return query_html(self)


@dataclass(frozen=True, slots=True)
class ScanFigures(Printable):
    """What a scan counted while it ran; None where Spark does not tell, as of rows that an earlier run had kept."""

    table: str
    files_read: int | None
    bytes_read: int | None
    rows_read: int | None
    files: int | None
    """How many files there were to read, before any were skipped."""
    files_kept: int | None
    """How many the plan meant to read."""

    @property
    def files_skipped(self) -> int | None:
        """How many were not opened."""
        return None if self.files is None or self.files_read is None else self.files - self.files_read

    def line(self) -> str:
        """The figures as text."""
        rows = "unknown" if self.rows_read is None else f"{self.rows_read:,}"
        if self.files_read is None:
            return (
                f"{self.table}: unknown" if self.rows_read is None else f"{self.table}: read {rows} rows, files unknown"
            )
        size = "" if self.bytes_read is None else f", {amount(self.bytes_read)}"
        read = f"read {_files(self.files_read)}{size}, {rows} rows"
        if self.files is None or self.files_skipped is None:
            return f"{self.table}: {read}"
        return f"{self.table}: {self.files_skipped:,} of {_files(self.files)} skipped; {read}"


@dataclass(frozen=True, slots=True)
class JoinFigures(Printable):
    """What a filter on a side of a join counted."""

    index: str
    column: str
    rows: int
    rows_passed: int

    @property
    def rows_dropped(self) -> int:
        """How many rows were not shuffled."""
        return self.rows - self.rows_passed


@dataclass(frozen=True, repr=False)
class LastQuery(_Scans):
    """What the scans of the last query counted, and the filters on its joins."""

    action: str
    seconds: float | None
    """None where it is not known, as on Spark Connect."""
    scans: Sequence[ScanFigures]
    joins: Sequence[JoinFigures] = ()
    failed: bool = False
    """Whether the query failed; how much it read is then unknown."""

    @property
    def end(self) -> str:
        """How it ended, in words."""
        if self.failed:
            return "failed"
        return "ran" if self.seconds is None else f"took {self.seconds:.3f} s"

    def _lines(self) -> Iterator[str]:
        yield f"{self.action} {self.end}"
        if not self.scans:
            yield "  no files read"
        yield from (f"  {scan.line()}" for scan in self.scans)
        for join in self.joins:
            dropped = f"{join.rows_dropped:,} of {join.rows:,} rows dropped before the shuffle"
            yield f"  join filter {join.index}.{join.column}: {dropped}"

    def _repr_html_(self) -> str:
        return last_query_html(self)
