"""Removes what nobody needs: old versions, files that no version names, unfinished files.

A file that no version names may belong to a running build, so it is removed only if it is older than a grace period.
Commits of old versions stay as long. The oldest are removed first, and the highest version is never removed: the log's
protocol depends on that. A deleted index is removed by a last commit with the state ``removed``, which stays.

Ages are measured by the store's clock: times of files are compared with that of a file that was just written, never
with the clock of this machine, which may be ahead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from lakebloom.display.progress import Progress
from lakebloom.display.tables import Printable
from lakebloom.errors import CommitConflictError, CorruptIndexError, NotFoundError
from lakebloom.store.commits import entry_path
from lakebloom.store.log import HINT
from lakebloom.store.records import FOLDERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from lakebloom.display.progress import Report
    from lakebloom.index.catalog import Catalog, Index
    from lakebloom.storage import StoredFile
    from lakebloom.store.records import Commit


@dataclass(frozen=True, slots=True)
class VacuumReport(Printable):
    """What a vacuum removed."""

    name: str
    versions_removed: int
    files_removed: int


@dataclass(frozen=True, slots=True)
class _Version:
    """A version that another one replaced. Its commit is None if it cannot be read."""

    number: int
    commit: Commit | None
    replaced_ms: int

    @property
    def paths(self) -> frozenset[str]:
        return frozenset() if self.commit is None else self.commit.paths


def vacuum_index(
    catalog: Catalog, name: str, retention_ms: int, grace_ms: int, progress: Report | None = None
) -> VacuumReport:
    """Remove versions replaced more than ``retention_ms`` ago, and left-over files older than ``grace_ms``.

    An index that was deleted that long ago is removed, and its name is free again. The last commit of a removed index
    is removed by the next vacuum after the grace period.
    """
    index = catalog.index(name)
    newest = index.log.tip()
    if newest is None:
        newest = index.log.present(newest)  # raises: there is no index
    now, stored = index.log.clock(newest.version)
    if newest.state == "deleted" and (stored.get(newest.version, now) + retention_ms <= now or not newest.paths):
        _commit_removal(index, newest)
        return _clean(index, 0, grace_ms, now, progress)
    report = _clean(index, retention_ms, grace_ms, now, progress)
    if newest.state == "removed":
        return _close(index, newest, stored.get(newest.version, now) + grace_ms <= now, report)
    return report


def _clean(index: Index, retention_ms: int, grace_ms: int, now: int, progress: Report | None = None) -> VacuumReport:
    # List before reading the log: files that a build commits meanwhile are then named by it.
    listed = _listed(index)
    unfinished = list(index.storage.temporaries(""))
    newest, replaced = _versions(index)
    removed = newest.state == "removed"
    expired = [version for version in replaced if removed or version.replaced_ms + retention_ms <= now]
    named = newest.paths.union(*(version.paths for version in replaced[len(expired) :]))
    # A file that was committed is not being written, so it needs no grace period.
    released = frozenset[str]().union(*(version.paths for version in expired))
    left_over = [
        file.path
        for file in listed
        if file.path not in named and (file.path in released or file.mtime_ms + grace_ms <= now)
    ]
    left_over += [file.path for file in unfinished if file.mtime_ms + grace_ms <= now]
    useless = [version.number for version in expired if removed or version.replaced_ms + grace_ms <= now]
    # Files first: a vacuum that is interrupted must leave the commits that name the remaining files.
    files = _delete(index, sorted(set(left_over)), progress)
    return VacuumReport(name=index.name, versions_removed=_delete(index, map(entry_path, useless)), files_removed=files)


def _listed(index: Index) -> list[StoredFile]:
    return [file for folder in FOLDERS for file in index.storage.list(folder)]


def _versions(index: Index) -> tuple[Commit, list[_Version]]:
    """Return the newest commit and the versions before it, the oldest first."""
    newest, stored = index.log.listed()
    if newest is None:  # another vacuum removed it
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
        return [_Version(number, None, replaced_ms)]  # nothing depends on it any more: remove it


def _commit_removal(index: Index, newest: Commit) -> None:
    """Commit the state ``removed`` before removing files, so that nobody restores the index meanwhile."""

    def change(base: Commit) -> Commit:
        if base.version != newest.version:
            raise CommitConflictError(
                f"cannot remove index {index.name!r}",
                found=f"version {base.version} was committed meanwhile",
                hint="vacuum again",
            )
        return removal_of(base)

    index.log.commit(change)


def removal_of(base: Commit) -> Commit:
    """Return the last commit of an index: it names no files, and later versions continue from its number."""
    return msgspec.structs.replace(
        base,
        operation="remove",
        state="removed",
        segments=(),
        global_filters=(),
        summary={},
        table=base.table.with_partitions(None),
    )


def _close(index: Index, last: Commit, is_old: bool, report: VacuumReport) -> VacuumReport:
    """Remove the last commit of a removed index, once no writer can still know the index."""
    if is_old and not _listed(index):
        _delete(index, [HINT, entry_path(last.version)])
        return VacuumReport(index.name, report.versions_removed + 1, report.files_removed)
    if not (report.versions_removed or report.files_removed):
        index.log.present(last)  # raises: the index was removed
    return report


def _delete(index: Index, paths: Iterable[str], progress: Report | None = None) -> int:
    doomed = list(paths)
    for count, path in enumerate(doomed, start=1):
        index.storage.delete(path)
        if progress is not None:
            progress(Progress(count, len(doomed), 0, 0, 0))
    return len(doomed)
