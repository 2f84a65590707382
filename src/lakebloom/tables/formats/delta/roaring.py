"""Roaring bitmaps of 64 bits in their portable form, read lazily and without trusting a byte of them.

    64 bits     number of bitmaps (8 bytes), then for each: the high 32 bits (4 bytes), a bitmap of 32 bits
    32 bits     cookie (4): 12346 and the number of containers (4), or 12347 in the low half, the number less one in
                the high half, and one bit for each container that consists of runs
                for each container: the high 16 bits (2), the number of values less one (2)
                where each container starts (4 each), unless the cookie is 12347 and there are fewer than four
                containers: sorted values (2 each); 8192 bytes of bits, above 4096 values; or the number of runs (2),
                and for each its start (2) and its length less one (2)

All numbers are little-endian. Only views of the given bytes are kept, and a container is spread out when rows in it
are asked for, into 64 KiB: four bytes that claim 65,536 values cost nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

__all__ = ["Roaring"]

_PLAIN, _WITH_RUNS = 12346, 12347
_FEW_CONTAINERS = 4
_MOST_SORTED = 4096
_BITSET_BYTES = 8192
_ONES = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).sum(axis=1).astype(np.int64)
_CONTAINER_ROWS = 1 << 16
_MOST_CONTAINERS = 1 << 18
"""Enough for 17 billion rows of one file."""


class _Container(NamedTuple):
    size: int
    sorted: np.ndarray[Any, np.dtype[np.uint16]] | None = None
    bits: np.ndarray[Any, np.dtype[np.uint8]] | None = None
    runs: np.ndarray[Any, np.dtype[np.uint16]] | None = None
    """Start and length less one, one pair a row."""

    def counted(self) -> int:
        """Return how many numbers there are; -1 if they are not in order."""
        if self.bits is not None:
            return int(_ONES[self.bits].sum())
        if self.sorted is not None:
            in_order = bool((self.sorted[1:] > self.sorted[:-1]).all())
            return len(self.sorted) if in_order else -1
        assert self.runs is not None
        starts = self.runs[:, 0].astype(np.int64)
        ends = starts + self.runs[:, 1] + 1
        in_order = bool((starts[1:] >= ends[:-1]).all()) and bool((ends <= _CONTAINER_ROWS).all())
        return int((ends - starts).sum()) if in_order else -1

    def spread(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        if self.bits is not None:
            return np.unpackbits(self.bits, bitorder="little").view(np.bool_)
        found = np.zeros(_CONTAINER_ROWS, dtype=np.bool_)
        if self.sorted is not None:
            found[self.sorted] = True
        elif self.runs is not None:
            edges = np.zeros(2 * _CONTAINER_ROWS, dtype=np.int32)
            starts = self.runs[:, 0].astype(np.int64)
            np.add.at(edges, starts, 1)
            np.add.at(edges, starts + self.runs[:, 1] + 1, -1)
            found = np.cumsum(edges[:_CONTAINER_ROWS]) > 0
        return found


class Roaring:
    """A set of numbers below 2^63."""

    def __init__(self, data: memoryview) -> None:
        """Read the headers of all bitmaps. Raises ValueError for what is no such set."""
        at = _Cursor(data)
        self._containers: dict[int, _Container] = {}
        for _ in range(at.number(8)):
            high = at.number(4)
            if high >= 1 << 31:
                raise ValueError(f"a bitmap of rows from {high << 32} on")
            self._read(at, high)
        if at.left:
            raise ValueError(f"{at.left} bytes behind the last bitmap")

    def __len__(self) -> int:
        return sum(container.size for container in self._containers.values())

    def contains(self, rows: np.ndarray[Any, np.dtype[np.int64]]) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Tell for each of these numbers, which are not negative, whether it is in the set."""
        found = np.zeros(len(rows), dtype=np.bool_)
        high = rows >> 16
        for number in np.unique(high).tolist():
            container = self._containers.get(number)
            if container is not None:
                here = high == number
                found[here] = container.spread()[rows[here] & 0xFFFF]
        return found

    def _read(self, at: _Cursor, high: int) -> None:
        cookie = at.number(4)
        if cookie == _PLAIN:
            count, with_runs = at.number(4), np.zeros(0, dtype=np.bool_)
        elif cookie & 0xFFFF == _WITH_RUNS:
            count = (cookie >> 16) + 1
            with_runs = np.unpackbits(at.array((count + 7) // 8, np.uint8), bitorder="little").view(np.bool_)
        else:
            raise ValueError(f"the cookie {cookie}")
        if count > _CONTAINER_ROWS or len(self._containers) + count > _MOST_CONTAINERS:
            raise ValueError(f"{count} containers")
        header = at.array(2 * count, np.uint16).reshape(count, 2)
        if not len(with_runs) or count >= _FEW_CONTAINERS:
            at.array(count, np.uint32)  # where containers start: one behind the other, in any case
        for number, (key, less_one) in enumerate(header.tolist()):
            is_run = bool(len(with_runs) and with_runs[number])
            place = high << 16 | key
            if place in self._containers:
                raise ValueError(f"two containers of rows from {place << 16} on")
            self._containers[place] = _container(at, less_one + 1, is_run=is_run)


def _container(at: _Cursor, count: int, *, is_run: bool) -> _Container:
    if is_run:
        runs = at.array(2 * at.number(2), np.uint16).reshape(-1, 2)
        container = _Container(count, runs=runs)
    elif count > _MOST_SORTED:
        container = _Container(count, bits=at.array(_BITSET_BYTES, np.uint8))
    else:
        container = _Container(count, sorted=at.array(count, np.uint16))
    found = container.counted()
    if found != count:
        raise ValueError(f"a container of {found} numbers that should have {count}")
    return container


class _Cursor:
    """A place in bytes."""

    def __init__(self, data: memoryview) -> None:
        self._data, self._at = data, 0

    @property
    def left(self) -> int:
        return len(self._data) - self._at

    def number(self, size: int) -> int:
        return int.from_bytes(self._bytes(size), "little")

    def array(self, count: int, kind: Any) -> np.ndarray[Any, Any]:
        plain = np.dtype(kind).newbyteorder("<")
        return np.frombuffer(self._bytes(count * plain.itemsize), plain)

    def _bytes(self, size: int) -> memoryview:
        if size > self.left:
            raise ValueError(f"{self.left} bytes where {size} should be")
        self._at += size
        return self._data[self._at - size : self._at]
