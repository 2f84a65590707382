"""A cache of checked pieces of tiles, with one memory limit for the process.

The pieces of a file are in one array, in the order in which they were first read, so that a probe of many values uses
them without a copy. When all files together exceed the limit, the whole cache is cleared. A piece that is needed again
is then read again.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from lakebloom.locks import new_lock
from lakebloom.store.tile_layout import SLACK_BYTES
from lakebloom.tuning import KEPT_BYTES

if TYPE_CHECKING:
    from lakebloom.sbbf.kernels import ByteArray
    from lakebloom.storage.local.reads import FileIdentity

__all__ = ["KeptPieces"]

_OVERHEAD_BYTES = 500
"""Memory that Python needs for the objects of one file."""
_PAGE_BYTES = 4096


class _Limit:
    """The files with pieces in memory. Readers of a tile have weak references only."""

    def __init__(self) -> None:
        self.lock = new_lock()
        self.kept: dict[KeptPieces, int] = {}
        self.size_bytes = 0

    def admit(self, pieces: KeptPieces, size_bytes: int) -> None:
        """Add a file of this size, or change its size. The caller holds the lock."""
        more_bytes = size_bytes - self.kept.get(pieces, 0)
        if self.size_bytes + more_bytes > KEPT_BYTES:
            self.clear()
            more_bytes = size_bytes
        self.size_bytes += more_bytes
        self.kept[pieces] = size_bytes

    def clear(self) -> None:
        self.kept.clear()
        self.size_bytes = 0

    def start_anew(self) -> None:
        """Clear the cache in the child of a fork: another thread may have been changing it at that moment."""
        self.clear()


_LIMIT = _Limit()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_LIMIT.start_anew)


class KeptPieces:
    """Checked pieces of one file, valid while it stays the same. Safe to share between threads."""

    __slots__ = ("__weakref__", "_capacity", "_memory", "_places", "_used", "identity", "piece_bytes")

    def __init__(self, identity: FileIdentity, num_pieces: int, piece_bytes: int) -> None:
        self.identity = identity
        self.piece_bytes = piece_bytes
        self._used = self._capacity = 0
        self._memory: ByteArray = np.empty(SLACK_BYTES, dtype=np.uint8)
        # One more than the position of each piece in memory, 0 for an absent one: memory that is zero costs nothing.
        self._places = np.zeros(num_pieces, dtype=np.uint32)
        with _LIMIT.lock:
            _LIMIT.admit(self, self._size_bytes)

    @staticmethod
    def fit(num_pieces: int, piece_bytes: int) -> bool:
        """Tell whether the cache takes pieces of such a file: one piece and the positions must both be small."""
        return max(num_pieces * 4, piece_bytes) <= KEPT_BYTES // 8

    def piece(self, number: int) -> ByteArray | None:
        """Return a piece, None if it is not in the cache."""
        place = int(self._places[number])
        start = (place - 1) * self.piece_bytes
        return self._memory[start : start + self.piece_bytes] if place else None

    def missing(self, numbers: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return the distinct pieces among these that are not in the cache, ascending."""
        absent: np.ndarray[Any, Any] = np.sort(numbers[self._places[numbers] == 0])
        return absent if len(absent) < 2 else absent[np.append(True, absent[1:] != absent[:-1])]

    def all(self, numbers: np.ndarray[Any, Any]) -> tuple[ByteArray, np.ndarray[Any, Any]]:
        """Return memory with pieces, and the positions of these in it. None of them may be missing."""
        places = self._places[numbers].astype(np.int64) - 1
        return self._memory, places  # positions first: newer memory has all pieces of the one before

    def add(self, numbers: np.ndarray[Any, Any], pieces: ByteArray) -> None:
        """Add checked pieces, [count, piece_bytes]."""
        with _LIMIT.lock:
            new = np.flatnonzero(self._places[numbers] == 0)
            self._make_room(len(new))
            room = self._memory[self._used * self.piece_bytes : (self._used + len(new)) * self.piece_bytes]
            room.reshape(len(new), self.piece_bytes)[:] = pieces if len(new) == len(pieces) else pieces[new]
            # After the pieces: other threads read without the lock.
            self._places[numbers[new]] = np.arange(self._used + 1, self._used + len(new) + 1)
            self._used += len(new)
            if len(new):
                _LIMIT.admit(self, self._size_bytes)

    def _make_room(self, count: int) -> None:
        if self._used + count <= self._capacity:
            return
        wanted = min(len(self._places), max(self._used + count, 2 * self._capacity))
        grown = np.empty(wanted * self.piece_bytes + SLACK_BYTES, dtype=np.uint8)
        grown[: self._used * self.piece_bytes] = self._memory[: self._used * self.piece_bytes]
        self._memory, self._capacity = grown, wanted

    @property
    def _size_bytes(self) -> int:
        touched = min(self._places.nbytes, self._used * _PAGE_BYTES)
        return self._memory.nbytes + touched + _OVERHEAD_BYTES
