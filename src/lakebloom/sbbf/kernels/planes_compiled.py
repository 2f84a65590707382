"""Kernels compiled by numba for bit planes: blocks to planes and back, and the planes of many values ANDed.

A row holds the blocks with one number of U filters, as 256 planes of one bit for each filter. Plane p begins
``p * plane_bits`` bits behind the row's start, anywhere within a byte. Each kernel takes 64 filters at a time: as 64
words of 64 bits they are a square of bits, which is turned by exchanging ever smaller halves (Hacker's Delight, 7-3).
Up to 32 filters are two squares side by side, which are turned together, and their planes are a stream of bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numba
import numpy as np

from lakebloom.sbbf.blocks import SALTS
from lakebloom.sbbf.kernels.addresses import address, writable
from lakebloom.sbbf.kernels.cache import kernel
from lakebloom.sbbf.kernels.intrinsics import load_u8, load_u64, or_u64, prefetch_block, store_u8, store_u64

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakebloom.sbbf.kernels import ByteArray, HashArray, OffsetArray, WordArray

_INT, _ORDER, _HASHES = numba.int64, numba.int64[::1], numba.uint64[::1]
_PLACES, _PASSED, _ALL_PLACES = numba.int64[:, ::1], numba.uint64[:, ::1], numba.int64[:, :, ::1]
_SALTS = np.array(SALTS, dtype=np.uint64)
_U64, _I64 = np.uint64, np.int64
_ALL = np.uint64(2**64 - 1)
_HALVES = tuple((np.int64(1 << n), np.uint64((2**64 - 1) // ((1 << (1 << n)) + 1))) for n in range(6))
(_J1, _M1), (_J2, _M2), (_J4, _M4), (_J8, _M8), (_J16, _M16), (_J32, _M32) = _HALVES
_LOW_HALF = np.uint64(2**32 - 1)

_FEW = 32
"""Up to so many filters two squares side by side are quicker: half of a larger one would be empty."""

_AT_ONCE = 16
"""Values whose planes are fetched before they are touched."""

_inline = numba.njit(inline="always", error_model="numpy")


@_inline
def _exchange(square, size, step, mask):  # type: ignore[no-untyped-def]
    shift = _U64(step)
    for first in range(0, size, 2 * step):
        for low in range(first, first + step):
            moved = ((square[low] >> shift) ^ square[low + step]) & mask
            square[low + step] ^= moved
            square[low] ^= moved << shift


@_inline
def _turn_halves(square, size):  # type: ignore[no-untyped-def]
    """Turn the squares of 32 bits that the words of a square consist of, each at its place."""
    _exchange(square, size, _J16, _M16)
    _exchange(square, size, _J8, _M8)
    _exchange(square, size, _J4, _M4)
    _exchange(square, size, _J2, _M2)
    _exchange(square, size, _J1, _M1)


@_inline
def _turn(square):  # type: ignore[no-untyped-def]
    _exchange(square, _I64(64), _J32, _M32)
    _turn_halves(square, _I64(64))


@_inline
def _load_bits(base, bit):  # type: ignore[no-untyped-def]
    """Return 64 bits from any bit on. May read nine bytes."""
    at, shift = bit >> 3, _U64(bit & 7)
    # A shift by 64 is undefined: by 1 and 63 - shift it gives 0 where the bits begin with a byte.
    return (load_u64(base, at) >> shift) | ((load_u8(base, at + 8) << _U64(1)) << (_U64(63) - shift))


@_inline
def _or_bits(base, bit, bits):  # type: ignore[no-untyped-def]
    at, shift = bit >> 3, _U64(bit & 7)
    or_u64(base, at, bits << shift)
    rest = (bits >> _U64(1)) >> (_U64(63) - shift)
    if rest != _U64(0):
        store_u8(base, at + 8, load_u8(base, at + 8) | rest)


@_inline
def _low_bits(count):  # type: ignore[no-untyped-def]
    return _ALL if count >= 64 else (_U64(1) << _U64(count)) - _U64(1)


@kernel(_INT, _INT, _INT, _INT, _INT, _INT)
def _to_planes(blocks, num_rows, units, rows, row_bytes, plane_bits):  # type: ignore[no-untyped-def]
    square = np.empty(64, np.uint64)
    for row in range(num_rows):
        source, target = blocks + 32 * units * row, rows + row_bytes * row
        for first in range(0, units, 64):
            count = min(64, units - first)
            for word in range(4):
                for unit in range(count):
                    square[unit] = load_u64(source, 32 * (first + unit) + 8 * word)
                for unit in range(count, 64):
                    square[unit] = _U64(0)
                _turn(square)
                for bit in range(64):
                    _or_bits(target, (64 * word + bit) * plane_bits + first, square[bit])


@kernel(_INT, _INT, _INT, _INT, _INT, _INT)
def _to_few_planes(blocks, num_rows, units, rows, row_bytes, plane_bits):  # type: ignore[no-untyped-def]
    square = np.empty(_FEW, np.uint64)
    for row in range(num_rows):
        source, target = blocks + 32 * units * row, rows + row_bytes * row
        at, gathered, filled = _I64(0), _U64(0), _I64(0)
        for word in range(4):
            for unit in range(units):
                square[unit] = load_u64(source, 32 * unit + 8 * word)
            for unit in range(units, _FEW):
                square[unit] = _U64(0)
            _turn_halves(square, _I64(_FEW))
            for half in range(2):
                for bit in range(32):
                    plane = (square[bit] >> _U64(32 * half)) & _LOW_HALF
                    gathered |= plane << _U64(filled)
                    filled += plane_bits
                    if filled >= 64:  # the last plane of a row ends with a word
                        store_u64(target, at, gathered)
                        at, filled = at + 8, filled - 64
                        gathered = (plane >> _U64(1)) >> _U64(plane_bits - filled - 1)


@kernel(_INT, _INT, _INT, _INT, _INT, _INT)
def _from_planes(rows, num_rows, units, row_bytes, plane_bits, blocks):  # type: ignore[no-untyped-def]
    square = np.empty(64, np.uint64)
    for row in range(num_rows):
        source, target = rows + row_bytes * row, blocks + 32 * units * row
        for first in range(0, units, 64):
            count = min(64, units - first)
            mask = _low_bits(count)
            for word in range(4):
                for bit in range(64):
                    square[bit] = _load_bits(source, (64 * word + bit) * plane_bits + first) & mask
                _turn(square)
                for unit in range(count):
                    store_u64(target, 32 * (first + unit) + 8 * word, square[unit])


@kernel(_INT, _INT, _INT, _INT, _INT, _INT)
def _from_few_planes(rows, num_rows, units, row_bytes, plane_bits, blocks):  # type: ignore[no-untyped-def]
    square = np.empty(_FEW, np.uint64)
    mask = _low_bits(units)
    for row in range(num_rows):
        source, target = rows + row_bytes * row, blocks + 32 * units * row
        for word in range(4):
            for bit in range(32):
                at = (64 * word + bit) * plane_bits
                low = (load_u64(source, at >> 3) >> _U64(at & 7)) & mask
                at += 32 * plane_bits
                high = (load_u64(source, at >> 3) >> _U64(at & 7)) & mask
                square[bit] = low | (high << _U64(32))
            _turn_halves(square, _I64(_FEW))
            for unit in range(units):
                store_u64(target, 32 * unit + 8 * word, square[unit])


@_inline
def _and_dense(rows, starts, passed, i):  # type: ignore[no-untyped-def]
    p0, p1, p2, p3 = starts[0] >> 3, starts[1] >> 3, starts[2] >> 3, starts[3] >> 3
    p4, p5, p6, p7 = starts[4] >> 3, starts[5] >> 3, starts[6] >> 3, starts[7] >> 3
    for word in range(passed.shape[1]):  # one loop over eight streams: LLVM takes several words at a time
        at = 8 * word
        first = load_u64(rows, p0 + at) & load_u64(rows, p1 + at)
        second = load_u64(rows, p2 + at) & load_u64(rows, p3 + at)
        third = load_u64(rows, p4 + at) & load_u64(rows, p5 + at)
        fourth = load_u64(rows, p6 + at) & load_u64(rows, p7 + at)
        passed[i, word] &= first & second & third & fourth


@_inline
def _and_sparse(rows, starts, passed, i):  # type: ignore[no-untyped-def]
    for word in range(passed.shape[1]):
        left = passed[i, word]
        for plane in range(8):
            if left == _U64(0):
                break
            left &= _load_bits(rows, starts[plane] + 64 * word)
        passed[i, word] = left


@_inline
def _find_planes(places, n, one_piece, piece_bits, plane_bits, h, starts, i):  # type: ignore[no-untyped-def]
    """Set the bit at which each plane of a hash begins; return 0 if all of them begin with a byte."""
    key = h & _U64(0xFFFFFFFF)
    misaligned = _I64(0)
    for word in range(8):
        plane = 32 * word + _I64(((key * _SALTS[word]) & _U64(0xFFFFFFFF)) >> _U64(27))
        starts[i, word] = places[n, 0 if one_piece else word] * piece_bits + plane * plane_bits
        misaligned |= starts[i, word] & 7
    return misaligned


@_inline
def _fetch(rows, starts, i, size):  # type: ignore[no-untyped-def]
    """Bring the beginnings of eight planes of so many bytes nearer: each cache line of them is a miss."""
    for word in range(8):
        at = rows + (starts[i, word] >> 3)
        first, last = at >> 6, (at + size - 1) >> 6
        for line in range(first, min(last, first + 3) + 1):
            prefetch_block(_I64(0), 2 * line)  # blocks of half a line, from the beginning of memory on


@kernel(_INT, _PLACES, _INT, _INT, _HASHES, _ORDER, _PASSED, _INT)
def _and_planes(rows, places, piece_bits, plane_bits, hashes, order, passed, dense):  # type: ignore[no-untyped-def]
    starts = np.empty((1, 8), np.int64)
    one_piece = places.shape[1] == 1
    for n in range(order.size):
        misaligned = _find_planes(places, n, one_piece, piece_bits, plane_bits, hashes[n], starts, 0)
        if dense and misaligned == 0:
            _and_dense(rows, starts[0], passed, order[n])
        else:
            _and_sparse(rows, starts[0], passed, order[n])


@kernel(_ORDER, _ALL_PLACES, _INT, _INT, _PASSED, _HASHES, _HASHES)
def _or_hits(rows, places, piece_bits, plane_bits, hashes, units, hit):  # type: ignore[no-untyped-def]
    words, one_piece = hit.size, places.shape[2] == 1
    starts, left = np.empty((_AT_ONCE, 8), np.int64), np.empty((_AT_ONCE, words), np.uint64)
    chosen, misaligned = np.empty(_AT_ONCE, np.int64), np.empty(_AT_ONCE, np.int64)
    for first in range(0, hashes.shape[1], _AT_ONCE):
        count = min(_AT_ONCE, hashes.shape[1] - first)
        for i in range(count):
            chosen[i] = first + i
            for word in range(words):
                left[i, word] = units[word] & ~hit[word]
        for layer in range(hashes.shape[0]):
            for i in range(count):
                n = chosen[i]
                h = hashes[layer, n]
                misaligned[i] = _find_planes(places[layer], n, one_piece, piece_bits, plane_bits, h, starts, i)
                _fetch(rows[layer], starts, i, 8 * words)
            alive = 0
            for i in range(count):
                if layer == 0 and misaligned[i] == 0:
                    _and_dense(rows[layer], starts[i], left, i)
                else:
                    _and_sparse(rows[layer], starts[i], left, i)
                some = _U64(0)
                for word in range(words):
                    some |= left[i, word]
                if some != _U64(0):
                    chosen[alive] = chosen[i]
                    for word in range(words):
                        left[alive, word] = left[i, word]
                    alive += 1
            count = alive
        rest = _U64(0)
        for word in range(words):
            for i in range(count):
                hit[word] |= left[i, word]
            rest |= units[word] & ~hit[word]
        if rest == _U64(0):
            return


def to_planes(blocks: WordArray, rows: ByteArray, row_bytes: int, plane_bits: int) -> None:
    """Set the bits of [num_rows, num_units, 8] blocks in rows of zeros; see ``Kernels.to_planes``."""
    num_rows, units, _ = blocks.shape
    turn = _to_few_planes if units <= _FEW and plane_bits <= 64 else _to_planes
    turn(address(blocks), num_rows, units, address(rows), row_bytes, plane_bits)


def from_planes(rows: ByteArray, row_bytes: int, plane_bits: int, blocks: WordArray) -> None:
    """Fill [num_rows, num_units, 8] blocks from rows; see ``Kernels.from_planes``."""
    num_rows, units, _ = blocks.shape
    turn = _from_few_planes if units <= _FEW else _from_planes
    turn(address(rows), num_rows, units, row_bytes, plane_bits, address(blocks))


def and_planes(
    rows: ByteArray,
    places: OffsetArray,
    piece_bits: int,
    plane_bits: int,
    hashes: HashArray,
    order: OffsetArray,
    passed: HashArray,
    *,
    is_first: bool,
) -> None:
    """AND the planes of each hash into a row of ``passed``; see ``Kernels.and_planes``."""
    _and_planes(
        address(rows),
        np.require(places, np.int64, ["C", "W"]),
        piece_bits,
        plane_bits,
        writable(hashes),
        np.require(order, np.int64, ["C", "W"]),
        passed,
        int(is_first),
    )


def or_hits(
    rows: Sequence[ByteArray],
    places: OffsetArray,
    piece_bits: int,
    plane_bits: int,
    hashes: HashArray,
    units: HashArray,
    hit: HashArray,
) -> None:
    """Add the units that may hold one of some hashes; see ``Kernels.or_hits``."""
    addresses = np.array([address(memory) for memory in rows], dtype=np.int64)
    _or_hits(addresses, places, piece_bits, plane_bits, hashes, units, hit)
