"""Removing what no one can need: old versions, files that no version names, unfinished files.

A file that no version names may belong to a build that is still running, so only files older than a grace period go.
Entries go before the files they name, oldest first, so that at any moment every entry that is left has its files.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec

from lakebloom.errors import CommitConflictError, NotFoundError
from lakebloom.index.reports import VacuumReport
from lakebloom.store.log import entry_path, now_ms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from lakebloom.index.catalog import Catalog, Index
    from lakebloom.store.records import Entry

_FOLDERS = ("segments", "global")


def vacuum_index(catalog: Catalog, name: str, retention_ms: int, grace_ms: int) -> VacuumReport:
    """Remove versions replaced more than ``retention_ms`` ago, and left-over files older than ``grace_ms``.

    An index that was deleted that long ago is removed altogether, and its name is free again.
    """
    index = catalog.index(name)
    newest = index.log.newest()
    now = now_ms()
    if newest.state == "deleted" and newest.timestamp_ms + retention_ms <= now:
        return _remove_all(index, newest)
    entries = _entries(index)
    # A version is readable until its successor has been there for the retention period.
    replaced = [entry for entry, successor in pairwise(entries) if successor.timestamp_ms + retention_ms <= now]
    removed = _delete(index, (entry_path(entry.version) for entry in replaced))
    named = {path for entry in entries[len(replaced) :] for path in files_of(entry)}
    # What an old version named and no kept one does can go at once: it was committed, so no build is writing it.
    released = {path for entry in replaced for path in files_of(entry)} - named
    left_over = {
        file.path
        for folder in _FOLDERS
        for file in index.storage.list(folder)
        if file.path not in named and (file.path in released or file.mtime_ms + grace_ms <= now)
    }
    unfinished = {file.path for file in index.storage.temporaries("") if file.mtime_ms + grace_ms <= now}
    files = _delete(index, sorted(left_over)) + _delete(index, sorted(unfinished))
    return VacuumReport(name=name, versions_removed=removed, files_removed=files)


def _entries(index: Index) -> list[Entry]:
    entries = []
    for version in index.log.versions():
        with suppress(NotFoundError):  # another vacuum was faster
            entries.append(index.log.read(version))
    return entries


def files_of(entry: Entry) -> Iterator[str]:
    """Yield the files that a version needs."""
    for segment in entry.segments:
        yield segment.units.path
        yield from (tile.file.path for tile in segment.tiles)
    yield from (record.file.path for record in entry.global_filters)


def _remove_all(index: Index, newest: Entry) -> VacuumReport:
    """Remove a deleted index. First commit that it holds nothing: a restore after a crash then finds nothing broken."""

    def change(base: Entry) -> Entry:
        if base.version != newest.version:
            raise CommitConflictError(
                f"cannot remove index {index.name!r}",
                found=f"version {base.version} came meanwhile",
                hint="vacuum again",
            )
        return msgspec.structs.replace(base, operation="delete", segments=(), global_filters=(), summary={})

    last = newest
    if newest.segments or newest.global_filters:
        committed = index.log.commit(change)
        assert committed is not None
        last = committed
    files = _delete(index, [file.path for folder in _FOLDERS for file in index.storage.list(folder)])
    files += _delete(index, [file.path for file in index.storage.temporaries("")])
    versions = [version for version in index.log.versions() if version != last.version]
    removed = _delete(index, (entry_path(version) for version in versions))
    index.storage.delete("log/latest")
    index.storage.delete(entry_path(last.version))
    index.log.forget()
    return VacuumReport(name=index.name, versions_removed=removed + 1, files_removed=files)


def _delete(index: Index, paths: Iterable[str]) -> int:
    count = 0
    for path in paths:
        index.storage.delete(path)
        count += 1
    return count
