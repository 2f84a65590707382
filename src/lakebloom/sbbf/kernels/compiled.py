"""Kernels compiled by numba: XXH64 over raw memory, insert and check. Loaded on first bulk use.

A kernel takes the values and the filter as addresses, and the hashes and results as writable numpy arrays: each has one
signature for all kinds of memory. The wrappers at the end take C-contiguous numpy arrays and keep them alive
during the call. They have the same signatures as those of ``portable``, and a test compares the results of both.

Machine code is cached on disk, so only the first process on a machine pays for compilation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numba
import numpy as np

from lakebloom.sbbf.kernels.addresses import address, writable
from lakebloom.sbbf.kernels.cache import kernel
from lakebloom.sbbf.kernels.crc32_compiled import crc32_of_pieces
from lakebloom.sbbf.kernels.intrinsics import (
    contains_key,
    hash_stripes,
    insert_key,
    load_u8,
    load_u32,
    load_u64,
    prefetch_block,
)
from lakebloom.sbbf.kernels.planes_compiled import and_planes, from_planes, or_hits, to_planes
from lakebloom.sbbf.kernels.xxh64 import PRIMES
from lakebloom.tuning import PREFETCHED_VALUES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakebloom.sbbf.kernels import BoolArray, ByteArray, HashArray, OffsetArray, WordArray

__all__ = [
    "and_planes",
    "check",
    "crc32_of_pieces",
    "from_planes",
    "hash_fixed",
    "hash_floats",
    "hash_offsets",
    "hash_views",
    "insert",
    "or_hits",
    "to_planes",
]

_INT, _HASHES, _ANSWERS = numba.int64, numba.uint64[::1], numba.boolean[::1]
_U64, _U32, _I64 = np.uint64, np.uint32, np.int64
_P1, _P2, _P3, _P4, _P5 = (np.uint64(prime) for prime in PRIMES)

_inline = numba.njit(inline="always", error_model="numpy")


@_inline
def _rotate(x, bits):  # type: ignore[no-untyped-def]
    return (x << _U64(bits)) | (x >> _U64(64 - bits))


@_inline
def _round(lane):  # type: ignore[no-untyped-def]
    return _rotate(lane * _P2, 31) * _P1


@_inline
def _avalanche(h):  # type: ignore[no-untyped-def]
    h ^= h >> _U64(33)
    h *= _P2
    h ^= h >> _U64(29)
    h *= _P3
    return h ^ (h >> _U64(32))


@_inline
def _hash_word(value):  # type: ignore[no-untyped-def]
    h = (_P5 + _U64(8)) ^ _round(value)
    return _avalanche(_rotate(h, 27) * _P1 + _P4)


@_inline
def _hash_half_word(value):  # type: ignore[no-untyped-def]
    h = (_P5 + _U64(4)) ^ (value * _P1)
    return _avalanche(_rotate(h, 23) * _P2 + _P3)


@_inline
def _hash_bytes(base, start, size):  # type: ignore[no-untyped-def]
    at = start
    end = start + size
    if size >= 32:
        h = hash_stripes(base, start, size >> 5)
        at += size & ~31
    else:
        h = _P5
    h += _U64(size)
    while at + 8 <= end:
        h = _rotate(h ^ _round(load_u64(base, at)), 27) * _P1 + _P4
        at += 8
    if at + 4 <= end:
        h = _rotate(h ^ (load_u32(base, at) * _P1), 23) * _P2 + _P3
        at += 4
    while at < end:
        h = _rotate(h ^ (load_u8(base, at) * _P5), 11) * _P1
        at += 1
    return _avalanche(h)


@kernel(_INT, _INT, _HASHES)
def _hash_4(values, count, out):  # type: ignore[no-untyped-def]
    for i in range(count):
        out[i] = _hash_half_word(load_u32(values, 4 * i))


@kernel(_INT, _INT, _HASHES)
def _hash_8(values, count, out):  # type: ignore[no-untyped-def]
    for i in range(count):
        out[i] = _hash_word(load_u64(values, 8 * i))


@kernel(_INT, _INT, _INT, _HASHES)
def _hash_width(values, width, count, out):  # type: ignore[no-untyped-def]
    for i in range(count):
        out[i] = _hash_bytes(values, width * i, width)


@kernel(_INT, _INT, _HASHES)
def _hash_float(values, count, out):  # type: ignore[no-untyped-def]
    for i in range(count):
        bits = load_u32(values, 4 * i)
        magnitude = bits & _U64(0x7FFFFFFF)
        if magnitude == 0:
            bits = _U64(0)
        if magnitude > _U64(0x7F800000):
            bits = _U64(0x7FC00000)
        out[i] = _hash_half_word(bits)


@kernel(_INT, _INT, _HASHES)
def _hash_double(values, count, out):  # type: ignore[no-untyped-def]
    for i in range(count):
        bits = load_u64(values, 8 * i)
        magnitude = bits & _U64(0x7FFFFFFFFFFFFFFF)
        if magnitude == 0:
            bits = _U64(0)
        if magnitude > _U64(0x7FF0000000000000):
            bits = _U64(0x7FF8000000000000)
        out[i] = _hash_word(bits)


@kernel(_INT, _INT, _INT, _HASHES)
def _hash_offsets_32(offsets, data, count, out):  # type: ignore[no-untyped-def]
    for i in range(count):
        start = _I64(load_u32(offsets, 4 * i))
        out[i] = _hash_bytes(data, start, _I64(load_u32(offsets, 4 * i + 4)) - start)


@kernel(_INT, _INT, _INT, _HASHES)
def _hash_offsets_64(offsets, data, count, out):  # type: ignore[no-untyped-def]
    for i in range(count):
        start = _I64(load_u64(offsets, 8 * i))
        out[i] = _hash_bytes(data, start, _I64(load_u64(offsets, 8 * i + 8)) - start)


@kernel(_INT, _INT, _INT, _HASHES)
def _hash_views(views, buffers, count, out):  # type: ignore[no-untyped-def]
    # A view is 16 bytes: the size, then either up to 12 bytes of data or (prefix, buffer number, offset).
    for i in range(count):
        view = 16 * i
        size = _I64(load_u32(views, view))
        if size <= 12:
            out[i] = _hash_bytes(views, view + 4, size)
        else:
            buffer = _I64(load_u64(buffers, 8 * _I64(load_u32(views, view + 8))))
            out[i] = _hash_bytes(buffer, _I64(load_u32(views, view + 12)), size)


@_inline
def _block(h, num_blocks):  # type: ignore[no-untyped-def]
    return _I64(((h >> _U64(32)) * num_blocks) >> _U64(32))


@kernel(_INT, _INT, _HASHES)
def _insert(words, num_blocks, hashes):  # type: ignore[no-untyped-def]
    z = _U64(num_blocks)
    batched = hashes.size - hashes.size % PREFETCHED_VALUES
    for start in range(0, batched, PREFETCHED_VALUES):
        batch = hashes[start : start + PREFETCHED_VALUES]
        for i in range(PREFETCHED_VALUES):
            prefetch_block(words, _block(batch[i], z))
        for i in range(PREFETCHED_VALUES):
            insert_key(words, _block(batch[i], z), _U32(batch[i]))
    for i in range(batched, hashes.size):
        insert_key(words, _block(hashes[i], z), _U32(hashes[i]))


@kernel(_INT, _INT, _HASHES, _ANSWERS)
def _check(words, num_blocks, hashes, out):  # type: ignore[no-untyped-def]
    z = _U64(num_blocks)
    batched = hashes.size - hashes.size % PREFETCHED_VALUES
    for start in range(0, batched, PREFETCHED_VALUES):
        batch = hashes[start : start + PREFETCHED_VALUES]
        answers = out[start : start + PREFETCHED_VALUES]
        for i in range(PREFETCHED_VALUES):
            prefetch_block(words, _block(batch[i], z))
        for i in range(PREFETCHED_VALUES):
            answers[i] = contains_key(words, _block(batch[i], z), _U32(batch[i]))
    for i in range(batched, hashes.size):
        out[i] = contains_key(words, _block(hashes[i], z), _U32(hashes[i]))


def hash_fixed(values: ByteArray, out: HashArray) -> None:
    """Hash the rows of a [count, width] byte array."""
    count, width = values.shape
    if width == 8:
        _hash_8(address(values), count, out)
    elif width == 4:
        _hash_4(address(values), count, out)
    else:
        _hash_width(address(values), width, count, out)


def hash_floats(values: ByteArray, out: HashArray) -> None:
    """Hash IEEE numbers of 4 or 8 bytes, with one zero and one NaN."""
    count, width = values.shape
    (_hash_double if width == 8 else _hash_float)(address(values), count, out)


def hash_offsets(offsets: OffsetArray, data: ByteArray, out: HashArray) -> None:
    """Hash ``data[offsets[i]:offsets[i + 1]]`` for each i."""
    kernel = _hash_offsets_64 if offsets.itemsize == 8 else _hash_offsets_32
    kernel(address(offsets), address(data), offsets.size - 1, out)


def hash_views(views: ByteArray, buffers: Sequence[ByteArray], out: HashArray) -> None:
    """Hash Arrow string views, rows of a [count, 16] byte array that point into ``buffers``."""
    addresses = np.array([address(buffer) for buffer in buffers], dtype=np.int64)
    _hash_views(address(views), address(addresses), len(views), out)


def insert(words: WordArray, hashes: HashArray) -> None:
    """Set the bits of each hash."""
    _insert(address(words), len(words), writable(hashes))


def check(words: WordArray, hashes: HashArray, out: BoolArray) -> None:
    """Tell for each hash whether all its bits are set."""
    _check(address(words), len(words), writable(hashes), out)
