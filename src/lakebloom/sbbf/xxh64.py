"""XXH64 with seed 0, in plain Python, for one value at a time.

It needs no compiled code, so a single probe costs microseconds and loads nothing. Bulk hashing is in ``kernels``.
"""

from __future__ import annotations

PRIMES = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)

_P1, _P2, _P3, _P4, _P5 = PRIMES
_MASK = 0xFFFFFFFFFFFFFFFF


def _rotate(x: int, bits: int) -> int:
    return ((x << bits) | (x >> (64 - bits))) & _MASK


def _round(accumulator: int, lane: int) -> int:
    return (_rotate((accumulator + lane * _P2) & _MASK, 31) * _P1) & _MASK


def _word(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "little")


def xxh64(data: bytes) -> int:
    """Return the XXH64 of some bytes, seed 0.

    >>> xxh64(b"")
    17241709254077376921
    """
    size, at = len(data), 0
    if size >= 32:
        lanes = [(_P1 + _P2) & _MASK, _P2, 0, -_P1 & _MASK]
        while at + 32 <= size:
            lanes = [_round(lane, _word(data, at + 8 * i, 8)) for i, lane in enumerate(lanes)]
            at += 32
        h = sum(_rotate(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)) & _MASK
        for lane in lanes:
            h = ((h ^ _round(0, lane)) * _P1 + _P4) & _MASK
    else:
        h = _P5
    h = (h + size) & _MASK
    while at + 8 <= size:
        h = (_rotate(h ^ _round(0, _word(data, at, 8)), 27) * _P1 + _P4) & _MASK
        at += 8
    if at + 4 <= size:
        h = (_rotate(h ^ (_word(data, at, 4) * _P1) & _MASK, 23) * _P2 + _P3) & _MASK
        at += 4
    for byte in data[at:]:
        h = (_rotate(h ^ (byte * _P5) & _MASK, 11) * _P1) & _MASK
    h = ((h ^ (h >> 33)) * _P2) & _MASK
    h = ((h ^ (h >> 29)) * _P3) & _MASK
    return h ^ (h >> 32)
