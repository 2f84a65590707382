"""All snapshots of an Iceberg table that were not expired, those of branches and tags included, with their files."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from lakebloom.storage.uri import from_decoded
from lakebloom.tables.formats.history_recorder import HistoryRecorder
from lakebloom.tables.formats.iceberg.manifests import DATA, read_entries, read_manifest_list
from lakebloom.tables.formats.table_history import RetainedVersion, TableHistory

if TYPE_CHECKING:
    from lakebloom.tables.formats.iceberg.manifests import ListedFile
    from lakebloom.tables.formats.iceberg.table import IcebergTable

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
    recorder = HistoryRecorder()
    for snapshot in (*snapshots, newest):
        recorder.replace(snapshot.data_files, snapshot.timestamp_ms)
        recorder.finish_version(RetainedVersion.of(snapshot, newest.metadata.refs_of(snapshot.version)))
    merges = newest.metadata.properties.get(_DELETE_MODE) == "merge-on-read"
    hides = merges or any(file.deletes is not None for file in newest.data_files.values())
    return TableHistory(tuple(recorder.versions), recorder.files(), None, None, hides)


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
