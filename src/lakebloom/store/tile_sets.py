"""All tiles of a column in some segments, probed for one value at a time, as lookups do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from lakebloom.store.probing import which_hold_by_tile

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lakebloom.sbbf.kernels import BoolArray, HashArray
    from lakebloom.store.tiles import TileReader

    IntArray: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]

__all__ = ["TileSet"]


class TileSet:
    """Tiles, and the units that they have filters of."""

    def __init__(
        self, tiles: Sequence[Sequence[TileReader]], num_units: int, members: Callable[[], Sequence[IntArray]]
    ) -> None:
        """``tiles`` are the layers of each; ``members`` returns the numbers of the units of each tile."""
        self._tiles, self._num_units, self._members = tiles, num_units, members
        self._ahead: tuple[int, list[IntArray]] | None = None
        self.is_complete = sum(layers[0].tile.num_units for layers in tiles) == num_units
        """Whether each unit has a filter."""

    def is_nowhere(self, h: int) -> bool:
        """Tell whether no filter holds a value. Where one does, what was found is kept for ``holders``."""
        found = which_hold_by_tile(self._tiles, h)
        for units in found:
            if len(units):
                self._ahead = h, found
                return False
        return True

    def holders(self, h: int) -> list[IntArray]:
        """Return for each tile those of its units that may contain a value."""
        ahead, self._ahead = self._ahead, None
        return which_hold_by_tile(self._tiles, h) if ahead is None or ahead[0] != h else ahead[1]

    def keep(self, hashes: HashArray) -> BoolArray:
        """Tell for each unit whether it may contain one of a few values. One without a filter may contain anything."""
        keep: BoolArray = np.zeros(self._num_units, dtype=np.bool_)
        if self.is_complete and len(self._tiles) == 1:
            for h in hashes.tolist():
                keep[self.holders(h)[0]] = True
            return keep
        members = self._members()
        if not self.is_complete:
            keep[:] = True
            for units in members:
                keep[units] = False
        for h in hashes.tolist():
            for units, holding in zip(members, self.holders(h), strict=True):
                if len(holding):
                    keep[units[holding]] = True
        return keep
