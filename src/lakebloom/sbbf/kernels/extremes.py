"""The smallest and the largest of many byte strings, by their first bytes: compiled, as ``compiled`` is.

Arrow's own kernel compares whole strings one by one and takes as long as hashing them. This one compares eight bytes
at a time as numbers, and no more bytes than a bound keeps; what all strings have in common at their start is only
tested for being equal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numba
import numpy as np

from lakebloom.sbbf.kernels.addresses import address
from lakebloom.sbbf.kernels.cache import kernel
from lakebloom.sbbf.kernels.intrinsics import big_endian, load_u8, load_u32, load_u64

if TYPE_CHECKING:
    from lakebloom.sbbf.kernels import BoolArray, ByteArray, OffsetArray

__all__ = ["extremes", "mark"]

_INT, _FLAGS, _FOUND, _CODES = numba.int64, numba.boolean[::1], numba.int64[::1], numba.int32[::1]
_U64, _I64 = np.uint64, np.int64
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)

_inline = numba.njit(inline="always", error_model="numpy")


@_inline
def _word(data, end, at, size, number):  # type: ignore[no-untyped-def]
    """Return eight bytes of a string as a number that sorts like them, with zeros behind the string."""
    at += 8 * number
    size -= 8 * number
    if size <= 0:
        return _U64(0)
    if at + 8 <= end:
        x = big_endian(load_u64(data, at))
        return x if size >= 8 else x & ~(_ALL >> _U64(8 * size))
    x = _U64(0)
    for i in range(min(size, 8)):
        x |= load_u8(data, at + i) << _U64(56 - 8 * i)
    return x


@_inline
def _shared(data, end, a, size_a, b, size_b, number, most):  # type: ignore[no-untyped-def]
    """Return how many words two strings have in common at their start, at most so many; ``number`` are known to be."""
    whole = min(min(size_a, size_b) >> 3, most)
    while number < whole and load_u64(data, a + 8 * number) == load_u64(data, b + 8 * number):
        number += 1
    if number == whole:
        while number < most and _word(data, end, a, size_a, number) == _word(data, end, b, size_b, number):
            number += 1
    return number


@_inline
def _is_less(data, end, a, size_a, b, size_b, number, most):  # type: ignore[no-untyped-def]
    """Compare two strings by at most so many words, ``number`` of which are equal, and then by their length."""
    number = _shared(data, end, a, size_a, b, size_b, number, most)
    if number == most:
        return size_a < size_b
    return _word(data, end, a, size_a, number) < _word(data, end, b, size_b, number)


@kernel(_INT, _INT, _INT, _INT, _INT, _INT, _FLAGS, _FOUND)
def _extremes(offsets, data, end, most, start, stop, valid, found):  # type: ignore[no-untyped-def]
    low = high = _I64(-1)
    low_at = high_at = low_size = high_size = _I64(0)
    low_word = high_word = _U64(0)
    common = most  # words that all strings so far have in common: these need no ordering
    behind = _I64(load_u32(offsets, 4 * start))
    for i in range(start, stop):
        at = behind
        behind = _I64(load_u32(offsets, 4 * i + 4))
        size = behind - at
        if valid.size and not valid[i]:
            continue
        if common < most and size >= 8 * common + 8 and low_size >= 8 * common:  # the usual case, without calls
            number = 0
            while number < common and load_u64(data, at + 8 * number) == load_u64(data, low_at + 8 * number):
                number += 1
            word = big_endian(load_u64(data, at + 8 * common))
            if number == common and word != low_word and word != high_word:
                if word < low_word:
                    low, low_at, low_size, low_word = i, at, size, word
                elif word > high_word:
                    high, high_at, high_size, high_word = i, at, size, word
                continue
        if low < 0:
            low, low_at, low_size = i, at, size
            high, high_at, high_size = i, at, size
            continue
        shared = _shared(data, end, at, size, low_at, low_size, 0, common)
        if shared < common:
            common = shared
            low_word = high_word = _word(data, end, low_at, low_size, common)
        word = _word(data, end, at, size, common) if common < most else _U64(0)
        if word < low_word or (word == low_word and _is_less(data, end, at, size, low_at, low_size, common, most)):
            low, low_at, low_size, low_word = i, at, size, word
        if word > high_word or (word == high_word and _is_less(data, end, high_at, high_size, at, size, common, most)):
            high, high_at, high_size, high_word = i, at, size, word
    found[0] = low
    found[1] = high


@kernel(_CODES, _FLAGS, _FLAGS)
def _mark(codes, valid, used):  # type: ignore[no-untyped-def]
    for i in range(codes.size):
        if not valid.size or valid[i]:
            used[codes[i]] = True


def extremes(
    offsets: OffsetArray, data: ByteArray, valid: BoolArray | None, rows: slice, most: int
) -> tuple[int, int] | None:
    """Return the numbers of the least and the greatest string among some rows; None if all of them are NULL.

    String i is ``data[offsets[i]:offsets[i + 1]]``, with offsets of 32 bits. Strings are compared by their first
    ``most`` bytes, a multiple of eight, and then by their length.
    """
    found = np.empty(2, dtype=np.int64)
    _extremes(address(offsets), address(data), data.size, most // 8, rows.start, rows.stop, _flags(valid), found)
    return None if found[0] < 0 else (int(found[0]), int(found[1]))


def mark(codes: np.ndarray[Any, np.dtype[np.int32]], valid: BoolArray | None, used: BoolArray) -> None:
    """Set ``used`` for each code that is valid."""
    _mark(np.require(codes, np.int32, ["C", "W"]), _flags(valid), used)


def _flags(valid: BoolArray | None) -> BoolArray:
    """Return flags in a writable array; an empty one if all are set."""
    return np.empty(0, dtype=np.bool_) if valid is None else np.require(valid, np.bool_, ["C", "W"])
