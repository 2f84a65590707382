"""Proving an index: every checksum fits, and every value of the data is found by its filter."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from lakebloom.errors import InvalidArgumentError, NotFoundError
from lakebloom.index.current_table import recorded_table
from lakebloom.index.freshness import freshness
from lakebloom.index.maintain.damage import Damage, examine
from lakebloom.index.reports import VerifyReport
from lakebloom.index.snapshot import Snapshot
from lakebloom.index.verify_files import FileCheck
from lakebloom.store.records import FOLDERS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lakebloom.index.catalog import Index
    from lakebloom.index.current_table import CurrentTable
    from lakebloom.tables.files import TableFile


def verify_index(
    index: Index,
    sample: float | None,
    options: Mapping[str, str],
    current: Callable[[Snapshot], CurrentTable] = recorded_table,
) -> VerifyReport:
    """Check the newest version of an index against itself and against its table."""
    if sample is not None and not 0 <= sample <= 1:
        raise InvalidArgumentError("sample is a share between 0 and 1", found=sample)
    entry = index.active()
    snapshot = Snapshot(index.storage, entry)
    damage = examine(index.storage, entry)
    named = _named(index, damage)
    if damage.errors or damage.unreadable:
        return VerifyReport(
            name=index.name,
            version=entry.version,
            corrupt=tuple(map(str, damage.errors)),
            unreadable=tuple(map(str, damage.unreadable)),
            proven=False,
        )
    fresh = freshness(snapshot, options, current)
    check = FileCheck(snapshot, options)
    check.files(_sampled(list(fresh.current), sample))
    stored = (file.path for folder in FOLDERS for file in index.storage.list(folder))
    return VerifyReport(
        name=index.name,
        version=entry.version,
        files_checked=check.files_checked,
        values_checked=check.values_checked,
        false_negatives=check.false_negatives,
        unreadable=tuple(check.unreadable),
        stale=fresh.stale,
        missing=fresh.missing,
        not_indexed=fresh.new,
        orphaned=tuple(sorted(set(stored) - named)),
    )


def _sampled(files: list[TableFile], sample: float | None) -> list[TableFile]:
    if sample is None or not files:
        return files
    chosen = np.random.default_rng().choice(len(files), size=round(sample * len(files)), replace=False)
    return [files[i] for i in sorted(chosen.tolist())]


def _named(index: Index, damage: Damage) -> set[str]:
    """Read all log entries, and return the files that they name."""
    named: set[str] = set()
    for version in index.log.versions():
        with damage.noting(), suppress(NotFoundError):  # vacuumed meanwhile
            named |= index.log.read(version).paths
    return named
