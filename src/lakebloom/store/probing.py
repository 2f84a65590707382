"""Probes of tiles: one row for each value, tile and layer. A later layer is read only where the earlier ones pass."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from lakebloom.sbbf.kernels import portable
from lakebloom.sbbf.kernels.choose import choose
from lakebloom.sbbf.kernels.single import mask_of, which_contain
from lakebloom.sbbf.layers import mix, mix_one
from lakebloom.tuning import CACHED_ANSWERS, FEW_HASHES, PROBED_BYTES, SINGLE_HASHES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakebloom.sbbf.kernels import BoolArray, HashArray
    from lakebloom.store.tiles import TileReader

    Layers: TypeAlias = Sequence[TileReader]
    IntArray: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]

__all__ = ["which_hold", "which_hold_any", "which_hold_each"]


def which_hold_any(layers: Layers, hashes: HashArray) -> BoolArray:
    """Tell for each unit of a tile whether it may contain one of these values."""
    hit: BoolArray = np.zeros(layers[0].tile.num_units, dtype=np.bool_)
    if len(hashes) <= SINGLE_HASHES:
        for h in hashes.tolist():
            hit[which_hold([layers], h)] = True
        return hit
    step = max(1, PROBED_BYTES // (32 * len(hit)))
    for start in range(0, len(hashes), step):
        hit |= _several(layers, hashes[start : start + step])
        if hit.all():
            break
    return hit


def which_hold(tiles: Sequence[Layers], h: int) -> IntArray:
    """Return the units that may contain a value, numbered across all of these tiles. Their filters have equal sizes.

    This is the hot path of a lookup: a probe takes a few dozen calls, and each of them counts.
    """
    passed: IntArray | None = None
    for number in range(len(tiles[0])):
        mixed, mask = _single(h, number)
        block = (mixed >> 32) * tiles[0][number].tile.num_blocks >> 32
        rows = [layers[number].row(block) for layers in tiles]
        blocks = rows[0] if len(rows) == 1 else np.concatenate(rows)
        passed = which_contain(blocks, mask, passed)
        if not len(passed):
            break  # the next row would cost a request on an object store
    assert passed is not None
    return passed


@lru_cache(maxsize=CACHED_ANSWERS)
def _single(h: int, layer: int) -> tuple[int, tuple[np.uint64, ...]]:
    """Return the hash of a value in a layer, and its eight bits as four 64-bit masks."""
    mixed = h if layer == 0 else mix_one(h)
    return mixed, mask_of(mixed)


def _several(layers: Layers, hashes: HashArray) -> BoolArray:
    passed = np.ones((len(hashes), layers[0].tile.num_units), dtype=np.bool_)
    # In numpy, probing one hash in a tile costs about as much as hashing 32 values, plus one for every 16 units.
    kernels = choose(0 if len(hashes) <= FEW_HASHES else len(hashes) * (32 + passed.shape[1] // 16))
    for number, layer in enumerate(layers):
        if number > 0:
            # The next layer is probed only with hashes that passed in some unit, most often none.
            some = passed.any(axis=1)
            hashes, passed = mix(hashes[some]), passed[some]
        if len(hashes):
            words, rows = layer.rows(portable.block_numbers(hashes, layer.tile.num_blocks))
            kernels.check_tile(words, rows, hashes, passed)
    hit: BoolArray = np.any(passed, axis=0)
    return hit


def which_hold_each(layers: Layers, hashes: HashArray, slots: IntArray) -> BoolArray:
    """Tell for each hash and each of these units of a tile, [num_hashes, len(slots)], whether the unit may hold it."""
    passed: BoolArray = np.ones((len(hashes), len(slots)), dtype=np.bool_)
    for number, layer in enumerate(layers):
        mixed = hashes if number == 0 else mix(hashes)
        words, rows = layer.rows(portable.block_numbers(mixed, layer.tile.num_blocks))
        wanted = portable.masks(mixed)
        for i, slot in enumerate(slots.tolist()):
            passed[:, i] &= portable.contain(words[rows, slot], wanted)
    return passed
