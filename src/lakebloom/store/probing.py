"""Probes of tiles: eight planes of one row for each value and layer.

A later layer is read only where the earlier ones pass. A single value is probed with Python's own numbers (narrow
tiles) or numpy (wide ones). Many values are sorted by their row, so that a row is read once; compiled code ANDs.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from lakebloom.sbbf.kernels import portable
from lakebloom.sbbf.kernels.choose import choose_to_probe
from lakebloom.sbbf.kernels.single import and_row, and_wide, planes_of, units_of
from lakebloom.sbbf.layers import in_layer, mix_one
from lakebloom.tuning import CACHED_ANSWERS, FEW_HASHES, PROBED_BYTES, SINGLE_HASHES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lakebloom.sbbf.kernels import BoolArray, HashArray
    from lakebloom.sbbf.kernels.choose import Kernels
    from lakebloom.store.tiles import TileReader

    Layers: TypeAlias = Sequence[TileReader]
    IntArray: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]

__all__ = ["units_that_hold_any", "which_hold", "which_hold_any", "which_hold_each", "who_holds_what"]

_NONE = np.empty(0, dtype=np.int64)


def which_hold(layers: Layers, h: int) -> IntArray:
    """Return the units of a tile that may contain a value.

    This is the hot path of a lookup: a probe takes a few dozen calls, and each of them counts.
    """
    return _wide(layers, h) if layers[0].layout.is_wide else _narrow(layers, h)


def _narrow(layers: Layers, h: int) -> IntArray:
    num_units = layers[0].tile.num_units
    left = (1 << num_units) - 1
    for number, layer in enumerate(layers):
        mixed, planes = _single(h, number)
        left = and_row(layer.row((mixed >> 32) * layer.tile.num_blocks >> 32), planes, num_units, left)
        if not left:
            return _NONE  # the next row would cost a request on an object store
    packed = np.frombuffer(left.to_bytes(num_units // 8 + 1, "little"), dtype=np.uint8)
    return np.flatnonzero(np.unpackbits(packed, bitorder="little"))


def _wide(layers: Layers, h: int) -> IntArray:
    left: HashArray | None = None
    used = _NONE  # the words in which a unit is left
    for number, layer in enumerate(layers):
        mixed, numbers = _single(h, number)
        planes = layer.planes((mixed >> 32) * layer.tile.num_blocks >> 32, numbers)
        if left is None:
            found = and_wide(planes)
            used = np.flatnonzero(found)
            left = found[used]
        else:
            for plane in planes:
                left &= plane[used]
            used, left = used[left != 0], left[left != 0]
        if not len(used):
            return _NONE
    assert left is not None
    bits = units_of(left)
    units: IntArray = 64 * used[bits >> 6] + (bits & 63)
    return units


@lru_cache(maxsize=CACHED_ANSWERS)
def _single(h: int, layer: int) -> tuple[int, tuple[int, ...]]:
    """Return the hash of a value in a layer, and its eight planes."""
    for _ in range(layer):
        h = mix_one(h)
    return h, planes_of(h)


def which_hold_any(layers: Layers, hashes: HashArray) -> BoolArray:
    """Tell for each unit of a tile whether it may contain one of these values."""
    num_units = layers[0].tile.num_units
    if len(hashes) <= SINGLE_HASHES:
        answers: BoolArray = np.zeros(num_units, dtype=np.bool_)
        for h in hashes.tolist():
            answers[which_hold(layers, h)] = True
        return answers
    hit = _hit(layers, hashes)
    return np.unpackbits(hit.view(np.uint8), bitorder="little", count=num_units).view(np.bool_)


def units_that_hold_any(layers: Layers, hashes: HashArray) -> IntArray:
    """Return the units of a tile that may contain one of these values, ascending."""
    if len(hashes) == 1:
        return which_hold(layers, int(hashes[0]))
    return units_of(_hit(layers, hashes))


def _hit(layers: Layers, hashes: HashArray) -> HashArray:
    """Return the units that may contain one of these values, as bits of 64-bit words."""
    everyone = _all_units(layers[0].tile.num_units)
    hit = np.zeros_like(everyone)
    step = max(1, PROBED_BYTES // everyone.nbytes)
    for start in range(0, len(hashes), step):
        some = hashes[start : start + step]
        passed = np.tile(everyone & ~hit, (len(some), 1))  # a unit that was hit is not probed again
        _and_layers(layers, some, passed)
        hit |= np.bitwise_or.reduce(passed, axis=0)
        if np.array_equal(hit, everyone):
            break
    return hit


def which_hold_each(layers: Layers, hashes: HashArray, slots: IntArray) -> BoolArray:
    """Tell for each hash and each of these units of a tile, [num_hashes, len(slots)], whether the unit may hold it."""
    everyone = _all_units(layers[0].tile.num_units)
    answers: BoolArray = np.zeros((len(hashes), len(slots)), dtype=np.bool_)
    step = max(1, PROBED_BYTES // (8 * everyone.nbytes))  # a bit becomes a byte below
    for start in range(0, len(hashes), step):
        some = hashes[start : start + step]
        passed = np.tile(everyone, (len(some), 1))
        _and_layers(layers, some, passed)
        words, bits = passed[:, slots >> 6], (slots & 63).astype(np.uint64)
        answers[start : start + step] = (words >> bits) & np.uint64(1)
    return answers


def who_holds_what(layers: Layers, hashes: HashArray, slots: IntArray, most: int) -> tuple[IntArray, IntArray] | None:
    """Return the pairs of a hash and one of these ascending units that may hold it, by their places in the arrays.

    None if there are more than about so many pairs, which are in memory together.
    """
    wanted = _all_units(layers[0].tile.num_units, slots)
    step = max(1, PROBED_BYTES // wanted.nbytes)
    found: list[tuple[IntArray, IntArray]] = [(_NONE, _NONE)]
    for start in range(0, len(hashes), step):
        some = hashes[start : start + step]
        passed = np.tile(wanted, (len(some), 1))
        _and_layers(layers, some, passed)
        rows, words = np.nonzero(passed)
        if len(rows) + sum(len(pair[0]) for pair in found) > most:
            return None
        bits = np.flatnonzero(np.unpackbits(passed[rows, words].view(np.uint8), bitorder="little"))
        of_word = bits >> 6
        found.append((start + rows[of_word], 64 * words[of_word] + (bits & 63)))
    numbers, units = (np.concatenate(each) for each in zip(*found, strict=True))
    return numbers, np.searchsorted(slots, units)


def _all_units(num_units: int, slots: IntArray | None = None) -> HashArray:
    """Return the bits of all units, or of some of them."""
    bits = np.zeros(-(-num_units // 64) * 64, dtype=np.uint8)
    bits[slice(num_units) if slots is None else slots] = 1
    return np.packbits(bits, bitorder="little").view("<u8")


def _and_layers(layers: Layers, hashes: HashArray, passed: HashArray) -> None:
    """Clear the bits of units, [num_hashes, words], that cannot hold a hash."""
    # In numpy, probing one hash in a tile costs about as much as hashing 32 values, plus one for every 16 units.
    weight = 32 + layers[0].tile.num_units // 16
    kernels = choose_to_probe(0 if len(hashes) <= FEW_HASHES else weight * len(hashes))
    left = np.arange(len(hashes))
    for number, layer in enumerate(layers):
        if number > 0:
            left = left[passed[left].any(axis=1)]  # the others need no further layer
        mixed = in_layer(hashes[left], number)
        order = np.argsort(mixed)  # by row, because a larger hash is in no earlier one
        _and_tile(layer, kernels, mixed[order], left[order], passed)


def _and_tile(layer: TileReader, kernels: Kernels, hashes: HashArray, order: IntArray, passed: HashArray) -> None:
    """AND the planes of ascending hashes, which are those of rows ``order`` of ``passed``."""
    layout, is_first = layer.layout, layer.tile.layer == 0
    blocks = portable.block_numbers(hashes, layer.tile.num_blocks)
    for part in layer.parts:
        low, high = np.searchsorted(blocks, (part.first_row, part.first_row + part.num_rows))
        for start, end in _windows(blocks[low:high], layout.piece_bytes, is_wide=layout.is_wide):
            some = slice(low + start, low + end)
            pieces = (blocks[some] - part.first_row)[:, None]
            if layout.is_wide:
                pieces = pieces * layout.pieces_per_row + portable.plane_numbers(hashes[some])
            memory, places = part.many(pieces)
            plane_bits = 0 if layout.is_wide else layout.plane_bits
            bits = 8 * layout.piece_bytes
            kernels.and_planes(memory, places, bits, plane_bits, hashes[some], order[some], passed, is_first=is_first)


def _windows(blocks: IntArray, piece_bytes: int, *, is_wide: bool) -> Iterator[tuple[int, int]]:
    """Divide ascending rows so that the pieces of each division take a bounded amount of memory."""
    most = max(1, PROBED_BYTES // piece_bytes)
    if is_wide or len(blocks) <= most:
        step = max(1, most // 8) if is_wide else most
        yield from ((start, min(start + step, len(blocks))) for start in range(0, len(blocks), step))
        return
    seen = np.cumsum(np.diff(blocks, prepend=-1) != 0) - 1
    cuts = np.flatnonzero(np.diff(seen // most)) + 1
    yield from pairwise([0, *cuts.tolist(), len(blocks)])
