"""Estimates from the bits of a filter: its false-positive rate and its number of distinct values."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from lakebloom.sbbf.blocks import BITS_PER_BLOCK
from lakebloom.tuning import BLOCKS_AT_ONCE

if TYPE_CHECKING:
    from typing import Any

    from lakebloom.sbbf.kernels import WordArray

    Shares = np.ndarray[Any, np.dtype[np.float64]]

_BITS_PER_WORD = 32


def fpp(words: WordArray) -> float:
    """Return the probability that a probe of an absent value passes.

    A probe tests one block, and one bit in each of its eight words. So the rate of a block is the product of its
    words' shares of set bits, and the rate of the filter is the mean over blocks. (The eighth power of the filter's
    overall share, a common shortcut, is too low, because blocks are not equally full.)
    """
    total = 0.0
    for start in range(0, len(words), BLOCKS_AT_ONCE):
        shares = np.bitwise_count(words[start : start + BLOCKS_AT_ONCE]) / _BITS_PER_WORD
        total += float(shares.prod(axis=1).sum())
    return total / len(words)


def ndv(words: WordArray) -> float:
    """Return the number of distinct values that would set this many bits; infinity if all are set.

    A value leaves a given bit unset with probability 1 - 1/(32 z), because it sets one of 32 bits of this word, in one
    of z blocks.
    """
    set_bits = int(np.bitwise_count(words).sum(dtype=np.int64))
    unset = 1 - set_bits / (len(words) * BITS_PER_BLOCK)
    if unset <= 0:
        return math.inf
    return abs(math.log(unset) / math.log1p(-1 / (_BITS_PER_WORD * len(words))))


def fpps(words: WordArray) -> Shares:
    """Return ``fpp`` of each of many filters, [num_blocks, num_filters, 8]."""
    rates: Shares = (np.bitwise_count(words) / _BITS_PER_WORD).prod(axis=2).mean(axis=0)
    return rates


def fills(words: WordArray) -> Shares:
    """Return the share of set bits in each of many filters, [num_blocks, num_filters, 8]."""
    shares: Shares = np.bitwise_count(words).sum(axis=(0, 2), dtype=np.int64) / (len(words) * BITS_PER_BLOCK)
    return shares
