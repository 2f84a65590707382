"""Bounds of whole files, of which an index knows the bounds of units: a file can hold what one of its units can."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lakebloom.store.unit_bounds import UnitBounds

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from lakebloom.predicate.prune.unit_filters import BoolArray, IntArray

__all__ = ["FileBounds"]


class FileBounds(UnitBounds):
    """The bounds of some files. A file without units here can hold anything."""

    def __init__(self, num_files: int, segments: Sequence[tuple[UnitBounds, IntArray]]) -> None:
        """``segments``: the bounds of each segment's units, and the number of each unit's file; -1 if it has none."""
        super().__init__(num_files)
        self._segments = segments
        self._known = self._all(False)
        for _, files in segments:
            self._known[files[files >= 0]] = True

    def below(self, limit: Any, *, itself: bool) -> BoolArray:
        """Tell which files may hold a value below the limit, or the limit itself."""
        return self._of_files([bounds.below(limit, itself=itself) for bounds, _ in self._segments])

    def above(self, limit: Any, *, itself: bool) -> BoolArray:
        """Tell which files may hold a value above the limit, or the limit itself."""
        return self._of_files([bounds.above(limit, itself=itself) for bounds, _ in self._segments])

    def enclosing(self, value: Any) -> BoolArray:
        """Tell which files may hold a value."""
        return self._of_files([bounds.enclosing(value) for bounds, _ in self._segments])

    def starting_with(self, prefix: bytes) -> BoolArray:
        """Tell which files may hold a string with this prefix."""
        return self._of_files([bounds.starting_with(prefix) for bounds, _ in self._segments])

    def holding(self, values: pa.Array, among: BoolArray) -> tuple[BoolArray, BoolArray]:
        """Tell which files may hold one of some values, and which of the values a file ``among`` may hold."""
        found = [bounds.holding(values, among[files] & (files >= 0)) for bounds, files in self._segments]
        covered = np.zeros(len(values), dtype=np.bool_)
        for _, here in found:
            covered |= here
        return self._of_files([units for units, _ in found]), covered

    def _of_files(self, units: Sequence[BoolArray]) -> BoolArray:
        kept = ~self._known
        for truths, (_, files) in zip(units, self._segments, strict=True):
            kept[files[truths & (files >= 0)]] = True
        return kept
