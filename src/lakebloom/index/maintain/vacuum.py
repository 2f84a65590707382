"""Removing what no one can need: old versions, files that no version names, unfinished files.

A file that no version names may belong to a build that is still running, so it goes only when it is older than a grace
period. Log entries of versions that are no more use stay as long. They go oldest first, and the highest never goes:
that is what the log's protocol rests on. A deleted index is removed by a last entry that says so and stays.

How old something is, the store says: times of files are compared with that of a file that was just written, never with
the clock of this machine, which may be ahead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from lakebloom.display.progress import Progress
from lakebloom.display.tables import Printable
from lakebloom.errors import CommitConflictError, CorruptIndexError, NotFoundError
from lakebloom.store.entries import entry_path
from lakebloom.store.log import HINT
from lakebloom.store.records import FOLDERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from lakebloom.display.progress import Report
    from lakebloom.index.catalog import Catalog, Index
    from lakebloom.storage import StoredFile
    from lakebloom.store.records import Entry


@dataclass(frozen=True, slots=True)
class VacuumReport(Printable):
    """What a vacuum removed."""

    name: str
    versions_removed: int
    files_removed: int


@dataclass(frozen=True, slots=True)
class _Version:
    """A version that another one replaced. Its entry is None where it cannot be read."""

    number: int
    entry: Entry | None
    replaced_ms: int

    @property
    def paths(self) -> frozenset[str]:
        return frozenset() if self.entry is None else self.entry.paths


def vacuum_index(
    catalog: Catalog, name: str, retention_ms: int, grace_ms: int, progress: Report | None = None
) -> VacuumReport:
    """Remove versions replaced more than ``retention_ms`` ago, and left-over files older than ``grace_ms``.

    An index that was deleted that long ago is removed altogether, and its name is free again. What is left of a removed
    index goes with the next vacuum after the grace period.
    """
    index = catalog.index(name)
    newest = index.log.tip()
    if newest is None:
        newest = index.log.present(newest)  # which says that there is none
    now, stored = index.log.clock(newest.version)
    if newest.state == "deleted" and (stored.get(newest.version, now) + retention_ms <= now or not newest.paths):
        _commit_removal(index, newest)
        return _clean(index, 0, grace_ms, now, progress)
    report = _clean(index, retention_ms, grace_ms, now, progress)
    if newest.state == "removed":
        return _close(index, newest, stored.get(newest.version, now) + grace_ms <= now, report)
    return report


def _clean(index: Index, retention_ms: int, grace_ms: int, now: int, progress: Report | None = None) -> VacuumReport:
    # Listed before the log is read: what a build commits meanwhile is named.
    listed = _listed(index)
    unfinished = list(index.storage.temporaries(""))
    newest, replaced = _versions(index)
    removed = newest.state == "removed"
    expired = [version for version in replaced if removed or version.replaced_ms + retention_ms <= now]
    named = newest.paths.union(*(version.paths for version in replaced[len(expired) :]))
    # What was committed once is not being written, so it needs no grace.
    released = frozenset[str]().union(*(version.paths for version in expired))
    left_over = [
        file.path
        for file in listed
        if file.path not in named and (file.path in released or file.mtime_ms + grace_ms <= now)
    ]
    left_over += [file.path for file in unfinished if file.mtime_ms + grace_ms <= now]
    useless = [version.number for version in expired if removed or version.replaced_ms + grace_ms <= now]
    # Files first: a vacuum that ends in the middle must leave the entries that say whose they were.
    files = _delete(index, sorted(set(left_over)), progress)
    return VacuumReport(name=index.name, versions_removed=_delete(index, map(entry_path, useless)), files_removed=files)


def _listed(index: Index) -> list[StoredFile]:
    return [file for folder in FOLDERS for file in index.storage.list(folder)]


def _versions(index: Index) -> tuple[Entry, list[_Version]]:
    """Return the newest entry and the versions before it, the oldest first."""
    newest, stored = index.log.listed()
    if newest is None:  # another vacuum was faster
        newest = index.log.present(newest)
    numbers = sorted(number for number in stored if number < newest.version)
    return newest, [
        version
        for number, successor in zip(numbers, [*numbers, newest.version][1:], strict=True)
        for version in _version(index, number, stored, successor)
    ]


def _version(index: Index, number: int, stored: Mapping[int, int], successor: int) -> list[_Version]:
    replaced_ms = stored.get(successor, stored[number])
    try:
        return [_Version(number, index.log.read(number), replaced_ms)]
    except NotFoundError:
        return []  # another vacuum was faster
    except CorruptIndexError:
        return [_Version(number, None, replaced_ms)]  # nothing depends on it any more, and here is where it goes


def _commit_removal(index: Index, newest: Entry) -> None:
    """Commit that a deleted index is gone, before anything of it goes: whoever would restore it now finds that out."""

    def change(base: Entry) -> Entry:
        if base.version != newest.version:
            raise CommitConflictError(
                f"cannot remove index {index.name!r}",
                found=f"version {base.version} came meanwhile",
                hint="vacuum again",
            )
        return removal_of(base)

    index.log.commit(change)


def removal_of(base: Entry) -> Entry:
    """Return the last entry of an index: it holds nothing, and keeps the numbers from starting anew."""
    return msgspec.structs.replace(
        base,
        operation="remove",
        state="removed",
        segments=(),
        global_filters=(),
        summary={},
        source=base.source.with_partitions(None),
    )


def _close(index: Index, last: Entry, is_old: bool, report: VacuumReport) -> VacuumReport:
    """Remove the last trace of a removed index, where nobody can be at work any more who knew it."""
    if is_old and not _listed(index):
        _delete(index, [HINT, entry_path(last.version)])
        return VacuumReport(index.name, report.versions_removed + 1, report.files_removed)
    if not (report.versions_removed or report.files_removed):
        index.log.present(last)  # which says that it was removed
    return report


def _delete(index: Index, paths: Iterable[str], progress: Report | None = None) -> int:
    doomed = list(paths)
    for count, path in enumerate(doomed, start=1):
        index.storage.delete(path)
        if progress is not None:
            progress(Progress(count, len(doomed), 0, 0, 0))
    return len(doomed)
