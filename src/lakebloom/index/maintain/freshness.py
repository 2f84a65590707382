"""Compares an index with its table now: which files are indexed, changed, new or gone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakebloom.errors import NotFoundError
from lakebloom.index.current_table import recorded_table
from lakebloom.tables.file_identity import is_same

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lakebloom.index.current_table import CurrentTable
    from lakebloom.index.snapshot import Snapshot
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
    known = snapshot.files
    try:
        listed = {file.uri: file for file in current(snapshot).list_files(options)}
    except NotFoundError:
        listed = {}
    return Freshness(
        listed=tuple(listed.values()),
        current=tuple(file for uri, file in known.items() if is_same(file, listed.get(uri))),
        stale=tuple(uri for uri, file in known.items() if uri in listed and not is_same(file, listed[uri])),
        new=tuple(uri for uri in listed if uri not in known),
        missing=tuple(uri for uri in known if uri not in listed),
    )
