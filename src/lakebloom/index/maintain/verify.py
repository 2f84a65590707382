"""Verifies an index: every checksum is right, and every value of the data passes its filter."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lakebloom.display.tables import Printable
from lakebloom.errors import CorruptIndexError, InvalidArgumentError, NotFoundError
from lakebloom.index.catalog import require_active
from lakebloom.index.current_table import recorded_table
from lakebloom.index.maintain.damage import Damage, examine
from lakebloom.index.maintain.freshness import freshness
from lakebloom.index.maintain.verify_files import FileCheck
from lakebloom.index.snapshot import Snapshot
from lakebloom.store.records import FOLDERS

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakebloom.display.progress import Report
    from lakebloom.index.catalog import Index
    from lakebloom.index.current_table import CurrentTable
    from lakebloom.store.records import Commit
    from lakebloom.tables.file_identity import TableFile


@dataclass(frozen=True, slots=True)
class VerifyReport(Printable):
    """The result of a verification."""

    name: str
    version: int
    corrupt: tuple[str, ...] = ()
    """Damaged files of the index; if there are any, the data was not checked."""
    files_checked: int = 0
    values_checked: int = 0
    false_negatives: int = 0
    unreadable: tuple[str, ...] = ()
    """Files of the table or of the index that could not be read, and so were not checked."""
    stale: tuple[str, ...] = ()
    """Files that changed since they were indexed."""
    missing: tuple[str, ...] = ()
    """Files that are gone."""
    not_indexed: tuple[str, ...] = ()
    """Files that are new since."""
    orphaned: tuple[str, ...] = ()
    """Files in the index's directory that none of its versions names."""
    proven: bool = True
    """False if files of the index are corrupt or could not be read, so that the data was not checked."""

    def shown(self) -> list[tuple[str, str]]:
        """Return the fields as (name, text)."""
        return Printable.shown(self)[:-1]

    @property
    def ok(self) -> bool:
        """True if nothing is corrupt, the whole index was read, and no value is missing from its filter."""
        return self.proven and not self.corrupt and self.false_negatives == 0


def verify_index(
    index: Index,
    sample: float | None,
    current: Callable[[Snapshot], CurrentTable] = recorded_table,
    progress: Report | None = None,
) -> VerifyReport:
    """Check the newest version of an index against itself and against its table.

    Where its newest commit is damaged, that is the finding, and the last version that can be read is looked at.
    """
    if sample is not None and not 0 <= sample <= 1:
        raise InvalidArgumentError("sample must be a fraction between 0 and 1", found=sample)
    commit = _readable(index)
    if commit is None:
        return _unreadable(index)
    damage = examine(index.storage, commit)
    named = _named(index, damage)
    snapshot = Snapshot(index.storage, commit)
    if damage.errors or damage.unreadable:
        return VerifyReport(
            name=index.name,
            version=commit.version,
            corrupt=tuple(map(str, damage.errors)),
            unreadable=tuple(map(str, damage.unreadable)),
            proven=False,
        )
    fresh = freshness(snapshot, index.options, current)
    check = FileCheck(snapshot, index.options)
    check.files(_sampled(list(fresh.current), sample), progress)
    stored = (file.path for folder in FOLDERS for file in index.storage.list(folder))
    return VerifyReport(
        name=index.name,
        version=commit.version,
        files_checked=check.files_checked,
        values_checked=check.values_checked,
        false_negatives=check.false_negatives,
        unreadable=tuple(check.unreadable),
        stale=fresh.stale,
        missing=fresh.missing,
        not_indexed=fresh.new,
        orphaned=tuple(sorted(set(stored) - named)),
    )


def _readable(index: Index) -> Commit | None:
    """Return the newest version that can be read; None where no commit can. One that is deleted is an error."""
    try:
        return index.active()
    except CorruptIndexError:
        for version in reversed(index.log.versions()):
            with suppress(CorruptIndexError, NotFoundError):
                return require_active(index.log.read(version))
    return None


def _unreadable(index: Index) -> VerifyReport:
    damage = Damage()
    _named(index, damage)
    return VerifyReport(
        name=index.name,
        version=max(index.log.versions(), default=0),
        corrupt=tuple(map(str, damage.errors)),
        unreadable=tuple(map(str, damage.unreadable)),
        proven=False,
    )


def _sampled(files: list[TableFile], sample: float | None) -> list[TableFile]:
    if sample is None or not files:
        return files
    chosen = np.random.default_rng().choice(len(files), size=round(sample * len(files)), replace=False)
    return [files[i] for i in sorted(chosen.tolist())]


def _named(index: Index, damage: Damage) -> set[str]:
    """Read all commits, and return the files that they name."""
    named: set[str] = set()
    for version in index.log.versions():
        with damage.noting(), suppress(NotFoundError):  # vacuumed meanwhile
            named |= index.log.read(version).paths
    return named
