"""How large the filters of a segment are: from the hashes themselves, without a guess.

Units of one tile share a number of blocks. Each unit has a size of its own, the smallest that keeps the rate for its
distinct values; units whose sizes are close enough share the largest of them, so that few tiles waste little. Sizes are
taken from a grid, because filters of different segments can be merged into one tile only if they are equally large.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from lakebloom.sbbf import sizing

if TYPE_CHECKING:
    from lakebloom.sbbf.kernels import HashArray

_MAX_WASTE = 0.10
"""How much larger than the sum of its units' own sizes a tile may be."""
_GRID_BITS = 7
_COUNTING_FACTOR = 8
_UNIQUE_ENOUGH = 0.98


def distinct(*parts: HashArray) -> int:
    """Return about how many different hashes some arrays have together, by linear counting; never fewer than it seems.

    Eight cells for each value keep the error below one percent, at a nanosecond or two a value.
    """
    count = sum(map(len, parts))
    if count < 2:
        return count
    bits = (count * _COUNTING_FACTOR - 1).bit_length()
    cells = np.zeros(1 << bits, dtype=np.bool_)
    for hashes in parts:
        cells[(hashes >> np.uint64(64 - bits)).astype(np.int64)] = True
    used = int(np.count_nonzero(cells))
    estimate = -len(cells) * math.log1p(-used / len(cells))
    return count if estimate > _UNIQUE_ENOUGH * count else min(count, math.ceil(1.005 * estimate) + 1)


@lru_cache(maxsize=1024)  # files of a table tend to have the same number of rows
def blocks_for(ndv: int, fpp: float) -> int:
    """Return the blocks of one layer of a unit's filter whose layers together keep ``fpp``."""
    return sizing.num_blocks(ndv, sizing.layer_fpps(fpp)[0])


def on_grid(blocks: int) -> int:
    """Return the next number with at most seven significant bits, less than a sixty-fourth larger.

    >>> on_grid(127), on_grid(1030), on_grid(1040)
    (127, 1040, 1040)
    """
    step = 1 << max(0, blocks.bit_length() - _GRID_BITS)
    return -(-blocks // step) * step


def classes(sizes: list[int]) -> list[tuple[int, list[int]]]:
    """Group units by size: (blocks, numbers of the units), each group wasting at most a tenth.

    >>> classes([100, 98, 7, 95, 7])
    [(100, [0, 1, 3]), (7, [2, 4])]
    """
    groups: list[tuple[int, list[int]]] = []
    needed = 0
    for unit in sorted(range(len(sizes)), key=lambda unit: (-sizes[unit], unit)):
        needed += sizes[unit]
        if groups:
            blocks, members = groups[-1]
            if blocks * (len(members) + 1) <= (1 + _MAX_WASTE) * needed:
                members.append(unit)
                continue
        groups.append((sizes[unit], [unit]))
        needed = sizes[unit]
    return [(blocks, sorted(members)) for blocks, members in groups]
