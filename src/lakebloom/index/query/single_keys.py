"""One value of one column that is in no unit: most keys are in no file, and this says so in fewer steps than ``prune``.

It says nothing else. Whatever is not plain (several types, units without filters, other read schemas, remote indexes)
is left to ``prune``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from lakebloom.index.query.pruning import read_schema_of, resolver, side_by_side
from lakebloom.predicate.prune.hashes import to_hash
from lakebloom.predicate.tree import Equals

if TYPE_CHECKING:
    from lakebloom.index.snapshot import Snapshot
    from lakebloom.predicate.tree import Predicate
    from lakebloom.store.records import TableRecord
    from lakebloom.store.tile_sets import TileSet
    from lakebloom.tables.columns import ColumnPath

__all__ = ["SingleKeys"]


class _Column(NamedTuple):
    """A column with a filter for each unit."""

    type: str
    tiles: tuple[TileSet, ...]


class SingleKeys:
    """Looks for single values in one version of an index. Keeps what does not depend on the value."""

    def __init__(self, snapshot: Snapshot, table: TableRecord | None) -> None:
        """``table`` is the version of a table with a log."""
        self.snapshot = snapshot
        self._table = table
        self._columns: dict[ColumnPath, _Column | None] = {}

    def is_nowhere(self, predicate: Predicate) -> bool:
        """Tell whether no unit can match. False also where that is not known. Raises as ``prune`` does."""
        if type(predicate) is not Equals:
            return False
        name = predicate.column
        column = self._columns[name] if name in self._columns else self._find(name)
        h = None if column is None else to_hash(predicate.value, column.type)
        if column is None or h is None:
            return False
        for tiles in column.tiles:  # noqa: SIM110 (one call less)
            if not tiles.is_nowhere(h):
                return False
        return True

    def _find(self, name: ColumnPath) -> _Column | None:
        snapshot = self.snapshot
        column = resolver(snapshot, self._table)(name)
        found = None
        if column is not None and not snapshot.is_remote and read_schema_of(snapshot, self._table) is None:
            whole = side_by_side(snapshot)
            parts = snapshot.segments if whole is None else [whole]
            types = {part.column_type(column) for part in parts}
            kind = types.pop() if len(types) == 1 else None
            tiles = () if kind is None else tuple(part.tile_set(column) for part in parts)
            if kind is not None and all(each.is_complete for each in tiles):
                found = _Column(kind, tiles)
        self._columns[name] = found
        return found
