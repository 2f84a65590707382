"""One value: hashed with Python's own numbers, far quicker than with arrays of one, and looked for in planes."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np

from lakebloom.sbbf.blocks import SALTS
from lakebloom.sbbf.kernels.xxh64 import PRIMES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakebloom.sbbf.kernels import HashArray, OffsetArray

    Buffer = bytes | memoryview

__all__ = ["and_row", "and_wide", "hash_one", "planes_of", "units_of"]

_ALL = 2**64 - 1
_STRIPE = struct.Struct("<4Q")


def hash_one(value: bytes) -> int:
    """Return the XXH64 of a value's bytes, seed 0."""
    # Written out, as each call and each loop takes as long as some multiplications.
    first, second, third, fourth, fifth = PRIMES
    size = len(value)
    at = size & -32
    if at:
        a, b, c, d = first + second, second, 0, -first
        for w, x, y, z in _STRIPE.iter_unpack(value[:at]):
            a, b, c, d = a + w * second & _ALL, b + x * second & _ALL, c + y * second & _ALL, d + z * second & _ALL
            a, b = ((a << 31 | a >> 33) & _ALL) * first & _ALL, ((b << 31 | b >> 33) & _ALL) * first & _ALL
            c, d = ((c << 31 | c >> 33) & _ALL) * first & _ALL, ((d << 31 | d >> 33) & _ALL) * first & _ALL
        # Bits beyond 64 do no harm in sums: they are cut off below.
        h = (a << 1 | a >> 63) + (b << 7 | b >> 57) + (c << 12 | c >> 52) + (d << 18 | d >> 46)
        for lane in (a, b, c, d):
            lane = lane * second & _ALL
            h = ((h ^ (lane << 31 | lane >> 33) * first) * first + fourth) & _ALL
    else:
        h = fifth
    h = h + size & _ALL
    while at + 8 <= size:
        lane = int.from_bytes(value[at : at + 8], "little") * second & _ALL
        h ^= ((lane << 31 | lane >> 33) & _ALL) * first & _ALL
        h = ((h << 27 | h >> 37) & _ALL) * first + fourth & _ALL
        at += 8
    if at + 4 <= size:
        h ^= int.from_bytes(value[at : at + 4], "little") * first & _ALL
        h = ((h << 23 | h >> 41) & _ALL) * second + third & _ALL
        at += 4
    for byte in value[at:]:
        h ^= byte * fifth & _ALL
        h = ((h << 11 | h >> 53) & _ALL) * first & _ALL
    h = (h ^ h >> 33) * second & _ALL
    h = (h ^ h >> 29) * third & _ALL
    return h ^ h >> 32


def planes_of(h: int) -> tuple[int, ...]:
    """Return the numbers of the eight planes of a row that decide about a hash."""
    return tuple([32 * word + ((h * salt & 0xFFFFFFFF) >> 27) for word, salt in enumerate(SALTS)])


def and_row(row: Buffer, planes: tuple[int, ...], num_units: int, among: int) -> int:
    """Return which of some units have their bit in all of these planes of a row without padding.

    Units are the bits of a number. For a short row, whole numbers of Python are quicker than arrays.
    """
    size_bytes = (num_units + 14) // 8  # from any bit of a byte on
    for plane in planes:
        start = plane * num_units
        at = start >> 3
        among &= int.from_bytes(row[at : at + size_bytes], "little") >> (start & 7)
    return among


def and_wide(planes: Sequence[HashArray]) -> HashArray:
    """Return the units that have their bit in all of these planes, as bits of 64-bit words."""
    first, second, *others = planes
    found: HashArray = first & second
    for plane in others:
        np.bitwise_and(found, plane, out=found)
    return found


def units_of(words: HashArray) -> OffsetArray:
    """Return the numbers of the bits that are set in some 64-bit words. Looks only at words that are not zero."""
    used = np.flatnonzero(words)
    bits = np.flatnonzero(np.unpackbits(words[used].view(np.uint8), bitorder="little"))
    units: OffsetArray = 64 * used[bits >> 6] + (bits & 63)
    return units
