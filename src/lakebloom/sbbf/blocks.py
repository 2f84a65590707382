"""The block arithmetic that the Parquet specification fixes, as constants.

hash (64 bits)  =  [ high 32: which block | low 32: the key ]
block           =  (high * num_blocks) >> 32
bit in word i   =  ((key * SALTS[i]) mod 2^32) >> 27          one bit in each of the block's eight words
"""

from __future__ import annotations

SALTS = (0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31)
"""Odd multipliers, one for each word."""

WORDS_PER_BLOCK = 8
BYTES_PER_BLOCK = 32
BITS_PER_BLOCK = 256
MAX_BLOCKS = 2**31 - 1
