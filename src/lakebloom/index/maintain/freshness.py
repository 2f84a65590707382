"""Compares an index with its table now: which files are indexed, changed, new or gone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lakebloom.errors import NotFoundError
from lakebloom.index.current_table import recorded_table
from lakebloom.tables.file_matching import ABSENT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lakebloom.index.current_table import CurrentTable
    from lakebloom.index.snapshot import Snapshot
    from lakebloom.predicate.prune.unit_filters import BoolArray
    from lakebloom.tables.file_identity import TableFile

__all__ = ["Freshness", "freshness"]


@dataclass(frozen=True, slots=True)
class Freshness:
    """The table's files now, compared with those of an index."""

    listed: tuple[TableFile, ...]
    """All files of the table, in the order of their names."""
    current: tuple[TableFile, ...]
    """The indexed files."""
    stale: tuple[str, ...]
    """The files that changed since they were indexed."""
    new: tuple[str, ...]
    """The files that are new since the index was built or refreshed."""
    missing: tuple[str, ...]
    """The files of the index that the table no longer has."""

    @property
    def coverage(self) -> float:
        """The share of the table's files that are indexed."""
        return len(self.current) / len(self.listed) if self.listed else 1.0


def freshness(
    snapshot: Snapshot, options: Mapping[str, str], current: Callable[[Snapshot], CurrentTable] = recorded_table
) -> Freshness:
    """Compare an index with a new listing of its table. A table that is gone has no files.

    ``current`` returns the table as it is now; by default, as it was when the index was built or refreshed.

    Raises InvalidArgumentError for a table that only Spark reaches.
    """
    files = snapshot.files
    try:
        listed = current(snapshot).list_files(options)
    except NotFoundError:
        listed = []
    compared = snapshot.compared(listed)
    places, same = compared.matched
    return Freshness(
        listed=tuple(listed),
        current=tuple(files.rows(np.flatnonzero(same))),
        stale=_uris(snapshot, files.current & ~same & (places != ABSENT)),
        new=tuple(listed[number].uri for number in np.flatnonzero(~compared.named).tolist()),
        missing=_uris(snapshot, files.current & (places == ABSENT)),
    )


def _uris(snapshot: Snapshot, rows: BoolArray) -> tuple[str, ...]:
    return tuple(file.uri for file in snapshot.files.rows(np.flatnonzero(rows)))
