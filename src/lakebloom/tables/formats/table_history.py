"""What a table still keeps: every version that can be read, and the files of all of them.

A file belongs to a run of versions, and may come back later (RESTORE): then it is there twice. The directory may hold
more files, which no version has. A table without a log has one version, the present.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from lakebloom.tables.column_mapping import ColumnMapping
    from lakebloom.tables.formats.table_snapshot import DataFile, TableSnapshot

_MOST_MS = 1 << 62

__all__ = ["RetainedFile", "RetainedVersion", "TableHistory", "TableRef"]


class TableRef(NamedTuple):
    """A name that keeps a version."""

    kind: str
    """"branch" or "tag"."""
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class RetainedVersion(NamedTuple):
    """A version that can be read. Versions are in the order of their numbers."""

    table_id: str
    version: int
    timestamp_ms: int | None
    """When it was committed; None where that is no longer known."""
    schema_json: str
    mapping: ColumnMapping
    partition_columns: tuple[str, ...]
    refs: tuple[TableRef, ...] | None = None
    """The names that keep it, besides its place in the history; None for a format without such names."""
    expires_ms: int | None = None
    """From when on it may be expired, where versions expire by their age; None if that is not known, or never."""

    @classmethod
    def of(cls, snapshot: TableSnapshot, refs: tuple[TableRef, ...], expires_ms: int | None) -> RetainedVersion:
        """Return what is known of a snapshot."""
        return cls(
            snapshot.table_id,
            snapshot.version,
            snapshot.timestamp_ms,
            snapshot.schema_json,
            snapshot.mapping,
            snapshot.partition_columns,
            refs,
            expires_ms,
        )


class RetainedFile(NamedTuple):
    """A file with the versions that have it, by their places in the history."""

    data_file: DataFile
    first: int
    last: int
    removed_ms: int | None
    """When it was removed; None for a file of the newest version, and where that is not known."""


class TableHistory(NamedTuple):
    """The retained versions of a table."""

    versions: tuple[RetainedVersion, ...]
    files: tuple[RetainedFile, ...]
    file_retention_ms: int | None
    """For how long removed files are kept at least; None where that is not known."""
    log_retention_ms: int | None
    """For how long versions can be named at least; None where that is not known."""
    hides_rows: bool
    """Whether deletes may leave rows in files, and only mark them as deleted."""

    @property
    def newest(self) -> RetainedVersion:
        """The newest version."""
        return self.versions[-1]

    def removable_ms(self, file: RetainedFile) -> int | None:
        """Return from when on a file may be removed for good; None where that is not known, or never."""
        if self.file_retention_ms is None:
            return self._expired_ms(file)
        if file.removed_ms is None:
            return None
        until = file.removed_ms + self.file_retention_ms
        return until if 0 <= until < _MOST_MS else None  # a log may say anything

    def _expired_ms(self, file: RetainedFile) -> int | None:
        """Return from when on the last version that has a file may be expired."""
        known = [version.expires_ms for version in self.versions[file.first : file.last + 1]]
        times = [time_ms for time_ms in known if time_ms is not None]
        return max(times) if len(times) == len(known) else None
