"""What pruning needs of an index: a protocol for sets of units with filters."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias

import numpy as np

from lakebloom.sbbf.kernels import BoolArray, HashArray
from lakebloom.store.unit_bounds import UnitBounds
from lakebloom.tables.columns import ColumnPath

__all__ = ["BoolArray", "HashArray", "IntArray", "UnitBounds", "UnitFacts", "UnitFilters", "WideFilters"]

IntArray: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"


class UnitFacts(Protocol):
    """What is known about the columns of some units. Every array has one element for each unit."""

    def null_counts(self, column: ColumnPath) -> tuple[IntArray, BoolArray]:
        """Return the number of NULLs, and whether it is known. A leaf is NULL if a struct around it is."""

    def entirely_null(self, column: ColumnPath) -> BoolArray | None:
        """Tell which units are known to have no value but NULL; None if there is no such unit."""

    def bounds(self, column: ColumnPath) -> UnitBounds | None:
        """Return the bounds of the values of each unit; None if none are known."""

    def row_counts(self) -> IntArray:
        """Return the number of rows, negative if it is unknown."""


class WideFilters(Protocol):
    """Very many units, of which facts are read for those that passed a filter."""

    def holding(self, column: ColumnPath, hashes: HashArray) -> IntArray:
        """Return the units that may contain at least one of these distinct hashes, ascending. All if it is unknown."""

    def some(self, units: IntArray) -> UnitFacts:
        """Return the facts about some units, which are read by themselves."""


class UnitFilters(UnitFacts, Protocol):
    """A set of units, for example a segment. Every array has one element for each unit.

    Columns have their names in the index. Only ``might_contain_any`` may read filters; pruning calls it last, and as
    rarely as possible, unless there are very many units.
    """

    @property
    def num_units(self) -> int:
        """How many units there are."""

    @property
    def wide(self) -> WideFilters | None:
        """The same units, if facts about all of them are much more to read than filters and some facts; else None."""

    def column_type(self, column: ColumnPath) -> str | None:
        """Return the column's Spark type when the units were built; None if it is not indexed here."""

    def might_contain_any(self, column: ColumnPath, hashes: HashArray) -> BoolArray:
        """Tell which units may contain at least one of these distinct hashes. True if that is unknown."""

    def false_positive_rate(self, column: ColumnPath) -> float:
        """Return the mean rate at which a unit seems to contain a value that it does not."""
