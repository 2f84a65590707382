"""An obvious Split Block Bloom Filter in plain Python, written from the Parquet specification alone.

It shares no code with lakebloom; the ``xxhash`` package hashes for it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

import xxhash

SALT = (0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31)


class ReferenceFilter:
    def __init__(self, num_blocks: int) -> None:
        self.blocks = [[0] * 8 for _ in range(num_blocks)]

    def _place(self, value: bytes) -> tuple[list[int], list[int]]:
        h = xxhash.xxh64_intdigest(value)
        high, low = h >> 32, h & 0xFFFFFFFF
        block = self.blocks[(high * len(self.blocks)) >> 32]
        return block, [(low * salt & 0xFFFFFFFF) >> 27 for salt in SALT]

    def insert(self, value: bytes) -> None:
        block, bits = self._place(value)
        for i, bit in enumerate(bits):
            block[i] |= 1 << bit

    def contains(self, value: bytes) -> bool:
        block, bits = self._place(value)
        return all(block[i] >> bit & 1 for i, bit in enumerate(bits))

    def to_bytes(self) -> bytes:
        return b"".join(struct.pack("<8I", *block) for block in self.blocks)

    @classmethod
    def of(cls, num_blocks: int, values: Iterable[bytes]) -> ReferenceFilter:
        made = cls(num_blocks)
        for value in values:
            made.insert(value)
        return made
