"""Further layers of filters, which make low rates cheap: filters over mixed hashes.

``mix`` turns a hash into another one that is independent for the purposes of a filter. So the rates of layers multiply:
the second layer holds hashes that were mixed once, the third those that were mixed twice. The function is part of the
index format and never changes:

    h = h + 0x9E3779B97F4A7C15
    h = (h ^ (h >> 30)) * 0xBF58476D1CE4E5B9
    h = (h ^ (h >> 27)) * 0x94D049BB133111EB
    h =  h ^ (h >> 31)                                      (all modulo 2^64; the SplitMix64 step)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from lakebloom.sbbf.kernels import HashArray

_NUMBERS = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
_STEP, _FIRST, _SECOND = map(np.uint64, _NUMBERS)
_ALL = 2**64 - 1


def mix(hashes: HashArray) -> HashArray:
    """Return the hashes of the same values in the next layer.

    >>> mix(np.array([0], dtype=np.uint64)).tolist()
    [16294208416658607535]
    """
    h = hashes + _STEP
    h = (h ^ (h >> np.uint64(30))) * _FIRST
    h = (h ^ (h >> np.uint64(27))) * _SECOND
    mixed: HashArray = h ^ (h >> np.uint64(31))
    return mixed


def mix_one(h: int) -> int:
    """Return the same for one hash.

    >>> mix_one(0)
    16294208416658607535
    """
    step, first, second = _NUMBERS
    h = h + step & _ALL
    h = (h ^ h >> 30) * first & _ALL
    h = (h ^ h >> 27) * second & _ALL
    return h ^ h >> 31


def in_layer(hashes: HashArray, layer: int) -> HashArray:
    """Return the hashes of values in a layer; those of the first are the hashes themselves."""
    for _ in range(layer):
        hashes = mix(hashes)
    return hashes
