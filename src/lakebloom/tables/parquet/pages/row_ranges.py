"""Rows of a file or of a row group as ranges: sorted, without overlaps, each with its end behind its last row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["Numbers", "RowRanges"]

Numbers: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"


class RowRanges(NamedTuple):
    """Ranges of rows."""

    starts: Numbers
    stops: Numbers

    @classmethod
    def of(cls, ranges: Iterable[tuple[int, int]]) -> RowRanges:
        """Return ranges, given as (start, stop) in any order; those that touch each other become one.

        >>> RowRanges.of([(5, 8), (0, 3), (3, 4), (9, 9)]).pairs()
        [(0, 4), (5, 8)]
        """
        merged: list[list[int]] = []
        for start, stop in sorted(ranges):
            if stop <= start:
                continue
            if merged and start <= merged[-1][1]:
                merged[-1][1] = max(merged[-1][1], stop)
            else:
                merged.append([start, stop])
        both = np.array(merged, dtype=np.int64).reshape(-1, 2)
        return cls(both[:, 0], both[:, 1])

    @classmethod
    def of_rows(cls, rows: Numbers) -> RowRanges:
        """Return the ranges of some rows, given by ascending numbers.

        >>> RowRanges.of_rows(np.array([1, 2, 7])).pairs()
        [(1, 3), (7, 8)]
        """
        if len(rows) == 1:
            return cls(rows, rows + 1)
        breaks = np.flatnonzero(np.diff(rows) != 1)
        return cls(rows[np.concatenate(([0], breaks + 1))], rows[np.concatenate((breaks, [len(rows) - 1]))] + 1)

    @property
    def num_rows(self) -> int:
        """How many rows they have."""
        return int((self.stops - self.starts).sum())

    def pairs(self) -> list[tuple[int, int]]:
        """Return them as (start, stop)."""
        return list(zip(self.starts.tolist(), self.stops.tolist(), strict=True))

    def within(self, start: int, stop: int) -> RowRanges:
        """Return the part that lies in a range, counted from its start.

        >>> RowRanges.of([(0, 4), (5, 8)]).within(3, 7).pairs()
        [(0, 1), (2, 4)]
        """
        starts, stops = np.maximum(self.starts, start) - start, np.minimum(self.stops, stop) - start
        inside = starts < stops
        return RowRanges(starts[inside], stops[inside])

    def cut(self, num_rows: int) -> Iterator[RowRanges]:
        """Yield parts of at most so many rows, in order.

        >>> [part.pairs() for part in RowRanges.of([(0, 5), (6, 7), (8, 9)]).cut(3)]
        [[(0, 3)], [(3, 5), (6, 7)], [(8, 9)]]
        """
        part: list[tuple[int, int]] = []
        left = num_rows
        for start, stop in self.pairs():
            while start < stop:
                end = min(stop, start + left)
                part.append((start, end))
                left -= end - start
                start = end
                if left == 0:
                    yield RowRanges.of(part)
                    part, left = [], num_rows
        if part:
            yield RowRanges.of(part)

    def covers(self, num_rows: int) -> bool:
        """Tell whether they have all of so many rows."""
        return self.num_rows == num_rows

    def row_numbers(self, positions: Numbers) -> Numbers:
        """Return the numbers of rows that are given by their positions among the rows of the ranges.

        >>> RowRanges.of([(5, 8), (20, 22)]).row_numbers(np.array([0, 2, 3]))
        array([ 5,  7, 20])
        """
        if len(self.starts) == 1:
            shifted: Numbers = positions + self.starts[0]
            return shifted
        before = np.concatenate(([0], np.cumsum(self.stops - self.starts)))
        which = np.searchsorted(before, positions, side="right") - 1
        rows: Numbers = self.starts[which] + positions - before[which]
        return rows
