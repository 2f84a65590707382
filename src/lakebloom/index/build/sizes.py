"""The sizes of a segment's filters, computed from the hashes.

All units of a tile have the same number of blocks. Each unit has an ideal size, the smallest for its rate and
distinct values. Units with similar sizes share the largest of them, so that there are few tiles and little waste. Sizes
are on a grid, because filters of different segments can be merged into one tile only if they have equal sizes.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from lakebloom.sbbf import sizing
from lakebloom.tuning import CACHED_ANSWERS, COUNTING_FACTOR, SIZE_GRID_BITS, TILE_WASTE, UNIQUE_ENOUGH

if TYPE_CHECKING:
    from lakebloom.sbbf.kernels import HashArray

_LEAST_EXACT_RATE = 1e-9
"""Below this rate, rounding errors of the sum of powers are too large."""


def distinct(*parts: HashArray) -> int:
    """Return the estimated number of distinct hashes in some arrays, by linear counting; rarely too low.

    Eight cells for each value keep the error below half a percent, at a nanosecond or two a value. Two standard
    deviations (Whang, Vander-Zanden, Taylor) are added.
    """
    count = sum(map(len, parts))
    if count < 2:
        return count
    bits = (count * COUNTING_FACTOR - 1).bit_length()
    cells = np.zeros(1 << bits, dtype=np.bool_)
    for hashes in parts:
        cells[(hashes >> np.uint64(64 - bits)).astype(np.int64)] = True
    used = int(np.count_nonzero(cells))
    estimate = -len(cells) * math.log1p(-used / len(cells))
    if estimate > UNIQUE_ENOUGH * count:
        return count
    load = estimate / len(cells)
    deviation = math.sqrt(len(cells) * (math.expm1(load) - load))
    return min(count, math.ceil(estimate + 2 * deviation))


@lru_cache(maxsize=CACHED_ANSWERS)  # files of a table often have the same number of rows
def blocks_for(ndv: int, fpp: float) -> int:
    """Return the blocks of one layer of a unit's filter whose layers together keep ``fpp``.

    >>> blocks_for(25_000, 0.01), blocks_for(50, 0.01)  # for many values as sizing.num_blocks, for few less
    (1029, 2)
    """
    target = sizing.layer_fpps(fpp)[0]
    blocks = sizing.num_blocks(ndv, target)
    while blocks > 1 and _LEAST_EXACT_RATE < _rate(ndv, blocks - 1) <= target:
        blocks -= 1
    return blocks


def _rate(ndv: int, blocks: int) -> float:
    """Return the rate of a filter with exactly this many values.

    The number of values in a block is binomial. The Poisson distribution of ``sizing`` is its limit: with few blocks it
    is wider, and gives one block more. The mean of (1 - (31/32)^i)^8 is a sum of nine powers.
    """
    terms = ((-1) ** j * math.comb(8, j) * math.exp(ndv * math.log1p(((31 / 32) ** j - 1) / blocks)) for j in range(9))
    return math.fsum(terms)


def on_grid(blocks: int) -> int:
    """Return the next number with at most seven significant bits, less than a sixty-fourth larger.

    >>> on_grid(127), on_grid(1030), on_grid(1040)
    (127, 1040, 1040)
    """
    step = 1 << max(0, blocks.bit_length() - SIZE_GRID_BITS)
    return -(-blocks // step) * step


def classes(sizes: list[int]) -> list[tuple[int, list[int]]]:
    """Divide units into size classes: (blocks, numbers of the units). Each class wastes at most a tenth.

    >>> classes([100, 98, 7, 95, 7])
    [(100, [0, 1, 3]), (7, [2, 4])]
    """
    groups: list[tuple[int, list[int]]] = []
    needed = 0
    for unit in sorted(range(len(sizes)), key=lambda unit: (-sizes[unit], unit)):
        needed += sizes[unit]
        if groups:
            blocks, members = groups[-1]
            if blocks * (len(members) + 1) <= (1 + TILE_WASTE) * needed:
                members.append(unit)
                continue
        groups.append((sizes[unit], [unit]))
        needed = sizes[unit]
    return [(blocks, sorted(members)) for blocks, members in groups]
