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
from lakebloom.store.tiles import rows_of
from lakebloom.tuning import CACHED_ANSWERS, FEW_HASHES, PROBED_BYTES, PROBED_HASHES, SINGLE_HASHES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lakebloom.sbbf.kernels import BoolArray, HashArray
    from lakebloom.sbbf.kernels.choose import Kernels
    from lakebloom.store.tiles import TileReader

    Layers: TypeAlias = Sequence[TileReader]
    IntArray: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]

__all__ = [
    "units_that_hold_any",
    "which_hold",
    "which_hold_any",
    "which_hold_by_tile",
    "which_hold_each",
    "who_holds_what",
]

_NONE = np.empty(0, dtype=np.int64)
_READ_AT_ONCE = 2
"""All rows of the largest narrow tile that a build writes are twice as much as a window."""


def which_hold(layers: Layers, h: int) -> IntArray:
    """Return the units of a tile that may contain a value."""
    return which_hold_by_tile([layers], h)[0]


def which_hold_by_tile(tiles: Sequence[Layers], h: int) -> list[IntArray]:
    """Return for each of some tiles of one storage the units that may contain a value.

    This is the hot path of a lookup. Rows of narrow tiles are read all at once, layer by layer.
    """
    found = [_wide(layers, h) if layers[0].layout.is_wide else _NONE for layers in tiles]
    left = {
        number: (1 << layers[0].tile.num_units) - 1
        for number, layers in enumerate(tiles)
        if not layers[0].layout.is_wide
    }
    depth, seen = 0, set[str]()
    while left:
        mixed, planes = _single(h, depth)
        layer_of = [(number, tiles[number][depth]) for number in left]
        rows = rows_of([(layer, (mixed >> 32) * layer.tile.num_blocks >> 32) for _, layer in layer_of], seen)
        depth += 1
        for (number, layer), row in zip(layer_of, rows, strict=True):
            num_units = layer.tile.num_units
            among = and_row(row, planes, num_units, left[number])
            if among and depth < len(tiles[number]):
                left[number] = among  # only here the next row, which is a request on an object store
                continue
            del left[number]
            if among:
                found[number] = _numbers(among, num_units)
    return found


def _numbers(units: int, num_units: int) -> IntArray:
    packed = np.frombuffer(units.to_bytes(num_units // 8 + 1, "little"), dtype=np.uint8)
    return np.flatnonzero(np.unpackbits(packed, bitorder="little"))


def _wide(layers: Layers, h: int) -> IntArray:
    left: HashArray | None = None
    used = _NONE  # the words in which a unit is left
    for number, layer in enumerate(layers):
        mixed, numbers = _single(h, number)
        planes = layer.planes((mixed >> 32) * layer.tile.num_blocks >> 32, numbers)
        if left is None:
            found = and_wide(planes)
            used = np.flatnonzero(found != 0)  # of truths, numpy finds them several times as fast
            left = found[used]
        else:
            for plane in planes:
                left &= plane.take(used)
                still = left != 0
                if 2 * np.count_nonzero(still) <= len(used):  # each word of a plane is far from the one before
                    used, left = used[still], left[still]
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
    step = min(max(1, PROBED_BYTES // everyone.nbytes), PROBED_HASHES)
    for start in range(0, len(hashes), step):
        some = hashes[start : start + step]
        if _hit_in_memory(layers, some, everyone, hit):
            if np.array_equal(hit, everyone):
                break
            continue
        passed = np.tile(everyone & ~hit, (len(some), 1))  # a unit that was hit is not probed again
        _and_layers(layers, some, passed)
        hit |= np.bitwise_or.reduce(passed, axis=0)
        if np.array_equal(hit, everyone):
            break
    return hit


def _hit_in_memory(layers: Layers, hashes: HashArray, everyone: HashArray, hit: HashArray) -> bool:
    """Add the units that may hold one of these values, if all that is needed of all layers is in memory then.

    False if it does not fit, or where a file is not local: there a layer is read for values that passed those before.
    """
    layout, of_layers = layers[0].layout, []
    mixed: HashArray = np.empty((len(layers), len(hashes)), dtype=np.uint64)
    for number, layer in enumerate(layers):
        mixed[number] = in_layer(hashes, number)
        if len(layer.parts) > 1:
            return False
        kept = layer.parts[0].keep(_pieces(layer, mixed[number], 0), _READ_AT_ONCE * PROBED_BYTES)
        if kept is None:
            return False
        of_layers.append(kept)
    places = np.stack([places for _, places in of_layers])
    plane_bits = 0 if layout.is_wide else layout.plane_bits
    memories = [memory for memory, _ in of_layers]
    _kernels_for(layers, hashes).or_hits(memories, places, 8 * layout.piece_bytes, plane_bits, mixed, everyone, hit)
    return True


def _pieces(layer: TileReader, hashes: HashArray, first_row: int) -> IntArray:
    """Return the pieces that decide about each hash, [n, 1] of a narrow tile and [n, 8] of a wide one."""
    rows = (portable.block_numbers(hashes, layer.tile.num_blocks) - first_row)[:, None]
    if not layer.layout.is_wide:
        return rows
    pieces: IntArray = rows * layer.layout.pieces_per_row + portable.plane_numbers(hashes)
    return pieces


def _kernels_for(layers: Layers, hashes: HashArray) -> Kernels:
    # In numpy, probing one hash in a tile costs about as much as hashing 32 values, plus one for every 16 units.
    weight = 32 + layers[0].tile.num_units // 16
    return choose_to_probe(0 if len(hashes) <= FEW_HASHES else weight * len(hashes))


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
    kernels = _kernels_for(layers, hashes)
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
            memory, places = part.many(_pieces(layer, hashes[some], part.first_row))
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
