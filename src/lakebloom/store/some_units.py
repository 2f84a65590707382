"""Facts about some units of a segment, of which only the batches that have these units are read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import lakebloom.arrow_compute as pc
from lakebloom.sbbf.hashing.buffers import bits, numbers_or
from lakebloom.store.unit_bounds import unit_bounds

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakebloom.sbbf.kernels import BoolArray
    from lakebloom.store.unit_bounds import UnitBounds
    from lakebloom.store.unit_table import UnitTable
    from lakebloom.tables.columns import ColumnPath

    IntArray = np.ndarray[Any, np.dtype[np.int64]]

__all__ = ["SomeUnits"]


class SomeUnits:
    """Some units of a segment, by their numbers. Raises CorruptIndexError."""

    def __init__(self, table: UnitTable, columns: Mapping[ColumnPath, int], units: IntArray) -> None:
        self._table, self._columns, self._units = table, columns, units

    def null_counts(self, column: ColumnPath) -> tuple[IntArray, BoolArray]:
        """Return the number of NULLs of each unit, and whether it is known."""
        (counts,) = self._table.facts(self._columns[column], ["null_count"], self._units)
        return numbers_or(counts, 8, 0), bits(pc.is_valid(counts))

    def bounds(self, column: ColumnPath) -> UnitBounds:
        """Return the bounds of each unit's values."""
        return unit_bounds(*self._table.facts(self._columns[column], ["min", "max"], self._units))

    def row_counts(self) -> IntArray:
        """Return the number of rows of each unit."""
        return self._table.rows(["row_count"], self._units)[0]
