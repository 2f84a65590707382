"""Repairs a damaged index, and removes an index in any state.

A repair checks the log first, then the files. If the newest commit cannot be read, the last readable one replaces it.
Segments and global filters with a damaged or missing file are dropped: every result is right again, because their data
files are then read. Then they are built again from the table, which needs Spark. An error of the store ends the
repair: nothing is dropped because the store could not be reached.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

import msgspec

from lakebloom.display.tables import Printable
from lakebloom.errors import CorruptIndexError, IndexFormatError, IndexNotFoundError, NotFoundError
from lakebloom.index.catalog import require_same
from lakebloom.index.maintain.damage import examine
from lakebloom.index.maintain.vacuum import removal_of
from lakebloom.index.reports import OperationReport
from lakebloom.store.commits import entry_path
from lakebloom.store.records import FOLDERS, ColumnRecord, Commit, ConfigRecord, TableRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from lakebloom.index.catalog import Catalog, Index
    from lakebloom.index.maintain.damage import Damage


__all__ = ["Rebuild", "Rebuilt", "RepairReport", "Salvage", "remove_index", "repair_index"]


@dataclass(frozen=True, slots=True)
class RepairReport(Printable):
    """What a repair did."""

    name: str
    version: int
    done: tuple[str, ...] = ()
    """What was damaged, and what was done; empty if nothing was."""
    left: tuple[str, ...] = ()
    """What remains to be done with Spark."""


class Salvage(msgspec.Struct, frozen=True):
    """What a damaged commit still says about the index: enough to build it again, not enough to trust."""

    config: ConfigRecord
    table: TableRecord


class Rebuilt(Protocol):
    """What a repair needs of the report of a create or refresh."""

    @property
    def version(self) -> int:
        """The version that it made."""

    @property
    def committed(self) -> bool:
        """Whether there was anything to build."""

    @property
    def files(self) -> int:
        """How many files were indexed."""

    @property
    def units(self) -> int:
        """How many units they have."""


@dataclass(frozen=True, slots=True)
class Rebuild:
    """How to build again what was dropped, with Spark."""

    refresh: Callable[[Literal["quick", "full"]], Rebuilt]
    """Refreshes the index, "quick" or "full"."""
    create: Callable[[Salvage], Rebuilt]
    """Creates the index again, in place of the damaged one."""


def repair_index(catalog: Catalog, name: str, rebuild: Rebuild | None) -> RepairReport:
    """Repair what is damaged. Without ``rebuild`` nothing is built, and the report says what remains to be done.

    Raises CorruptIndexError if no commit of the log can be read: then only ``remove_index`` helps.
    """
    index = catalog.index(name)
    done: list[str] = []
    try:
        commit = _mended_log(index, done)
    except CorruptIndexError as error:
        return _created_anew(index, rebuild, error)
    if commit.state == "deleted":
        return RepairReport(name, commit.version, tuple(done))
    _drop_old_commits(index, commit, done)
    damage = examine(index.storage, commit)
    damage.require_readable()
    if damage.errors:
        done += [f"{error.message}; {error.found}: dropped" for error in damage.errors]
        commit = _drop(index, commit, damage)
    if not (damage.errors or commit.operation == "repair"):
        return RepairReport(name, commit.version, tuple(done))
    if rebuild is None:
        left = "build again what was dropped: lake.refresh_index(name), or repair, with Spark"
        return RepairReport(name, commit.version, tuple(done), (left,))
    lost = commit.config.global_filter and len(commit.global_filters) < len(commit.config.columns)
    report = rebuild.refresh("full" if lost else "quick")
    if report.committed:
        done.append(f"built again: {report.files} files, {report.units} units")
    return RepairReport(name, report.version, tuple(done))


def _mended_log(index: Index, done: list[str]) -> Commit:
    """Return the newest commit. If it cannot be read, an older version is committed again."""
    try:
        return index.log.confirmed()
    except CorruptIndexError as error:
        highest = max(index.log.versions())
        for version in reversed(index.log.versions()):
            with suppress(IndexFormatError, NotFoundError):
                commit = index.log.read(version)
                if commit.state == "removed":
                    break
                mended = msgspec.structs.replace(commit, operation="repair", summary={"repaired_from": version})
                done.append(f"{error.message}; {error.found}: version {version} is the newest again")
                return index.log.force(mended, highest)
        raise


def _drop_old_commits(index: Index, newest: Commit, done: list[str]) -> None:
    """Delete commits of older versions that cannot be read: nothing needs them."""
    for version in index.log.versions():
        if version < newest.version:
            try:
                index.log.read(version)
            except NotFoundError:
                continue  # vacuumed since
            except CorruptIndexError as error:
                index.storage.delete(entry_path(version))
                done.append(f"{error.message}; {error.found}: an older version, removed")


def _created_anew(index: Index, rebuild: Rebuild | None, error: CorruptIndexError) -> RepairReport:
    found = _salvaged(index)
    if found is None or rebuild is None:
        how = "" if found is None else f"repair_index({index.name!r}) with Spark creates it again, or "
        raise CorruptIndexError(
            f"cannot repair index {index.name!r}: no commit of its log can be read",
            found=error.found,
            hint=f"{how}delete_index({index.name!r}, force=True) removes it",
        ) from error
    report = rebuild.create(found)
    _drop_old_commits(index, index.log.confirmed(), [])
    done = f"its log could not be read: created again from the readable parts, {report.files} files"
    return RepairReport(index.name, report.version, (done,), ("check that it has the columns that you want",))


def _drop(index: Index, examined: Commit, damage: Damage) -> Commit:
    def change(base: Commit) -> Commit:
        require_same(base, examined, "the repair")
        kept = tuple(segment for segment in base.segments if segment.id not in damage.segments)
        # Values of dropped segments stay in the other global filters: that is safe.
        filters = tuple(
            msgspec.structs.replace(f, segments=tuple(sorted(set(f.segments) - damage.segments)))
            for f in base.global_filters
            if f.column not in damage.global_filters
        )
        dropped = len(base.segments) - len(kept)
        return msgspec.structs.replace(
            base, operation="repair", segments=kept, global_filters=filters, summary={"segments_dropped": dropped}
        )

    committed = index.log.commit(change)
    assert committed is not None
    return committed


def _salvaged(index: Index) -> Salvage | None:
    """Return what the newest commit that is damaged, but still JSON, says about the index; None if there is none.

    It may be partly wrong. So it is used only to build the index again, which checks everything against the table.
    """
    for version in reversed(index.log.versions()):
        body = bytes(index.storage.read(entry_path(version))).partition(b"\n")[2]
        with suppress(msgspec.MsgspecError, UnicodeDecodeError):
            found = msgspec.json.decode(body, type=Salvage)
            if found.config.name == index.name:
                return found
    return None


def remove_index(catalog: Catalog, name: str) -> OperationReport:
    """Remove an index in any state: none of its files has to be readable. Its name is free then.

    It cannot be restored. Files that no version names may belong to a running build, perhaps of an index that replaces
    this one; vacuum removes them later. If the log is damaged, all files are removed.
    """
    index = catalog.index(name)
    is_cut = index.log.is_cut()
    listed = [file.path for folder in FOLDERS for file in index.storage.list(folder)]
    last = _removed(index)
    older = [version for version in index.log.versions() if version < last.version]
    named = None if is_cut else _named(index, older)
    doomed = [path for path in listed if named is None or path in named]
    for path in [*doomed, *map(entry_path, older)]:
        index.storage.delete(path)
    index.log.forget()
    return OperationReport.of(last, committed=True)


def _named(index: Index, versions: Iterable[int]) -> frozenset[str] | None:
    """Return the files that some versions name; None if one of them cannot be read."""
    named = frozenset[str]()
    for version in versions:
        try:
            named |= index.log.read(version).paths
        except NotFoundError:
            continue  # vacuumed since
        except IndexFormatError:
            return None
    return named


def _removed(index: Index) -> Commit:
    """Commit the state ``removed``."""
    try:
        committed = index.log.commit(removal_of)
        assert committed is not None
        return committed
    except IndexNotFoundError:
        raise
    except IndexFormatError:
        blank = Commit(
            version=1,
            timestamp_ms=0,
            operation="remove",
            state="removed",
            writer="",
            config=ConfigRecord(index.name, (ColumnRecord(("unknown",), "bigint"),), None, None, "file", False),
            table=TableRecord(format="", locations=()),
        )
        return index.log.force(blank, max(index.log.versions()))
