"""Rows of tiles that were read and checked, kept between questions within one limit of memory.

The rows of a tile lie side by side in one array, in the order in which they were first asked for, so that a question
about many values takes them as they are. When all tiles together exceed the limit, all are forgotten: what is asked
again is read again, which costs at most as much as never to have kept it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from lakebloom.locks import new_lock
from lakebloom.sbbf.blocks import BYTES_PER_BLOCK, WORDS_PER_BLOCK

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakebloom.sbbf.kernels import WordArray
    from lakebloom.storage.local.reads import FileIdentity

__all__ = ["MOST_KEPT_BYTES", "KeptRows"]

MOST_KEPT_BYTES = 64 << 20
_OVERHEAD_BYTES = 500
"""What Python takes for the objects of one tile."""
_ABSENT = -1


class _Limit:
    """Holds the tiles with rows in memory; nobody else does for longer than a question."""

    def __init__(self) -> None:
        self.lock = new_lock()
        self.kept: dict[KeptRows, int] = {}
        self.size_bytes = 0

    def admit(self, rows: KeptRows, size_bytes: int) -> None:
        """Hold a tile that takes so many bytes. The caller holds the lock."""
        more_bytes = size_bytes - self.kept.get(rows, 0)
        if self.size_bytes + more_bytes > MOST_KEPT_BYTES:
            self.clear()
            more_bytes = size_bytes
        self.size_bytes += more_bytes
        self.kept[rows] = size_bytes

    def clear(self) -> None:
        self.kept.clear()
        self.size_bytes = 0

    def start_anew(self) -> None:
        """Forget everything: at the moment of a fork another thread may have been at work on it."""
        self.clear()


_LIMIT = _Limit()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_LIMIT.start_anew)


class KeptRows:
    """Checked rows of one tile, as long as its file stays the same. Threads may share it."""

    __slots__ = ("__weakref__", "_places", "_rows", "_used", "identity")

    def __init__(self, identity: FileIdentity, num_blocks: int, num_units: int) -> None:
        self.identity = identity
        self._used = 0
        self._rows: WordArray = np.empty((0, num_units, WORDS_PER_BLOCK), dtype="<u4")
        # Where in the array each block's row is.
        self._places = np.full(num_blocks, _ABSENT, dtype=np.int32)
        with _LIMIT.lock:
            _LIMIT.admit(self, self._size_bytes)

    @staticmethod
    def fit(num_blocks: int, num_units: int) -> bool:
        """Tell whether rows of such a tile are worth keeping: neither they nor their number exceed a share."""
        return max(num_blocks * 4, num_units * BYTES_PER_BLOCK) <= MOST_KEPT_BYTES // 8

    def row(self, block: int) -> WordArray | None:
        """Return a row, None where it is not here."""
        place = self._places[block]
        return None if place == _ABSENT else self._rows[place]

    def missing(self, blocks: np.ndarray[Any, Any]) -> list[int]:
        """Return which of these blocks are not here, each once."""
        absent: list[int] = np.unique(blocks[self._places[blocks] == _ABSENT]).tolist()
        return absent

    def all(self, blocks: np.ndarray[Any, Any]) -> tuple[WordArray, np.ndarray[Any, Any]]:
        """Return an array of rows, and where in it those of these blocks are. None of them may be missing."""
        places = self._places[blocks]
        return self._rows, places  # in this order: an array that was replaced has all rows of the one before

    def add(self, blocks: Sequence[int], rows: Sequence[WordArray]) -> None:
        """Keep rows that were checked."""
        with _LIMIT.lock:
            new = {block: row for block, row in zip(blocks, rows, strict=True) if self._places[block] == _ABSENT}
            self._make_room(len(new))
            for block, row in new.items():
                self._rows[self._used] = row
                self._places[block] = self._used  # last: whoever sees the place finds the row there
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
