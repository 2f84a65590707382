"""How tiles are asked for values: one row of each tile and value, layer by layer, as little work as possible."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from lakebloom.sbbf.blocks import SALTS
from lakebloom.sbbf.kernels import choose, portable
from lakebloom.sbbf.layers import mix, mix_one

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakebloom.sbbf.kernels import BoolArray, HashArray
    from lakebloom.store.tiles import TileReader

    Layers: TypeAlias = Sequence[TileReader]
    IntArray: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]

__all__ = ["SINGLE_HASHES", "which_hold", "which_hold_any", "which_hold_each"]

SINGLE_HASHES = 2
"""Up to here each hash is looked up by itself."""
_FEW_HASHES = 64
"""Up to here numpy is as quick as compiled code that has to be loaded first."""
_PROBE_BYTES = 16 << 20
"""How much of a tile is held at once while many values are looked up."""


def which_hold_any(layers: Layers, hashes: HashArray) -> BoolArray:
    """Tell for each unit of a tile whether it may hold one of these values."""
    hit: BoolArray = np.zeros(layers[0].tile.num_units, dtype=np.bool_)
    if len(hashes) <= SINGLE_HASHES:
        for h in hashes.tolist():
            hit[which_hold([layers], h)] = True
        return hit
    step = max(1, _PROBE_BYTES // (32 * len(hit)))
    for start in range(0, len(hashes), step):
        hit |= _several(layers, hashes[start : start + step])
        if hit.all():
            break
    return hit


def which_hold(tiles: Sequence[Layers], h: int) -> IntArray:
    """Return the units that may hold a value, numbered through all of these tiles, which have filters of one size.

    What is the same for each question is made once: a question takes a few dozen calls, and each of them counts.
    """
    passed: IntArray | None = None
    for number in range(len(tiles[0])):
        mixed, masks = _single(h, number)
        block = (mixed >> 32) * tiles[0][number].tile.num_blocks >> 32
        rows = [layers[number].row(block) for layers in tiles]
        blocks = rows[0] if len(rows) == 1 else np.concatenate(rows)
        for i, mask in enumerate(masks):  # each quarter of a block leaves few units to the next one
            passed = (
                np.flatnonzero(blocks[:, i] & mask == mask)
                if passed is None
                else passed[blocks[passed, i] & mask == mask]
            )
        assert passed is not None
        if not len(passed):
            break  # before the next row is read: on an object store that is a request
    assert passed is not None
    return passed


@lru_cache(maxsize=1024)
def _single(h: int, layer: int) -> tuple[int, tuple[np.uint64, ...]]:
    """Return the hash under which a layer holds a value, and the bits that it sets, as four numbers.

    In Python's own numbers, which for a single value is far quicker than with arrays of one.
    """
    mixed = h if layer == 0 else mix_one(h)
    bits = [((mixed * salt & 0xFFFFFFFF) >> 27) for salt in SALTS]
    return mixed, tuple(np.uint64(1 << low | 1 << 32 + high) for low, high in zip(bits[::2], bits[1::2], strict=True))


def _several(layers: Layers, hashes: HashArray) -> BoolArray:
    passed = np.ones((len(hashes), layers[0].tile.num_units), dtype=np.bool_)
    # To numpy, a hash in a tile costs about as much as hashing 32 values, and 16 units as much as one more.
    kernels = choose(0 if len(hashes) <= _FEW_HASHES else len(hashes) * (32 + passed.shape[1] // 16))
    for number, layer in enumerate(layers):
        if number > 0:
            # Only hashes that some unit let through are asked of the next layer, most often none.
            some = passed.any(axis=1)
            hashes, passed = mix(hashes[some]), passed[some]
        if len(hashes):
            words, rows = layer.rows(portable.block_numbers(hashes, layer.tile.num_blocks))
            kernels.check_tile(words, rows, hashes, passed)
    hit: BoolArray = np.any(passed, axis=0)
    return hit


def which_hold_each(layers: Layers, hashes: HashArray, slots: IntArray) -> BoolArray:
    """Tell for each hash and each of these units of a tile, [num_hashes, len(slots)], whether it may hold it."""
    passed: BoolArray = np.ones((len(hashes), len(slots)), dtype=np.bool_)
    for number, layer in enumerate(layers):
        mixed = hashes if number == 0 else mix(hashes)
        words, rows = layer.rows(portable.block_numbers(mixed, layer.tile.num_blocks))
        wanted = portable.masks(mixed)
        for i, slot in enumerate(slots.tolist()):
            passed[:, i] &= ((words[rows, slot] & wanted) == wanted).all(axis=1)
    return passed
