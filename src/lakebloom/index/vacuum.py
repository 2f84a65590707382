"""Removing what no one can need: old versions, files that no version names, unfinished files.

A file that no version names may belong to a build that is still running, so it goes only when it is older than a grace
period. Log entries of versions that are no more use stay as long: a writer that is about to commit must find a number
taken that was taken once. They go oldest first, because what is missing at the log's end counts as not yet written.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from lakebloom.errors import CommitConflictError, CorruptIndexError, NotFoundError
from lakebloom.index.reports import VacuumReport
from lakebloom.store.log import HINT, entry_path, now_ms

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lakebloom.index.catalog import Catalog, Index
    from lakebloom.storage import StoredFile
    from lakebloom.store.records import Entry

_FOLDERS = ("segments", "global")


@dataclass(frozen=True, slots=True)
class _Version:
    """A version that another one replaced. Its entry is None where it cannot be read."""

    number: int
    entry: Entry | None
    replaced_ms: int

    @property
    def paths(self) -> frozenset[str]:
        return frozenset() if self.entry is None else self.entry.paths


def vacuum_index(catalog: Catalog, name: str, retention_ms: int, grace_ms: int) -> VacuumReport:
    """Remove versions replaced more than ``retention_ms`` ago, and left-over files older than ``grace_ms``.

    An index that was deleted that long ago is removed altogether, and its name is free again.
    """
    index = catalog.index(name)
    newest = index.log.confirmed()
    now = now_ms()
    if newest.state == "deleted" and (newest.timestamp_ms + retention_ms <= now or not newest.paths):
        return _remove_all(index, newest)
    # Listed before the log is read: what a build commits meanwhile is named.
    listed = _listed(index)
    unfinished = list(index.storage.temporaries(""))
    newest, replaced = _versions(index)
    expired = [version for version in replaced if version.replaced_ms + retention_ms <= now]
    named = newest.paths.union(*(version.paths for version in replaced[len(expired) :]))
    # What was committed once is not being written, so it needs no grace.
    released = frozenset[str]().union(*(version.paths for version in expired))
    left_over = [
        file.path
        for file in listed
        if file.path not in named and (file.path in released or file.mtime_ms + grace_ms <= now)
    ]
    left_over += [file.path for file in unfinished if file.mtime_ms + grace_ms <= now]
    useless = [version.number for version in expired if version.replaced_ms + grace_ms <= now]
    return VacuumReport(
        name=name,
        versions_removed=_delete(index, map(entry_path, useless)),
        files_removed=_delete(index, sorted(set(left_over))),
    )


def _listed(index: Index) -> list[StoredFile]:
    return [file for folder in _FOLDERS for file in index.storage.list(folder)]


def _versions(index: Index) -> tuple[Entry, list[_Version]]:
    """Return the newest entry and the versions before it, the oldest first."""
    numbers = index.log.versions()
    newest = index.log.read(numbers.pop())
    replaced: list[_Version] = []
    replaced_ms = newest.timestamp_ms
    for number in reversed(numbers):
        entry = None
        try:
            entry = index.log.read(number)
        except NotFoundError:
            continue  # another vacuum was faster
        except CorruptIndexError:
            pass  # nothing depends on it any more, and here is where it goes
        replaced.append(_Version(number, entry, replaced_ms))
        replaced_ms = replaced_ms if entry is None else entry.timestamp_ms
    return newest, replaced[::-1]


def _remove_all(index: Index, newest: Entry) -> VacuumReport:
    """Remove a deleted index.

    First commit that it holds nothing: whoever restores it now, or after a crash, finds nothing broken. What is written
    after that commit is not touched.
    """

    def change(base: Entry) -> Entry:
        if base.version != newest.version:
            raise CommitConflictError(
                f"cannot remove index {index.name!r}",
                found=f"version {base.version} came meanwhile",
                hint="vacuum again",
            )
        return msgspec.structs.replace(base, operation="delete", segments=(), global_filters=(), summary={})

    doomed = {file.path for file in [*_listed(index), *index.storage.temporaries("")]}
    last = index.log.commit(change)
    assert last is not None
    files = _delete(index, sorted(doomed))
    older = [number for number in index.log.versions() if number < last.version]
    versions = _delete(index, map(entry_path, older))
    _delete(index, [HINT, entry_path(last.version)])
    index.log.forget()
    return VacuumReport(name=index.name, versions_removed=versions + 1, files_removed=files)


def _delete(index: Index, paths: Iterable[str]) -> int:
    count = 0
    for path in paths:
        index.storage.delete(path)
        count += 1
    return count
