"""All snapshots of an Iceberg table that were not expired, those of branches and tags included, with their files."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from lakebloom.storage.uri import from_decoded
from lakebloom.tables.formats.history_recorder import HistoryRecorder
from lakebloom.tables.formats.iceberg.manifests import DATA, read_entries, read_manifest_list
from lakebloom.tables.formats.table_history import RetainedVersion, TableHistory

if TYPE_CHECKING:
    from lakebloom.tables.formats.iceberg.manifests import ListedFile
    from lakebloom.tables.formats.iceberg.metadata import TableMetadata
    from lakebloom.tables.formats.iceberg.table import IcebergTable

__all__ = ["DeleteFile", "iceberg_delete_files", "iceberg_history"]

_DELETE_MODE = "write.delete.mode"
_MOST_AGE, _FEWEST, _REMOVES = (
    "history.expire.max-snapshot-age-ms",
    "history.expire.min-snapshots-to-keep",
    "gc.enabled",
)
_FIVE_DAYS_MS = 5 * 24 * 3600 * 1000
_MOST_DIGITS = 18


def iceberg_history(table: IcebergTable) -> TableHistory:
    """Return the retained snapshots in the order of their times; the current one, with its schema now, is the last.

    The current one is there twice if its own schema is another one: who asks for it by its id reads it with that.
    When they expire is said by the table's settings, which whoever expires them may overrule. Raises the errors of
    reading any of them: of what cannot be read nothing can be proven.
    """
    newest = table.newest()
    others = sorted(newest.metadata.snapshots, key=lambda each: (each.timestamp_ms, each.snapshot_id))
    snapshots = [table.at(each.snapshot_id) for each in others if each.snapshot_id != newest.version]
    info = newest.metadata.current_snapshot
    if info is not None and info.schema_id not in (None, newest.metadata.current_schema_id):
        snapshots.append(table.at(info.snapshot_id))
    recorder = HistoryRecorder()
    age_ms = _expired_after_ms(newest.metadata)
    for snapshot in (*snapshots, newest):
        recorder.replace(snapshot.data_files, snapshot.timestamp_ms)
        refs = newest.metadata.refs_of(snapshot.version)
        is_kept = bool(refs) or snapshot.version == newest.version
        known = None if is_kept or age_ms is None or snapshot.timestamp_ms is None else snapshot.timestamp_ms + age_ms
        recorder.finish_version(RetainedVersion.of(snapshot, refs, known))
    merges = newest.metadata.properties.get(_DELETE_MODE) == "merge-on-read"
    hides = merges or any(file.deletes is not None for file in newest.data_files.values())
    return TableHistory(tuple(recorder.versions), recorder.files(), None, None, hides)


def _expired_after_ms(metadata: TableMetadata) -> int | None:
    """Return the age from which on snapshots expire that are not the newest of a branch, and have no tag.

    None where more than the age decides: a number of snapshots to keep, settings of a branch, or no removal at all.
    """
    properties = metadata.properties
    has_own = any(ref.min_snapshots_to_keep or ref.max_snapshot_age_ms for ref in metadata.refs.values())
    if has_own or properties.get(_FEWEST, "1") != "1" or properties.get(_REMOVES, "true").lower() != "true":
        return None
    text = properties.get(_MOST_AGE, str(_FIVE_DAYS_MS))
    return int(text) if text.isdecimal() and len(text) <= _MOST_DIGITS else None


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
