"""The reports of operations: typed records that print as tables, on a terminal and in a notebook."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakebloom.display.tables import Printable
from lakebloom.errors import CorruptIndexError, IndexFormatError, IndexNotFoundError, NotFoundError, StorageError
from lakebloom.index.granularity import granularity_of
from lakebloom.sbbf import sizing
from lakebloom.tables.columns import format_name

if TYPE_CHECKING:
    from lakebloom.errors import LakebloomError
    from lakebloom.index.catalog import Catalog
    from lakebloom.store.log import Log
    from lakebloom.store.records import Commit


NOTHING_TO_DO = "nothing to do: the index is up to date"


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
    problem: str = ""
    """Why nothing else is known, if its state is "damaged" or "unreadable"."""

    def shown(self) -> list[tuple[str, str]]:
        """Return the fields as (name, text), the problem only if there is one."""
        rows = Printable.shown(self)
        return rows if self.problem else rows[:-1]

    @classmethod
    def broken(cls, name: str, version: int, error: LakebloomError) -> IndexRecord:
        """Return the record of an index whose log cannot be read: it is damaged, or cannot be reached at the moment."""
        state = "damaged" if isinstance(error, IndexFormatError) else "unreadable"
        return cls(name, state, version, (), "", 0.0, False, "", "", 0, 0, 0, 0, 0, 0, 0, str(error))

    @classmethod
    def of(cls, commit: Commit) -> IndexRecord:
        """Return the record of a commit."""
        config, segments = commit.config, commit.segments
        return cls(
            name=config.name,
            state=commit.state,
            version=commit.version,
            columns=tuple(format_name(column.path) for column in config.columns),
            granularity=granularity_of(commit),
            # Imported filters may have a higher rate than configured.
            fpp=max((s.fpp for s in segments), default=sizing.auto_fpp(1) if config.fpp is None else config.fpp),
            global_filter=config.global_filter,
            source=commit.table.name or ", ".join(commit.table.locations),
            format=commit.table.format,
            files=sum(segment.num_files for segment in segments),
            units=sum(segment.num_units for segment in segments),
            rows=sum(segment.num_rows for segment in segments),
            segments=len(segments),
            size_bytes=_size_bytes(commit),
            source_bytes=sum(segment.data_bytes for segment in segments),
            timestamp_ms=commit.timestamp_ms,
        )


def records_of(catalog: Catalog) -> list[IndexRecord]:
    """Return all indexes of a location. One that cannot be read is listed with the reason."""
    records = []
    for name in catalog.names():
        log = catalog.index(name).log
        try:
            records.append(IndexRecord.of(log.newest()))
        except IndexNotFoundError:
            continue  # removed
        except (IndexFormatError, StorageError) as error:
            version = 0
            with suppress(StorageError):
                version = max(log.versions(), default=0)
            records.append(IndexRecord.broken(name, version, error))
    return records


def _size_bytes(commit: Commit) -> int:
    tables = sum(segment.size_bytes for segment in commit.segments)
    return tables + sum(record.file.size_bytes for record in commit.global_filters)


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
    problem: str = ""
    """Why nothing else is known, if its state is "damaged"."""

    def shown(self) -> list[tuple[str, str]]:
        """Return the fields as (name, text), with the problem instead of what it hides."""
        rows = Printable.shown(self)[:-1]
        known = {"version": f"{self.version:,}", "state": self.state, "summary": self.problem}
        return [(label, known.get(label, "")) for label, _ in rows] if self.problem else rows

    @classmethod
    def broken(cls, version: int, error: LakebloomError) -> VersionRecord:
        """Return the record of a commit that cannot be read."""
        return cls(version, 0, "unknown", "damaged", 0, 0, {}, str(error))

    @classmethod
    def of(cls, commit: Commit) -> VersionRecord:
        """Return the record of a commit."""
        return cls(
            version=commit.version,
            timestamp_ms=commit.timestamp_ms,
            operation=commit.operation,
            state=commit.state,
            segments=len(commit.segments),
            units=sum(segment.num_units for segment in commit.segments),
            summary=commit.summary,
        )


def history_of(log: Log) -> list[VersionRecord]:
    """Return the versions of an index, the newest first; one that cannot be read has the state "damaged".

    Raises IndexNotFoundError if there are none.
    """
    with suppress(CorruptIndexError):
        log.newest()
    records = []
    for version in reversed(log.versions()):
        try:
            records.append(VersionRecord.of(log.read(version)))
        except NotFoundError:
            continue  # vacuumed since it was listed
        except CorruptIndexError as error:
            records.append(VersionRecord.broken(version, error))
    return records


@dataclass(frozen=True, slots=True, repr=False)
class OperationReport(Printable):
    """The report of an operation on the log."""

    name: str
    version: int
    operation: str
    committed: bool
    segments: int

    def shown(self) -> list[tuple[str, str]]:
        """Return the fields as (name, text)."""
        if self.committed:
            return Printable.shown(self)
        return [("name", self.name), ("version", f"{self.version:,}"), ("result", NOTHING_TO_DO)]

    @classmethod
    def of(cls, commit: Commit, *, committed: bool) -> OperationReport:
        """Return the report of the newest commit."""
        return cls(commit.config.name, commit.version, commit.operation, committed, len(commit.segments))
