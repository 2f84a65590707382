"""Several small segments seen as one, so that a predicate is evaluated once and not once for each segment.

Units are numbered across all segments. Each tile is still probed by itself.
"""

from __future__ import annotations

from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa

from lakebloom.store.some_units import entirely_null
from lakebloom.store.tile_sets import TileSet
from lakebloom.store.unit_bounds import unit_bounds
from lakebloom.tuning import SIDE_BY_SIDE_UNITS, SINGLE_HASHES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lakebloom.sbbf.kernels import BoolArray, HashArray
    from lakebloom.store.segments import Segment
    from lakebloom.store.unit_bounds import UnitBounds
    from lakebloom.tables.columns import ColumnPath

    IntArray: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]

__all__ = ["SideBySide"]


class SideBySide:
    """The units of several segments as one set."""

    def __init__(self, segments: Sequence[Segment]) -> None:
        self._segments = segments
        self._starts = [0, *accumulate(segment.num_units for segment in segments)]
        self._tiles: dict[ColumnPath, TileSet] = {}
        self._null_counts: dict[ColumnPath, tuple[IntArray, BoolArray]] = {}
        self._bounds: dict[ColumnPath, UnitBounds] = {}
        self._entirely_null: dict[ColumnPath, BoolArray | None] = {}
        self._rates: dict[ColumnPath, float] = {}

    @classmethod
    def of(cls, segments: Sequence[Segment]) -> SideBySide | None:
        """Return segments as one set; None if their types differ, if they are too large, or if there is only one."""
        types = {segment.record.types for segment in segments}
        units = sum(segment.num_units for segment in segments)
        return cls(segments) if len(segments) > 1 and len(types) == 1 and units <= SIDE_BY_SIDE_UNITS else None

    @property
    def num_units(self) -> int:
        """The units of all segments."""
        return self._starts[-1]

    @property
    def wide(self) -> None:
        """Facts about all units are in memory."""
        return None

    def by_segment(self, units: IntArray) -> Iterator[tuple[int, IntArray]]:
        """Yield the number of each segment that has some of these units, with their numbers in it."""
        cuts = np.searchsorted(units, self._starts)
        for number, (start, first, end) in enumerate(zip(self._starts, cuts, cuts[1:], strict=False)):
            if first < end:
                yield number, units[first:end] - start

    def column_type(self, column: ColumnPath) -> str | None:
        """Return the Spark type of a column when it was hashed."""
        return self._segments[0].column_type(column)

    def false_positive_rate(self, column: ColumnPath) -> float:
        """Return the mean rate at which a unit seems to contain a value that it does not."""
        if column not in self._rates:
            rates = [segment.false_positive_rate(column) * segment.num_units for segment in self._segments]
            self._rates[column] = sum(rates) / max(1, self.num_units)
        return self._rates[column]

    def row_counts(self) -> IntArray:
        """Return the number of rows of each unit."""
        return self._row_counts

    @cached_property
    def _row_counts(self) -> IntArray:
        return np.concatenate([segment.row_counts() for segment in self._segments])

    def null_counts(self, column: ColumnPath) -> tuple[IntArray, BoolArray]:
        """Return the number of NULLs of each unit, and whether it is known."""
        if column not in self._null_counts:
            counts, known = zip(*(segment.null_counts(column) for segment in self._segments), strict=True)
            self._null_counts[column] = np.concatenate(counts), np.concatenate(known)
        return self._null_counts[column]

    def entirely_null(self, column: ColumnPath) -> BoolArray | None:
        """Tell which units have no value but NULL; None if there is no such unit."""
        if column not in self._entirely_null:
            self._entirely_null[column] = entirely_null(self.null_counts(column), self.row_counts())
        return self._entirely_null[column]

    def bounds(self, column: ColumnPath) -> UnitBounds:
        """Return the bounds of each unit's values."""
        if column not in self._bounds:
            lows, highs = zip(*(segment.stored_bounds(column) for segment in self._segments), strict=True)
            self._bounds[column] = unit_bounds(pa.concat_arrays(lows), pa.concat_arrays(highs))
        return self._bounds[column]

    def might_contain_any(self, column: ColumnPath, hashes: HashArray) -> BoolArray:
        """Tell for each unit whether it may contain a value with one of these distinct hashes."""
        if len(hashes) > SINGLE_HASHES:
            return np.concatenate([segment.might_contain_any(column, hashes) for segment in self._segments])
        return self.tile_set(column).keep(hashes)

    def tile_set(self, column: ColumnPath) -> TileSet:
        """Return all tiles of a column, for few values."""
        if column not in self._tiles:
            tiles = [
                (start + segment.members(column, number), layers)
                for segment, start in zip(self._segments, self._starts, strict=False)
                for number, layers in segment.tiles(column).items()
            ]
            members = [units for units, _ in tiles]
            self._tiles[column] = TileSet([layers for _, layers in tiles], self.num_units, lambda: members)
        return self._tiles[column]
