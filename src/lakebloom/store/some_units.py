"""Facts about some units of a segment, of which only the batches that have these units are read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from pyarrow import types as pt

import lakebloom.arrow_compute as pc
from lakebloom.sbbf.hashing.buffers import bits, numbers_or
from lakebloom.store.few_bounds import FewBounds
from lakebloom.store.unit_bounds import unit_bounds
from lakebloom.store.unit_table import FEW_UNITS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakebloom.sbbf.kernels import BoolArray
    from lakebloom.store.unit_bounds import UnitBounds
    from lakebloom.store.unit_table import UnitTable
    from lakebloom.tables.columns import ColumnPath

    IntArray = np.ndarray[Any, np.dtype[np.int64]]

__all__ = ["SomeUnits", "entirely_null"]


def entirely_null(null_counts: tuple[IntArray, BoolArray], row_counts: IntArray) -> BoolArray | None:
    """Tell which units are known to have no value but NULL; None if there is no such unit."""
    counts, known = null_counts
    found: BoolArray = known & (row_counts >= 0) & (counts == row_counts)
    return found if found.any() else None


class SomeUnits:
    """Some units of a segment, by their numbers. Raises CorruptIndexError."""

    def __init__(self, table: UnitTable, columns: Mapping[ColumnPath, int], units: IntArray) -> None:
        self._table, self._columns, self._units = table, columns, units
        self._read: dict[ColumnPath, list[list[Any]]] = {}

    def _few(self, column: ColumnPath) -> list[list[Any]] | None:
        """Return the null count and the bounds of each unit, if there are few units."""
        if len(self._units) > FEW_UNITS:
            return None
        if column not in self._read:
            number, names = self._columns[column], ("null_count", "min", "max")
            self._read[column] = [self._table.row(names, unit, number) for unit in self._units.tolist()]
        return self._read[column]

    def null_counts(self, column: ColumnPath) -> tuple[IntArray, BoolArray]:
        """Return the number of NULLs of each unit, and whether it is known."""
        few = self._few(column)
        if few is not None:
            found = [count for count, _, _ in few]
            known = np.array([count is not None for count in found], dtype=np.bool_)
            return np.array([count or 0 for count in found], dtype=np.int64), known
        (counts,) = self._table.facts(self._columns[column], ["null_count"], self._units)
        return numbers_or(counts, 8, 0), bits(pc.is_valid(counts))

    def bounds(self, column: ColumnPath) -> UnitBounds:
        """Return the bounds of each unit's values."""
        few, kind = self._few(column), self._table.bound_type(self._columns[column])
        if few is not None and (pt.is_int64(kind) or pt.is_binary(kind)):
            return FewBounds([low for _, low, _ in few], [high for _, _, high in few])
        return unit_bounds(*self._table.facts(self._columns[column], ["min", "max"], self._units))

    def entirely_null(self, column: ColumnPath) -> BoolArray | None:
        """Tell which units have no value but NULL; None if there is no such unit."""
        return entirely_null(self.null_counts(column), self.row_counts())

    def row_counts(self) -> IntArray:
        """Return the number of rows of each unit."""
        return self._table.rows(["row_count"], self._units)[0]
