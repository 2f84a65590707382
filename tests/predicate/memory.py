"""Filters of a table held in memory: exact ones (sets of hashes) and real ones, for units cut out of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakebloom import Sbbf
from lakebloom.index.build.value_bounds import UNKNOWN, bounds_of
from lakebloom.predicate.prune.unit_filters import BoolArray, HashArray, IntArray, UnitFacts
from lakebloom.sbbf.hashing.hash_values import hash_array
from lakebloom.store.min_max import bound_type
from lakebloom.store.unit_bounds import UnitBounds, unit_bounds
from lakebloom.tables.columns import ColumnPath, arrow_type


def leaf(table: pa.Table, column: ColumnPath) -> pa.Array:
    array = table.column(column[0]).combine_chunks()
    return pc.struct_field(array, list(column[1:])) if column[1:] else array


@dataclass
class ExactFilters:
    """A filter that is never wrong. Columns that are not in ``types`` have none."""

    units: Sequence[pa.Table]
    types: Mapping[ColumnPath, str]
    unknown_null_counts: Collection[int] = ()
    """Units whose count is a lie: all NULL where there is none, none where there are some."""
    unknown_row_counts: Collection[int] = ()
    unknown_bounds: Collection[int] = ()
    """Units without a lower bound; those before them have no upper bound."""
    rate: float = 0.0
    is_wide: bool = False
    probes: list[tuple[ColumnPath, int]] = field(default_factory=list)
    """What was asked of the filters: column and number of hashes."""

    @property
    def num_units(self) -> int:
        return len(self.units)

    @property
    def wide(self) -> ExactFilters | None:
        return self if self.is_wide else None

    def holding(self, column: ColumnPath, hashes: HashArray) -> IntArray:
        return np.flatnonzero(self.might_contain_any(column, hashes))

    def some(self, units: IntArray) -> UnitFacts:
        return _Some(self, units)

    def column_type(self, column: ColumnPath) -> str | None:
        return self.types.get(column)

    def might_contain_any(self, column: ColumnPath, hashes: HashArray) -> BoolArray:
        self.probes.append((column, len(hashes)))
        return np.array([self.holds_any(self.hashes_of(unit, column), hashes) for unit in self.units], dtype=np.bool_)

    def holds_any(self, held: HashArray, hashes: HashArray) -> bool:
        return not set(held.tolist()).isdisjoint(hashes.tolist())

    def hashes_of(self, unit: pa.Table, column: ColumnPath) -> HashArray:
        array = leaf(unit, column).cast(arrow_type(self.types[column]))
        return hash_array(array.drop_null())[0]

    def false_positive_rate(self, column: ColumnPath) -> float:
        return self.rate

    def null_counts(self, column: ColumnPath) -> tuple[IntArray, BoolArray]:
        known = np.array([i not in self.unknown_null_counts for i in range(self.num_units)], dtype=np.bool_)
        counts = np.array([leaf(unit, column).null_count for unit in self.units], dtype=np.int64)
        worst = np.array([unit.num_rows for unit in self.units], dtype=np.int64) * (counts == 0)
        return np.where(known, counts, worst), known

    def bounds(self, column: ColumnPath) -> UnitBounds:
        """The bounds of each unit; of those in ``unknown_bounds`` one end, or both."""
        return unit_bounds(*self.stored_bounds(column))

    def stored_bounds(self, column: ColumnPath) -> tuple[pa.Array, pa.Array]:
        kind = self.types[column]
        found = [bounds_of(leaf(unit, column).cast(arrow_type(kind))) or UNKNOWN for unit in self.units]
        lows = [None if i in self.unknown_bounds else each.low for i, each in enumerate(found)]
        highs = [None if i + 1 in self.unknown_bounds else each.high for i, each in enumerate(found)]
        return pa.array(lows, bound_type(kind)), pa.array(highs, bound_type(kind))

    def entirely_null(self, column: ColumnPath) -> BoolArray | None:
        counts, known = self.null_counts(column)
        return np.array(
            [
                is_known and count == rows
                for count, is_known, rows in zip(counts, known, self.row_counts(), strict=True)
            ],
            dtype=np.bool_,
        )

    def row_counts(self) -> IntArray:
        counts = [-1 if i in self.unknown_row_counts else unit.num_rows for i, unit in enumerate(self.units)]
        return np.array(counts, dtype=np.int64)


class _Some:
    """Facts about some units."""

    def __init__(self, whole: ExactFilters, units: IntArray) -> None:
        self._whole, self._units = whole, units

    def null_counts(self, column: ColumnPath) -> tuple[IntArray, BoolArray]:
        counts, known = self._whole.null_counts(column)
        return counts[self._units], known[self._units]

    def entirely_null(self, column: ColumnPath) -> BoolArray | None:
        found = self._whole.entirely_null(column)
        return None if found is None or not found[self._units].any() else found[self._units]

    def bounds(self, column: ColumnPath) -> UnitBounds:
        low, high = (ends.take(pa.array(self._units)) for ends in self._whole.stored_bounds(column))
        return unit_bounds(low, high)

    def row_counts(self) -> IntArray:
        return self._whole.row_counts()[self._units]


class BloomFilters(ExactFilters):
    """The same with Bloom filters of one block, which are wrong at times, in the harmless direction."""

    def holds_any(self, held: HashArray, hashes: HashArray) -> bool:
        bloom = Sbbf(1)
        bloom.insert_hashes(held)
        return bool(bloom.might_contain_hashes(hashes).any())


def units_of(column: str, values: Sequence[Sequence[object]], type: pa.DataType) -> list[pa.Table]:
    """One column, one list of values for each unit."""
    return [pa.table({column: pa.array(unit, type)}) for unit in values]
