"""Where the pages of a file lie, as an index records it: for files of object stores without page indexes.

    varint row groups, varint leaves
    for each row group, for each leaf: varint size of what follows (0: unknown)
        varint size of the dictionary page (0: none), varint pages
        for each page: varint size, varint 2 x rows + (1 if its values are in the dictionary)

A varint is seven bits a byte, the lowest first, with the highest bit set in all bytes but the last. Pages follow each
other from the beginning of the chunk, as the footer has it. So only sizes are there, and a page in the wrong place is
found out by its header.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

from lakebloom.tables.parquet.pages.locations import PageLocations, UnpagedError, checked
from lakebloom.tuning import MAX_CHUNK_PAGES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["RecordedPages", "encoded"]

_DAMAGED = "damaged page locations in the index"
_LONGEST_VARINT = 9
_MAX_CHUNKS = 1 << 17


def encoded(locations: Mapping[tuple[int, int], PageLocations], row_groups: int, leaves: int) -> bytes | None:
    """Return locations by row group and leaf as bytes; None if there are none, or too many."""
    if not locations or row_groups * leaves > _MAX_CHUNKS:
        return None
    found = bytearray(_varints(row_groups, leaves))
    for row_group in range(row_groups):
        for leaf in range(leaves):
            known = locations.get((row_group, leaf))
            chunk_bytes = b"" if known is None else _chunk(known)
            found += _varints(len(chunk_bytes)) + chunk_bytes
    return bytes(found)


def _chunk(locations: PageLocations) -> bytes:
    dictionary = 0 if locations.dictionary is None else locations.dictionary[1]
    start = locations.offsets[0] if locations.dictionary is None else locations.dictionary[0]
    expected = list(accumulate(locations.sizes, initial=start + dictionary))
    if expected[:-1] != locations.offsets:
        return b""  # something lies between the pages
    rows = (stop - first for first, stop in zip(locations.first_rows, locations.first_rows[1:], strict=False))
    pages = zip(locations.sizes, rows, locations.uses_dictionary, strict=True)
    numbers = (number for size, count, uses in pages for number in (size, 2 * count + uses))
    return _varints(dictionary, len(locations.sizes), *numbers)


def _varints(*numbers: int) -> bytes:
    found = bytearray()
    for number in numbers:
        while number > 0x7F:
            found.append(number & 0x7F | 0x80)
            number >>= 7
        found.append(number)
    return bytes(found)


class RecordedPages:
    """The recorded locations of one file. A chunk is decoded when it is asked for. Raises UnpagedError for damage."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        at, (row_groups, self._leaves) = _read(data, 0, 2)
        count = row_groups * self._leaves
        if count > _MAX_CHUNKS:
            raise UnpagedError(_DAMAGED)
        self._entries: list[tuple[int, int]] = []
        for _ in range(count):
            at, (size,) = _read(data, at, 1)
            if size > len(data) - at:
                raise UnpagedError(_DAMAGED)
            self._entries.append((at, size))
            at += size

    def of(self, row_group: int, leaf: int, chunk: tuple[int, int], num_rows: int) -> PageLocations:
        """Return the pages of a chunk, which begins and ends there. Raises UnpagedError."""
        number = row_group * self._leaves + leaf
        if not 0 <= leaf < self._leaves or number >= len(self._entries) or not self._entries[number][1]:
            raise UnpagedError("no page index")
        at, size = self._entries[number]
        chunk_bytes = self._data[at : at + size]
        at, (dictionary, count) = _read(chunk_bytes, 0, 2)
        if not 0 < count <= min(MAX_CHUNK_PAGES, len(chunk_bytes)):
            raise UnpagedError(_DAMAGED)
        _, numbers = _read(chunk_bytes, at, 2 * count)
        sizes, rows = numbers[0::2], numbers[1::2]
        start = chunk[0]
        offsets = list(accumulate(sizes, initial=start + dictionary))[:-1]
        first_rows = list(accumulate((n >> 1 for n in rows), initial=0))
        if first_rows[-1] != num_rows:
            raise UnpagedError(_DAMAGED)
        return checked(
            PageLocations(
                offsets,
                sizes,
                first_rows,
                (start, dictionary) if dictionary else None,
                [-1] * count,  # headers are read with the pages, and have to agree
                [bool(n & 1) for n in rows],
            ),
            chunk,
        )


def _read(data: bytes, at: int, count: int) -> tuple[int, list[int]]:
    """Return the position behind so many numbers, and the numbers. Raises UnpagedError."""
    found = []
    for _ in range(count):
        number, shift = 0, 0
        for byte in _bytes_from(data, at):
            number |= (byte & 0x7F) << shift
            shift += 7
            at += 1
            if byte <= 0x7F:
                break
        else:
            raise UnpagedError(_DAMAGED)
        found.append(number)
    return at, found


def _bytes_from(data: bytes, at: int) -> Iterator[int]:
    return iter(data[at : at + _LONGEST_VARINT])
