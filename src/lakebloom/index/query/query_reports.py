"""What a query skips, and what it counted when it ran: its scans and its joins."""

from __future__ import annotations

import abc
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lakebloom.display.tables import Printable, amount
from lakebloom.display.visible import visible
from lakebloom.index.query.scan_reports import ScanReport, files_text, with_remedy
from lakebloom.index.query.scan_reports_html import last_query_html, query_html
from lakebloom.predicate.reasons import Reason

__all__ = ["JoinFigures", "JoinReport", "LastQuery", "QueryReport", "ScanFigures"]


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
            return f"{place}: not filtered by {self.index}.{self.column}, {with_remedy(self.reason)}"
        merged = f", {files_text(self.files_merged)} added to it" if self.files_merged else ""
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
        read = f"read {files_text(self.files_read)}{size}, {rows} rows"
        if self.files is None or self.files_skipped is None:
            return f"{self.table}: {read}"
        return f"{self.table}: {self.files_skipped:,} of {files_text(self.files)} skipped; {read}"


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
