"""What ``explain`` says of one scan, printed for a terminal and for a notebook."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass

from lakebloom.display.tables import Printable, amount
from lakebloom.index.query.scan_reports_html import scan_html
from lakebloom.predicate.reasons import Reason

__all__ = [
    "FileState",
    "IndexReport",
    "JoinKeysReport",
    "PartReport",
    "ScanReport",
    "Use",
    "files_text",
    "unit_name",
    "with_remedy",
]

_MAP_WIDTH, _MAP_LINES = 100, 10


class Use(str, enum.Enum):
    """How far indexes helped a scan."""

    FULL = "FULL"
    """Indexes answered every part of the condition, for every file. This does not say how many files are skipped."""
    PARTIAL = "PARTIAL"
    """Some parts were not answered, or some files are unindexed."""
    UNUSED = "UNUSED"
    """Nothing is skipped; the reasons say why."""


class FileState(str, enum.Enum):
    """Whether a file is read, as a character of the skip map."""

    KEPT = "#"
    SKIPPED = "."
    UNINDEXED = "?"

    @property
    def word(self) -> str:
        """Its name in the map of squares."""
        return {"#": "read", ".": "skipped", "?": "unindexed"}[self.value]


@dataclass(frozen=True, slots=True)
class IndexReport(Printable):
    """What an index of the scanned table did: it answered, or ``reason`` says why not.

    Several indexes that answered together have no version.
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
    """A part of the condition: answered by an index, or ``reason`` says why not."""

    text: str
    index: str | None
    column: str | None
    reason: Reason | None = None
    units_asked: int = 0
    units_dropped: int = 0
    false_positives: float = 0.0
    """How many of the probed units are expected to be kept without a match."""
    unit: str = "file"
    """What a unit is: a file, a row group, a zone."""
    dropped_by_bounds: int = 0
    """How many of the dropped units min and max dropped; the others the filters did, or the number of NULLs."""

    @property
    def effect(self) -> str:
        """What an answered part did, in words."""
        if not self.units_asked:
            return "answered"
        text = f"skips {self.units_dropped:,} of {_counted(self.units_asked, self.unit)}"
        if self.dropped_by_bounds:
            some = "" if self.dropped_by_bounds == self.units_dropped else f"{self.dropped_by_bounds:,} of them "
            text = f"{text}, {some}by min/max"
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
        return f"{join}, {condition}: skips nothing, {with_remedy(self.reason)}{found}"


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
    """How many of the unindexed files changed since they were indexed; the others are new."""
    others: tuple[str, ...] = ()
    """Indexes of other Lakebloom objects that also skip files in this plan."""
    at_run_time: bool = False
    """Whether the query may skip more when it runs: it then reads at most these figures. Nothing is known about a cache
    that has no rows yet."""
    units: int = 0
    """How many units of these files the index has; set by ``read`` and ``lookup``, which skip units within files."""
    units_kept: int = 0
    unit: str = "file"
    """What a unit is: a file, a row group, a zone."""
    partition_predicate: str = ""
    """The conditions by which Spark chose partitions, before any index was used."""
    files_of_table: int | None = None
    """How many files all partitions have; None where they were not listed."""
    joins: tuple[JoinKeysReport, ...] = ()
    """The joins whose keys could have skipped files of this table, and did not."""

    @property
    def files(self) -> int:
        """How many files the partitions have that the query reads."""
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
        """How many are new or changed since they were indexed."""
        return self.states.count(FileState.UNINDEXED)

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
        """Whether this query was planned without the indexes, and the figures show what they would skip."""
        return Reason.DISABLED in self.reasons and not self.others

    @property
    def skip_map(self) -> list[str]:
        """One character a file, or a few files, in at most ten lines: # read, . skipped, ? unindexed."""
        each = self.files_for_each_character
        groups = [self.states[start : start + each] for start in range(0, self.files, each)]
        order = (FileState.KEPT, FileState.UNINDEXED, FileState.SKIPPED)
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
            yield f"  also skipped by other Lakebloom objects: {', '.join(self.others)}"
        missed = self.unanswered
        if missed:
            yield "  not answered by any index"
            width = max(len(part.text) for part, _ in missed)
            yield from (f"    {part.text:<{width}}  {with_remedy(reason)}" for part, reason in missed)
        yield from (f"  {join.line()}" for join in self.joins)
        yield from (f"  {with_remedy(reason)}" for reason in self.other_reasons)
        if FileState.SKIPPED in self.states:
            each = self.files_for_each_character
            share = "each" if each == 1 else f"for {each} files"
            yield f"  files, one character {share}: # read, . skipped, ? unindexed"
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
        """The reasons that belong to no part, no index and no join."""
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
        skipped = f"{least}{self.files_skipped:,} of {files_text(self.files)} {would}skipped"
        read = f"{most}{files_text(self.files_kept)} {would or 'to '}read ({share})"
        text = f"{skipped}{self.answer}; {read}"
        if not self.files_not_covered:
            return text
        new = self.files_not_covered - self.files_stale
        return f"{text}, {new:,} new and {self.files_stale:,} changed among them"

    @property
    def units_summary(self) -> str:
        """How many units are skipped and read, in words; empty where units are files, or where whole files are read."""
        if not self.units or self.unit == "file":
            return ""
        kept = _counted(self.units_kept, self.unit)
        return f"{self.units - self.units_kept:,} of {_counted(self.units, self.unit)} skipped; {kept} to read"

    @property
    def answer(self) -> str:
        """What the indexes did, where the number of files does not show it."""
        if self.files_skipped or self.is_preview or self.others:
            return ""
        if self.use is Use.UNUSED:
            return ": no index was used"
        how = "the whole condition" if self.use is Use.FULL else "a part of the condition"
        return f": the index answered {how}, but every file may hold a match"

    @property
    def partition_summary(self) -> str:
        """How many files the partitions left, in words."""
        left = files_text(self.files)
        if self.files_of_table is not None:
            left = f"{self.files:,} of the table's {files_text(self.files_of_table)}"
        return f"partitions answer {self.partition_predicate}: {left} left"

    def _index_lines(self, index: IndexReport) -> Iterator[str]:
        if index.reason is not None:
            message = f" ({index.message})" if index.message else ""
            yield f"  index {index.name}: {with_remedy(index.reason)}{message}"
            return
        answered = [part for part in self.parts if part.index == index.name]
        alone = " alone" if any(other.reason is None and not other.version for other in self.indexes) else ""
        nothing = "" if answered else f": answered nothing{alone}"
        if index.version:
            cost = f"{_counted(index.segments, 'segment')}, {amount(index.bytes_read)} read"
            yield f"  index {index.name}, version {index.version} ({cost}){nothing}"
        else:
            yield f"  indexes {index.name}, together{nothing}"
        for part in answered:
            yield f"    {part.text}: column {part.column} {part.effect}"


def with_remedy(reason: Reason) -> str:
    """Return a reason with what to do about it."""
    return f"{reason.value}: {reason.meaning}. Remedy: {reason.remedy}"


def files_text(number: int) -> str:
    """Return a number of files in words."""
    return _counted(number, "file")


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"


def unit_name(granularity: str | int) -> str:
    """Return the usual name of a unit of this granularity.

    >>> unit_name("row_group"), unit_name("page"), unit_name(8192)
    ('row group', 'page range', 'zone')
    """
    names = {"row_group": "row group", "page": "page range"}
    return "zone" if isinstance(granularity, int) else names.get(granularity, granularity)
