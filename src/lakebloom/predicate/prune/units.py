"""A set of units, in the form that is the least work: all of them, a truth for each, or the numbers of a few.

Of a million units a key leaves some. Truths for all of them would take longer to look at than the filters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from lakebloom.sbbf.kernels import BoolArray

    IntArray: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]

__all__ = ["Units"]

_NONE: IntArray = np.empty(0, dtype=np.int64)


class Units:
    """Some of ``num_units`` units. Never changes; arrays are not copied."""

    __slots__ = ("_numbers", "_truths", "num_units")

    def __init__(self, num_units: int, truths: BoolArray | None = None, numbers: IntArray | None = None) -> None:
        """Given as truths or as ascending numbers; if neither is given, these are all units."""
        self.num_units, self._truths, self._numbers = num_units, truths, numbers

    @classmethod
    def none(cls, num_units: int) -> Units:
        """Return the empty set."""
        return cls(num_units, numbers=_NONE)

    @classmethod
    def where(cls, truths: BoolArray) -> Units:
        """Return the units for which an array has True."""
        return cls(len(truths), None if truths.all() else truths)

    @classmethod
    def numbered(cls, num_units: int, numbers: IntArray) -> Units:
        """Return units by their ascending numbers."""
        return cls(num_units, numbers=numbers)

    @property
    def _are_all(self) -> bool:
        return self._truths is None and self._numbers is None

    @property
    def truths(self) -> BoolArray:
        """A truth for each unit."""
        if self._numbers is not None:
            found: BoolArray = np.zeros(self.num_units, dtype=np.bool_)
            found[self._numbers] = True
            return found
        return np.ones(self.num_units, dtype=np.bool_) if self._truths is None else self._truths

    @property
    def numbers(self) -> IntArray:
        """Their numbers, ascending."""
        if self._numbers is not None:
            return self._numbers
        return np.arange(self.num_units) if self._truths is None else np.flatnonzero(self._truths)

    def __len__(self) -> int:
        if self._numbers is not None:
            return len(self._numbers)
        return self.num_units if self._truths is None else int(np.count_nonzero(self._truths))

    def __bool__(self) -> bool:
        return bool(self._truths.any()) if self._truths is not None else len(self) > 0

    def __and__(self, other: Units) -> Units:
        if self._are_all:
            return other
        if other._are_all:
            return self
        if self._numbers is not None:
            return Units(self.num_units, numbers=self._numbers[other._contains(self._numbers)])
        if other._numbers is not None:
            return other & self
        return Units(self.num_units, self.truths & other.truths)

    def __or__(self, other: Units) -> Units:
        if self._are_all or other._is_empty:
            return self
        if other._are_all or self._is_empty:
            return other
        return Units(self.num_units, self.truths | other.truths)

    def __sub__(self, other: Units) -> Units:
        if other._is_empty:
            return self
        if other._are_all:
            return Units.none(self.num_units)
        if self._numbers is not None:
            return Units(self.num_units, numbers=self._numbers[~other._contains(self._numbers)])
        return Units(self.num_units, ~other.truths if self._are_all else self.truths & ~other.truths)

    @property
    def _is_empty(self) -> bool:
        return self._numbers is not None and not len(self._numbers)

    def _contains(self, numbers: IntArray) -> BoolArray:
        if self._truths is not None:
            return self._truths[numbers]
        if self._numbers is None:
            return np.ones(len(numbers), dtype=np.bool_)
        places = np.searchsorted(self._numbers, numbers)
        inside = places < len(self._numbers)
        inside[inside] = self._numbers[places[inside]] == numbers[inside]
        return inside
