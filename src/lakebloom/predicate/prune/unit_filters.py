"""What a predicate asks of an index: a protocol, implemented by whatever holds filters for a set of units."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias

import numpy as np

from lakebloom.sbbf.kernels import BoolArray, HashArray
from lakebloom.tables.columns import ColumnPath

__all__ = ["BoolArray", "HashArray", "IntArray", "UnitFilters"]

IntArray: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"


class UnitFilters(Protocol):
    """One set of units, a segment for example. Every array has one entry for each unit.

    Columns are named as the index names them. Only ``might_contain_any`` may need to read filters; whoever asks calls
    it last and as rarely as possible.
    """

    @property
    def num_units(self) -> int:
        """How many units there are."""

    def column_type(self, column: ColumnPath) -> str | None:
        """Return the Spark type that the column had when the units were built; None: it is not indexed here."""

    def might_contain_any(self, column: ColumnPath, hashes: HashArray) -> BoolArray:
        """Tell which units may hold at least one of these distinct hashes. Where that is not known, True."""

    def false_positive_rate(self, column: ColumnPath) -> float:
        """Return how often, on average, a unit seems to hold a value that it does not."""

    def null_counts(self, column: ColumnPath) -> tuple[IntArray, BoolArray]:
        """Return the number of NULLs and whether it is known. A leaf is NULL where a struct around it is."""

    def row_counts(self) -> IntArray:
        """Return the number of rows, negative where it is not known."""
