"""All snapshots of an Iceberg table that were not expired, those of branches and tags included, with their files."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from lakebloom.storage.uri import from_decoded
from lakebloom.tables.formats.iceberg.manifests import DATA, read_entries, read_manifest_list
from lakebloom.tables.formats.table_history import RetainedFile, RetainedVersion, TableHistory

if TYPE_CHECKING:
    from lakebloom.tables.formats.iceberg.manifests import ListedFile
    from lakebloom.tables.formats.iceberg.snapshot import IcebergSnapshot
    from lakebloom.tables.formats.iceberg.table import IcebergTable
    from lakebloom.tables.formats.table_snapshot import DataFile

__all__ = ["DeleteFile", "iceberg_delete_files", "iceberg_history"]

_DELETE_MODE = "write.delete.mode"


def iceberg_history(table: IcebergTable) -> TableHistory:
    """Return the retained snapshots in the order of their times; the current one, with its schema now, is the last.

    The current one is there twice if its own schema is another one: who asks for it by its id reads it with that.
    How long snapshots are kept is said by who expires them, so no times are known. Raises the errors of reading any of
    them: of what cannot be read nothing can be proven.
    """
    newest = table.newest()
    others = sorted(newest.metadata.snapshots, key=lambda each: (each.timestamp_ms, each.snapshot_id))
    snapshots = [table.at(each.snapshot_id) for each in others if each.snapshot_id != newest.version]
    info = newest.metadata.current_snapshot
    if info is not None and info.schema_id not in (None, newest.metadata.current_schema_id):
        snapshots.append(table.at(info.snapshot_id))
    recorder = _Recorder()
    for snapshot in (*snapshots, newest):
        recorder.add(snapshot)
    merges = newest.metadata.properties.get(_DELETE_MODE) == "merge-on-read"
    hides = merges or any(file.deletes is not None for file in newest.data_files.values())
    return TableHistory(tuple(recorder.versions), tuple(recorder.files()), None, None, hides)


class DeleteFile(NamedTuple):
    """A file of deletes of some retained snapshots."""

    uri: str
    size_bytes: int
    snapshot_id: int
    format: str
    is_current: bool


def iceberg_delete_files(table: IcebergTable, options: dict[str, str]) -> list[DeleteFile]:
    """Return the files of deletes of all retained snapshots. Raises the errors of reading them."""
    metadata = table.newest().metadata
    entries: dict[str, tuple[ListedFile, ...]] = {}
    found: dict[str, DeleteFile] = {}
    for info in metadata.snapshots:
        if info.manifest_list is None:
            continue
        manifests = read_manifest_list(from_decoded(info.manifest_list), options)
        entries.update(read_entries(manifests, options, entries))
        is_current = info.snapshot_id == metadata.current_snapshot_id
        for each in (entry for manifest in manifests for entry in entries[manifest.uri] if entry.content != DATA):
            known = found.get(each.uri)
            if known is None or is_current:
                found[each.uri] = DeleteFile(each.uri, each.size_bytes, each.snapshot_id, each.format, is_current)
    return list(found.values())


class _Recorder:
    """Goes from snapshot to snapshot, and notes when each file comes and goes."""

    def __init__(self) -> None:
        self.versions: list[RetainedVersion] = []
        self._open: dict[str, tuple[DataFile, int]] = {}
        self._closed: list[RetainedFile] = []

    def add(self, snapshot: IcebergSnapshot) -> None:
        """Take the next snapshot."""
        now, place = snapshot.data_files, len(self.versions)
        for uri, (file, first) in list(self._open.items()):
            if now.get(uri) != file:
                self._closed.append(RetainedFile(file, first, place - 1, snapshot.timestamp_ms))
                del self._open[uri]
        for uri, file in now.items():
            self._open.setdefault(uri, (file, place))
        self.versions.append(
            RetainedVersion(
                snapshot.table_id,
                snapshot.version,
                snapshot.timestamp_ms,
                snapshot.schema_json,
                snapshot.mapping,
                snapshot.partition_columns,
            )
        )

    def files(self) -> list[RetainedFile]:
        """Return all files, with the snapshots that have them."""
        last = len(self.versions) - 1
        return [*self._closed, *(RetainedFile(file, first, last, None) for file, first in self._open.values())]
