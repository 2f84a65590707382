"""One value: hashed with Python's own numbers, far quicker than with arrays of one, and looked for in many blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lakebloom.sbbf.blocks import SALTS
from lakebloom.sbbf.kernels.xxh64 import PRIMES

if TYPE_CHECKING:
    from lakebloom.sbbf.kernels import HashArray, OffsetArray

__all__ = ["hash_one", "mask_of", "which_contain"]

_ALL = 2**64 - 1


def hash_one(value: bytes) -> int:
    """Return the XXH64 of a value's bytes, seed 0."""
    first, second, third, fourth, fifth = PRIMES
    size, at = len(value), 0
    if size >= 32:
        lanes = [first + second, second, 0, -first]
        while at + 32 <= size:
            for i in range(4):
                lane = lanes[i] + int.from_bytes(value[at : at + 8], "little") * second & _ALL
                lanes[i] = ((lane << 31 | lane >> 33) & _ALL) * first & _ALL
                at += 8
        h = sum((lane << bits | lane >> 64 - bits) & _ALL for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True))
        for lane in lanes:
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


def mask_of(h: int) -> tuple[np.uint64, ...]:
    """Return the bits that a hash sets in its block, as four numbers."""
    bits = [(h * salt & 0xFFFFFFFF) >> 27 for salt in SALTS]
    return tuple(np.uint64(1 << low | 1 << 32 + high) for low, high in zip(bits[::2], bits[1::2], strict=True))


def which_contain(blocks: HashArray, mask: tuple[np.uint64, ...], among: OffsetArray | None = None) -> OffsetArray:
    """Return the numbers of the [count, 4] blocks, among these or all of them, that have all bits of a mask."""
    passed = among
    for i, word in enumerate(mask):  # few blocks pass each quarter
        if passed is None:
            passed = np.flatnonzero(blocks[:, i] & word == word)
        else:
            passed = passed[blocks[passed, i] & word == word]
    assert passed is not None
    return passed
