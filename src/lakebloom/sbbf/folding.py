"""Folds a filter to a smaller one, exactly.

A value's block is floor(high * z / 2^32), and floor(floor(high * z / 2^32) / d) = floor(high * (z / d) / 2^32) for any
divisor d of z. So the OR of d adjacent blocks is, bit for bit, the block that the same values fill in a filter of
z / d blocks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lakebloom.errors import FilterMismatchError
from lakebloom.sbbf import estimates, sizing
from lakebloom.sbbf.blocks import WORDS_PER_BLOCK

if TYPE_CHECKING:
    from lakebloom.sbbf.kernels import WordArray


def fold(words: WordArray, num_blocks: int) -> WordArray:
    """Return the filter of the same values with ``num_blocks`` blocks. Raises FilterMismatchError for no divisor."""
    if num_blocks < 1 or len(words) % num_blocks:
        raise FilterMismatchError(
            f"a filter of {len(words)} blocks can be folded only to a divisor of {len(words)}",
            found=f"{num_blocks} blocks",
            hint="use fold_to(fpp) to get the smallest size that keeps a rate",
        )
    groups = words.reshape(num_blocks, len(words) // num_blocks, WORDS_PER_BLOCK)
    folded: WordArray = np.bitwise_or.reduce(groups, axis=1)
    return folded


def fold_to(words: WordArray, fpp: float) -> WordArray:
    """Return the smallest folded filter whose rate, estimated from its bits, is at most ``fpp``.

    A filter that already exceeds the rate is returned as it is.
    """
    sizes = divisors(len(words))
    size = _likely_size(words, sizes, fpp)
    smallest: WordArray | None = None
    while True:
        folded = fold(words, size)
        if estimates.fpp(folded) <= fpp:
            smallest = folded
            sizes = [other for other in sizes if other < size]
        else:
            # Folding only adds bits, so every fold of this one exceeds the rate too.
            sizes = [other for other in sizes if size % other]
        if not sizes:
            return words.copy() if smallest is None else smallest
        # Go up until one keeps the rate, then down. The largest remaining size excludes the most if it fails.
        size = sizes[-1] if smallest is not None else min(other for other in sizes if other > size)


def _likely_size(words: WordArray, sizes: list[int], fpp: float) -> int:
    """Return the size to try first: the smallest that keeps the rate on average for this many values."""
    held = estimates.ndv(words)
    return next((size for size in sizes if sizing.rate(held / size) <= fpp), sizes[-1])


def divisors(number: int) -> list[int]:
    """Return the divisors of a number, smallest first.

    >>> divisors(12)
    [1, 2, 3, 4, 6, 12]
    """
    small = [d for d in range(1, int(number**0.5) + 1) if number % d == 0]
    return small + [number // d for d in reversed(small) if d * d != number]
