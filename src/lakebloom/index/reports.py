"""What operations return: typed records that print as tables, on a terminal and in a notebook."""

from __future__ import annotations

import datetime
import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from lakebloom.sbbf import sizing
from lakebloom.tables.columns import format_name

if TYPE_CHECKING:
    from lakebloom.index.plan import BuildResult, SkippedFile
    from lakebloom.store.records import Entry


class Printable:
    """A record that prints its fields as a table of two columns."""

    def shown(self) -> list[tuple[str, str]]:
        """Return the fields as (name, text)."""
        return [
            (_label(attribute.name), text_of(attribute.name, getattr(self, attribute.name)))
            for attribute in fields(self)  # type: ignore[arg-type]
        ]

    def __str__(self) -> str:
        rows = self.shown()
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:<{width}}  {value}".rstrip() for name, value in rows)

    def _repr_html_(self) -> str:
        cells = "".join(f"<tr><th>{html.escape(n)}</th><td>{html.escape(v)}</td></tr>" for n, v in self.shown())
        return f"<table>{cells}</table>"


RecordT = TypeVar("RecordT", bound=Printable)


class RecordTable(Sequence[RecordT], Generic[RecordT]):
    """Records of one kind, printed as one table with a line each."""

    def __init__(self, records: Sequence[RecordT]) -> None:
        self._records = tuple(records)

    def __len__(self) -> int:
        return len(self._records)

    def __getitem__(self, item: Any) -> Any:
        return self._records[item]

    def __iter__(self) -> Iterator[RecordT]:
        return iter(self._records)

    def _cells(self) -> list[list[str]]:
        if not self._records:
            return []
        return [[name for name, _ in self._records[0].shown()], *([v for _, v in r.shown()] for r in self._records)]

    def __str__(self) -> str:
        cells = self._cells()
        if not cells:
            return "(none)"
        widths = [max(len(line[i]) for line in cells) for i in range(len(cells[0]))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in cells]
        return "\n".join(line.rstrip() for line in lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        cells = self._cells()
        if not cells:
            return "<p>(none)</p>"
        head = "".join(f"<th>{html.escape(cell)}</th>" for cell in cells[0])
        body = "".join("<tr>" + "".join(f"<td>{html.escape(c)}</td>" for c in line) + "</tr>" for line in cells[1:])
        return f"<table><tr>{head}</tr>{body}</table>"


def _label(name: str) -> str:
    return name.removesuffix("_ms").replace("_", " ")


def text_of(name: str, value: Any) -> str:
    """Return a field's value as people read it."""
    if name == "timestamp_ms":
        return datetime.datetime.fromtimestamp(value / 1000, datetime.timezone.utc).isoformat(" ", "milliseconds")
    if isinstance(value, dict):
        return ", ".join(f"{_label(key)} {text_of(key, item)}" for key, item in value.items())
    if isinstance(value, (tuple, list)):
        return ", ".join(str(item) for item in value)
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return "" if value is None else str(value)


@dataclass(frozen=True, slots=True)
class IndexRecord(Printable):
    """An index as it is now."""

    name: str
    state: str
    version: int
    columns: tuple[str, ...]
    granularity: str | int
    fpp: float | str
    global_filter: bool
    source: str
    format: str
    files: int
    units: int
    rows: int
    segments: int
    size_bytes: int
    source_bytes: int
    timestamp_ms: int

    @classmethod
    def of(cls, entry: Entry) -> IndexRecord:
        """Return the record of a log entry."""
        config, segments = entry.config, entry.segments
        return cls(
            name=config.name,
            state=entry.state,
            version=entry.version,
            columns=tuple(format_name(column.path) for column in config.columns),
            granularity=config.granularity,
            fpp=config.fpp if config.fpp is not None else max((s.fpp for s in segments), default=sizing.auto_fpp(1)),
            global_filter=config.global_filter,
            source=entry.source.table or ", ".join(entry.source.locations),
            format=entry.source.format,
            files=sum(segment.num_files for segment in segments),
            units=sum(segment.num_units for segment in segments),
            rows=sum(segment.num_rows for segment in segments),
            segments=len(segments),
            size_bytes=_size_bytes(entry),
            source_bytes=sum(segment.source_bytes for segment in segments),
            timestamp_ms=entry.timestamp_ms,
        )


def _size_bytes(entry: Entry) -> int:
    tables = sum(segment.size_bytes for segment in entry.segments)
    return tables + sum(record.file.size_bytes for record in entry.global_filters)


@dataclass(frozen=True, slots=True)
class VersionRecord(Printable):
    """One version in an index's history."""

    version: int
    timestamp_ms: int
    operation: str
    state: str
    segments: int
    units: int
    summary: dict[str, int | float]

    @classmethod
    def of(cls, entry: Entry) -> VersionRecord:
        """Return the record of a log entry."""
        return cls(
            version=entry.version,
            timestamp_ms=entry.timestamp_ms,
            operation=entry.operation,
            state=entry.state,
            segments=len(entry.segments),
            units=sum(segment.num_units for segment in entry.segments),
            summary=entry.summary,
        )


@dataclass(frozen=True, slots=True)
class BuildReport(Printable):
    """What a create or refresh built."""

    name: str
    version: int
    committed: bool
    files: int
    units: int
    rows: int
    fpp: float
    bytes_read: int
    bytes_written: int
    skipped: tuple[SkippedFile, ...] = ()
    seconds: dict[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, entry: Entry, result: BuildResult, seconds: dict[str, float]) -> BuildReport:
        """Return the report of a build that was committed as ``entry``."""
        segments = result.segments
        return cls(
            name=entry.config.name,
            version=entry.version,
            committed=True,
            files=sum(segment.num_files for segment in segments),
            units=sum(segment.num_units for segment in segments),
            rows=sum(segment.num_rows for segment in segments),
            fpp=max((segment.fpp for segment in segments), default=0.0),
            bytes_read=sum(group.bytes_read for group in result.groups),
            bytes_written=sum(segment.size_bytes for segment in segments),
            skipped=result.skipped,
            seconds=dict(seconds),
        )

    @classmethod
    def unchanged(cls, entry: Entry, seconds: dict[str, float], skipped: tuple[SkippedFile, ...] = ()) -> BuildReport:
        """Return the report of a refresh that found nothing to do, or nothing that it could read."""
        return cls(entry.config.name, entry.version, False, 0, 0, 0, 0.0, 0, 0, skipped, dict(seconds))


@dataclass(frozen=True, slots=True)
class OperationReport(Printable):
    """What an operation on the log did."""

    name: str
    version: int
    operation: str
    committed: bool
    segments: int

    @classmethod
    def of(cls, entry: Entry, *, committed: bool) -> OperationReport:
        """Return the report of the entry that is now the newest."""
        return cls(entry.config.name, entry.version, entry.operation, committed, len(entry.segments))


@dataclass(frozen=True, slots=True)
class VacuumReport(Printable):
    """What a vacuum removed."""

    name: str
    versions_removed: int
    files_removed: int


@dataclass(frozen=True, slots=True)
class VerifyReport(Printable):
    """What a verification found."""

    name: str
    version: int
    corrupt: tuple[str, ...] = ()
    """Files of the index that are not what was written; with any, nothing else was looked at."""
    files_checked: int = 0
    values_checked: int = 0
    false_negatives: int = 0
    unreadable: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()
    """Files that changed since they were indexed."""
    missing: tuple[str, ...] = ()
    """Files that are gone."""
    not_indexed: tuple[str, ...] = ()
    """Files that came since."""
    orphaned: tuple[str, ...] = ()
    """Files in the index's directory that none of its versions names."""

    @property
    def ok(self) -> bool:
        """True where nothing is corrupt and no value is missing from its filter."""
        return not self.corrupt and self.false_negatives == 0
