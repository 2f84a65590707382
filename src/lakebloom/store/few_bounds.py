"""Bounds of a few units as values of Python: of so few, arrays take longer to make than to compare."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from lakebloom.store.unit_bounds import UnitBounds

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from lakebloom.sbbf.kernels import BoolArray

__all__ = ["FewBounds"]

End: TypeAlias = int | bytes | None


class FewBounds(UnitBounds):
    """Bounds that are integers or bytes; None is unknown."""

    def __init__(self, lows: Sequence[End], highs: Sequence[End]) -> None:
        super().__init__(len(lows))
        self._lows, self._highs = lows, highs

    def below(self, limit: Any, *, itself: bool) -> BoolArray:
        """Tell which units may hold a value below the limit, or the limit itself."""
        return _truths([low is None or low < limit or (itself and low == limit) for low in self._lows])

    def above(self, limit: Any, *, itself: bool) -> BoolArray:
        """Tell which units may hold a value above the limit, or the limit itself."""
        return _truths([high is None or high > limit or (itself and high == limit) for high in self._highs])

    def holding(self, values: pa.Array, among: BoolArray) -> tuple[BoolArray, BoolArray]:
        """Tell which units may hold one of some distinct values, and which of the values a unit ``among`` may hold."""
        units, covered = self._all(False), np.zeros(len(values), dtype=np.bool_)
        for number, value in enumerate(values.to_pylist()):
            inside = self.enclosing(value)
            units |= inside
            covered[number] = (inside & among).any()
        return units, covered


def _truths(found: list[bool]) -> BoolArray:
    return np.array(found, dtype=np.bool_)
