"""The same kernels in numpy, for small inputs, where loading a compiler would cost more than the work.

Values of one width are hashed together as columns of words, so a list of ten thousand keys takes milliseconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lakebloom.sbbf.blocks import SALTS
from lakebloom.sbbf.distinct import runs
from lakebloom.sbbf.kernels.planes_portable import (
    and_planes,
    crc32_of_pieces,
    from_planes,
    or_hits,
    plane_numbers,
    to_planes,
)
from lakebloom.sbbf.kernels.single import hash_one
from lakebloom.sbbf.kernels.xxh64 import PRIMES
from lakebloom.tuning import FEW_VALUES, GATHERED_BYTES, SHORT_BYTES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakebloom.sbbf.kernels import BoolArray, ByteArray, HashArray, OffsetArray, WordArray

__all__ = [
    "and_planes",
    "block_numbers",
    "check",
    "contain",
    "crc32_of_pieces",
    "from_planes",
    "hash_fixed",
    "hash_floats",
    "hash_offsets",
    "hash_views",
    "insert",
    "masks",
    "or_hits",
    "plane_numbers",
    "to_planes",
]

_P1, _P2, _P3, _P4, _P5 = (np.uint64(prime) for prime in PRIMES)
_SALTS = np.array(SALTS, dtype=np.uint32)
_INLINE_VIEW_BYTES = 12
_ALL_FOUR = np.uint32(0x01010101)


def _rotate(x: HashArray, bits: int) -> HashArray:
    rotated: HashArray = (x << np.uint64(bits)) | (x >> np.uint64(64 - bits))
    return rotated


def _round(lane: HashArray) -> HashArray:
    mixed: HashArray = _rotate(lane * _P2, 31) * _P1
    return mixed


def _words(values: ByteArray, at: int, width: int) -> HashArray:
    column = np.ascontiguousarray(values[:, at : at + width]).view(f"<u{width}")
    return column[:, 0].astype(np.uint64)


def _stripes(values: ByteArray) -> HashArray:
    """Consume all whole 32-byte stripes and return the merged state."""
    count, width = values.shape
    # Sums of the primes modulo 2^64, written out because numpy warns when a scalar overflows.
    starts = ((PRIMES[0] + PRIMES[1]) % 2**64, PRIMES[1], 0, -PRIMES[0] % 2**64)
    lanes = [np.full(count, start, dtype=np.uint64) for start in starts]
    for at in range(0, width - 31, 32):
        lanes = [_rotate(lane + _words(values, at + 8 * i, 8) * _P2, 31) * _P1 for i, lane in enumerate(lanes)]
    h = _rotate(lanes[0], 1) + _rotate(lanes[1], 7) + _rotate(lanes[2], 12) + _rotate(lanes[3], 18)
    for lane in lanes:
        h = (h ^ _round(lane)) * _P1 + _P4
    return h


def hash_fixed(values: ByteArray, out: HashArray) -> None:
    """Hash the rows of a [count, width] byte array."""
    count, width = values.shape
    if count <= FEW_VALUES and width <= SHORT_BYTES:
        out[:] = [hash_one(row.tobytes()) for row in values]
        return
    h = _stripes(values) if width >= 32 else np.full(count, _P5, dtype=np.uint64)
    at = width - width % 32
    h = h + np.uint64(width)
    while at + 8 <= width:
        h = _rotate(h ^ _round(_words(values, at, 8)), 27) * _P1 + _P4
        at += 8
    if at + 4 <= width:
        h = _rotate(h ^ (_words(values, at, 4) * _P1), 23) * _P2 + _P3
        at += 4
    for i in range(at, width):
        h = _rotate(h ^ (values[:, i].astype(np.uint64) * _P5), 11) * _P1
    h = (h ^ (h >> np.uint64(33))) * _P2
    h = (h ^ (h >> np.uint64(29))) * _P3
    out[:] = h ^ (h >> np.uint64(32))


def hash_floats(values: ByteArray, out: HashArray) -> None:
    """Hash IEEE numbers of 4 or 8 bytes, with one zero and one NaN."""
    numbers = np.ascontiguousarray(values).view(f"<f{values.shape[1]}")[:, 0].copy()
    numbers[numbers == 0] = 0.0
    numbers[np.isnan(numbers)] = np.nan
    hash_fixed(numbers.view(np.uint8).reshape(values.shape), out)


def hash_offsets(offsets: OffsetArray, data: ByteArray, out: HashArray) -> None:
    """Hash ``data[offsets[i]:offsets[i + 1]]`` for each i."""
    starts = offsets[:-1].astype(np.int64)
    _hash_slices(data, starts, np.diff(offsets).astype(np.int64), out)


def hash_views(views: ByteArray, buffers: Sequence[ByteArray], out: HashArray) -> None:
    """Hash Arrow string views, rows of a [count, 16] byte array that point into ``buffers``."""
    fields = np.ascontiguousarray(views).view("<i4")
    sizes = fields[:, 0].astype(np.int64)
    inline = sizes <= _INLINE_VIEW_BYTES
    inline_rows = np.flatnonzero(inline)
    _hash_selected(views.reshape(-1), inline_rows, inline_rows * 16 + 4, sizes, out)
    for number, buffer in enumerate(buffers):
        rows = np.flatnonzero(~inline & (fields[:, 2] == number))
        _hash_selected(buffer, rows, fields[rows, 3].astype(np.int64), sizes, out)


def _hash_selected(
    data: ByteArray, rows: np.ndarray[Any, Any], starts: OffsetArray, sizes: OffsetArray, out: HashArray
) -> None:
    hashes = np.empty(len(rows), dtype=np.uint64)
    _hash_slices(data, starts, sizes[rows], hashes)
    out[rows] = hashes


def _hash_slices(data: ByteArray, starts: OffsetArray, sizes: OffsetArray, out: HashArray) -> None:
    if len(starts) <= FEW_VALUES and all(size <= SHORT_BYTES for size in sizes):
        places = zip(starts.tolist(), sizes.tolist(), strict=True)
        out[:] = [hash_one(data[start : start + size].tobytes()) for start, size in places]
        return
    order = np.argsort(sizes, kind="stable")
    distinct, firsts = runs(sizes[order])
    for size, first, end in zip(distinct.tolist(), firsts, np.append(firsts[1:], len(order)), strict=True):
        rows = order[first:end]
        step = max(1, GATHERED_BYTES // max(1, size))
        for at in range(0, len(rows), step):
            group = rows[at : at + step]
            hashes = np.empty(len(group), dtype=np.uint64)
            hash_fixed(_gathered(data, starts[group], size), hashes)
            out[group] = hashes


def _gathered(data: ByteArray, starts: OffsetArray, size: int) -> ByteArray:
    """Return the ``size`` bytes from each start as rows."""
    if size == 0:
        return np.empty((len(starts), 0), dtype=np.uint8)
    rows: ByteArray = np.lib.stride_tricks.sliding_window_view(data, size)[starts]
    return rows


def block_numbers(hashes: HashArray, num_blocks: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the block number of each hash."""
    numbers = ((hashes >> np.uint64(32)) * np.uint64(num_blocks)) >> np.uint64(32)
    return np.asarray(numbers, dtype=np.int64)


def masks(hashes: HashArray) -> WordArray:
    """Return the bits that each hash sets in its block, as [count, 8] words."""
    keys = hashes.astype(np.uint32)
    words: WordArray = np.uint32(1) << ((keys[:, None] * _SALTS) >> np.uint32(27))
    return words


def insert(words: WordArray, hashes: HashArray) -> None:
    """Set the bits of each hash."""
    np.bitwise_or.at(words, block_numbers(hashes, len(words)), masks(hashes))


def check(words: WordArray, hashes: HashArray, out: BoolArray) -> None:
    """Tell for each hash whether all its bits are set."""
    out[:] = contain(words[block_numbers(hashes, len(words))], masks(hashes))


def contain(blocks: WordArray, wanted: WordArray) -> BoolArray:
    """Tell for each block whether it has all bits that are wanted of it."""
    bits = wanted.view(np.uint64)
    found = (blocks.view(np.uint64) & bits) == bits
    # Four answers as one number: numpy reduces over a short last axis many times more slowly.
    answers: BoolArray = found.view(np.uint32)[:, 0] == _ALL_FOUR
    return answers
