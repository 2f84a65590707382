"""The kernels for bit planes in numpy and Python's own numbers, for small inputs; see ``planes_compiled``."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

from lakebloom.sbbf.blocks import BITS_PER_BLOCK, BYTES_PER_BLOCK, SALTS
from lakebloom.tuning import GATHERED_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lakebloom.sbbf.kernels import ByteArray, HashArray, OffsetArray, WordArray

__all__ = ["and_planes", "crc32_of_pieces", "from_planes", "or_hits", "plane_numbers", "to_planes"]

_SHORT_PLANE = 512
"""Planes of up to so many bytes are gathered for many values at once; longer ones are quicker one by one."""
_SALTS = np.array(SALTS, dtype=np.uint32)
_FIRST_PLANES = 32 * np.arange(len(SALTS), dtype=np.int64)


def to_planes(blocks: WordArray, rows: ByteArray, row_bytes: int, plane_bits: int) -> None:
    """Set the bits of [num_rows, num_units, 8] blocks in rows of zeros; see ``Kernels.to_planes``."""
    num_rows, units, _ = blocks.shape
    for part in _parts(num_rows, units):
        count = part.stop - part.start
        packed = blocks[part].view(np.uint8).reshape(count, units, BYTES_PER_BLOCK)
        bits = np.unpackbits(packed, axis=2, bitorder="little").transpose(0, 2, 1)
        if plane_bits % 8:
            planes = np.packbits(bits.reshape(count, BITS_PER_BLOCK * units), axis=1, bitorder="little")
            _of_rows(rows, part, row_bytes)[:, : planes.shape[1]] = planes
        else:
            planes = np.packbits(bits, axis=2, bitorder="little")
            _of_planes(rows, part, row_bytes, plane_bits // 8)[:, :, : planes.shape[2]] = planes


def from_planes(rows: ByteArray, row_bytes: int, plane_bits: int, blocks: WordArray) -> None:
    """Fill [num_rows, num_units, 8] blocks from rows; see ``Kernels.from_planes``."""
    num_rows, units, _ = blocks.shape
    for part in _parts(num_rows, units):
        count = part.stop - part.start
        if plane_bits % 8:
            packed = _of_rows(rows, part, row_bytes)[:, : BYTES_PER_BLOCK * units]
            bits = np.unpackbits(packed, axis=1, bitorder="little").reshape(count, BITS_PER_BLOCK, units)
        else:
            of_planes = _of_planes(rows, part, row_bytes, plane_bits // 8)[:, :, : -(-units // 8)]
            bits = np.unpackbits(of_planes, axis=2, bitorder="little", count=units)
        turned = np.packbits(bits.transpose(0, 2, 1), axis=2, bitorder="little")
        blocks[part] = np.ascontiguousarray(turned).view("<u4")


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
    size = 8 * passed.shape[1]
    starts = places * piece_bits + plane_numbers(hashes) * plane_bits
    if size > _SHORT_PLANE:
        _and_long(rows, starts, order, passed)
        return
    step = max(1, GATHERED_BYTES // (8 * size))
    for first in range(0, len(order), step):
        some = slice(first, first + step)
        at, shifts = starts[some, :, None] >> 3, (starts[some, :, None] & 7).astype(np.uint8)
        planes = rows[at + np.arange(size)]
        if shifts.any():
            # The rest of each byte is in the next one. A shift by 8 gives 0 in numpy as well.
            planes = (planes >> shifts) | (rows[at + np.arange(1, size + 1)] << (np.uint8(8) - shifts))
        passed[order[some]] &= np.bitwise_and.reduce(planes, axis=1).view("<u8")


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
    step = max(1, GATHERED_BYTES // units.nbytes)
    for start in range(0, hashes.shape[1], step):
        left = np.arange(start, min(start + step, hashes.shape[1]))
        passed = np.tile(units & ~hit, (len(left), 1))
        for layer, memory in enumerate(rows):
            of_layer = places[layer, left], piece_bits, plane_bits, hashes[layer, left]
            and_planes(memory, *of_layer, np.arange(len(left)), passed, is_first=layer == 0)
            still = passed.any(axis=1)
            left, passed = left[still], passed[still]
        hit |= np.bitwise_or.reduce(passed, axis=0)


def _and_long(rows: ByteArray, starts: OffsetArray, order: OffsetArray, passed: HashArray) -> None:
    """AND planes one by one."""
    size = 8 * passed.shape[1]
    for bits, i in zip(starts.tolist(), order.tolist(), strict=True):
        for bit in bits:
            plane = rows[bit >> 3 : (bit >> 3) + size + 1]
            shift = np.uint8(bit & 7)
            if shift:
                plane = (plane[:-1] >> shift) | (plane[1:] << np.uint8(8 - shift))
            passed[i] &= np.ascontiguousarray(plane[:size]).view("<u8")


def crc32_of_pieces(pieces: ByteArray, size: int, numbers: OffsetArray, seed: int, out: WordArray) -> None:
    """Compute the checksum of each piece; see ``Kernels.crc32_of_pieces``."""
    for i, (number, piece) in enumerate(zip(numbers.tolist(), pieces, strict=True)):
        out[i] = zlib.crc32(piece[:size].data, zlib.crc32(number.to_bytes(8, "little"), seed))


def plane_numbers(hashes: HashArray) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the eight planes of a row that decide about each hash, [count, 8]."""
    bits = (hashes.astype(np.uint32)[:, None] * _SALTS) >> np.uint32(27)
    planes: np.ndarray[Any, np.dtype[np.int64]] = bits.astype(np.int64) + _FIRST_PLANES
    return planes


def _parts(num_rows: int, units: int) -> Iterator[slice]:
    """Divide rows, so that the bits as bytes take a bounded amount of memory."""
    step = max(1, GATHERED_BYTES // (BITS_PER_BLOCK * units))
    return (slice(start, min(start + step, num_rows)) for start in range(0, num_rows, step))


def _of_rows(rows: ByteArray, part: slice, row_bytes: int) -> ByteArray:
    return rows[part.start * row_bytes : part.stop * row_bytes].reshape(-1, row_bytes)


def _of_planes(rows: ByteArray, part: slice, row_bytes: int, plane_bytes: int) -> ByteArray:
    of_rows = _of_rows(rows, part, row_bytes)[:, : BITS_PER_BLOCK * plane_bytes]
    return of_rows.reshape(part.stop - part.start, BITS_PER_BLOCK, plane_bytes)
