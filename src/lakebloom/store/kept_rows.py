"""A cache of checked rows of tiles, with one memory limit for the process.

The rows of a tile are in one array, in the order in which they were first read, so that a probe of many values uses
them without a copy. When all tiles together exceed the limit, the whole cache is cleared. A row that is needed again is
then read again.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from lakebloom.locks import new_lock
from lakebloom.sbbf.blocks import BYTES_PER_BLOCK, WORDS_PER_BLOCK
from lakebloom.tuning import KEPT_ROW_BYTES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakebloom.sbbf.kernels import WordArray
    from lakebloom.storage.local.reads import FileIdentity

__all__ = ["KeptRows"]

_OVERHEAD_BYTES = 500
"""Memory that Python needs for the objects of one tile."""
_ABSENT = -1


class _Limit:
    """The tiles with rows in memory. Readers of a tile have weak references only."""

    def __init__(self) -> None:
        self.lock = new_lock()
        self.kept: dict[KeptRows, int] = {}
        self.size_bytes = 0

    def admit(self, rows: KeptRows, size_bytes: int) -> None:
        """Add a tile of this size, or change its size. The caller holds the lock."""
        more_bytes = size_bytes - self.kept.get(rows, 0)
        if self.size_bytes + more_bytes > KEPT_ROW_BYTES:
            self.clear()
            more_bytes = size_bytes
        self.size_bytes += more_bytes
        self.kept[rows] = size_bytes

    def clear(self) -> None:
        self.kept.clear()
        self.size_bytes = 0

    def start_anew(self) -> None:
        """Clear the cache in the child of a fork: another thread may have been changing it at that moment."""
        self.clear()


_LIMIT = _Limit()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_LIMIT.start_anew)


class KeptRows:
    """Checked rows of one tile, valid while its file stays the same. Safe to share between threads."""

    __slots__ = ("__weakref__", "_places", "_rows", "_used", "identity")

    def __init__(self, identity: FileIdentity, num_blocks: int, num_units: int) -> None:
        self.identity = identity
        self._used = 0
        self._rows: WordArray = np.empty((0, num_units, WORDS_PER_BLOCK), dtype="<u4")
        # The position of each block's row in the array.
        self._places = np.full(num_blocks, _ABSENT, dtype=np.int32)
        with _LIMIT.lock:
            _LIMIT.admit(self, self._size_bytes)

    @staticmethod
    def fit(num_blocks: int, num_units: int) -> bool:
        """Tell whether the cache takes rows of such a tile: one row and the positions must both be small."""
        return max(num_blocks * 4, num_units * BYTES_PER_BLOCK) <= KEPT_ROW_BYTES // 8

    def row(self, block: int) -> WordArray | None:
        """Return a row, None if it is not in the cache."""
        place = self._places[block]
        return None if place == _ABSENT else self._rows[place]

    def missing(self, blocks: np.ndarray[Any, Any]) -> list[int]:
        """Return the distinct blocks that are not in the cache."""
        absent: list[int] = np.unique(blocks[self._places[blocks] == _ABSENT]).tolist()
        return absent

    def all(self, blocks: np.ndarray[Any, Any]) -> tuple[WordArray, np.ndarray[Any, Any]]:
        """Return an array of rows, and the positions of these blocks in it. None of them may be missing."""
        places = self._places[blocks]
        return self._rows, places  # positions first: a newer array has all rows of the one before

    def add(self, blocks: Sequence[int], rows: Sequence[WordArray]) -> None:
        """Add checked rows."""
        with _LIMIT.lock:
            new = {block: row for block, row in zip(blocks, rows, strict=True) if self._places[block] == _ABSENT}
            self._make_room(len(new))
            for block, row in new.items():
                self._rows[self._used] = row
                self._places[block] = self._used  # after the row: other threads read without the lock
                self._used += 1

    def _make_room(self, count: int) -> None:
        if self._used + count <= len(self._rows):
            return
        wanted = min(len(self._places), max(self._used + count, 2 * len(self._rows)))
        grown = np.empty((wanted, *self._rows.shape[1:]), dtype="<u4")
        grown[: self._used] = self._rows[: self._used]
        self._rows = grown
        _LIMIT.admit(self, self._size_bytes)

    @property
    def _size_bytes(self) -> int:
        return self._rows.nbytes + self._places.nbytes + _OVERHEAD_BYTES
