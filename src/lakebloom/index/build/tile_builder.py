"""Builds the tiles of a segment from hashes.

The hashes of a unit are kept until its end: only then is its number of distinct values known, and so the exact size of
its filter. Once there are many hashes over all columns, the finished units become filters and their hashes are
released. Filters of one size wait for each other, up to a limit, and become one tile: a probe reads a row of each tile.
So memory stays bounded for any number of files. If a single unit is too large for that, its longest columns become
filters sized by its rows, which are folded when the unit ends.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from lakebloom.index.build import sizes
from lakebloom.sbbf import sizing
from lakebloom.sbbf.blocks import BYTES_PER_BLOCK, WORDS_PER_BLOCK
from lakebloom.sbbf.filter import Sbbf
from lakebloom.sbbf.layers import in_layer
from lakebloom.tuning import PENDING_FILTER_BYTES, PENDING_HASHES, TILE_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakebloom.sbbf.kernels import HashArray, WordArray
    from lakebloom.store.segments import SegmentWriter

_Unit = TypeVar("_Unit")

_HASH_BYTES = 8


@dataclass(slots=True)
class _UnitHashes:
    """The values of one column in one unit, as hashes, or as filters once the hashes exceed the memory limit."""

    unit: int
    parts: list[HashArray] = field(default_factory=list)
    filters: list[Sbbf] | None = None
    imported: Sbbf | None = None
    """An imported filter; then there are no hashes."""

    @property
    def pending(self) -> int:
        return sum(map(len, self.parts)) + (0 if self.imported is None else self.imported.num_bytes // _HASH_BYTES)


@dataclass(slots=True)
class _Waiting:
    """Filters of one column and size that will be one tile."""

    units: list[int] = field(default_factory=list)
    parts: list[list[WordArray]] = field(default_factory=list)
    """For each time that units were added their layers, as [num_blocks, num_units, 8] words."""

    @property
    def size_bytes(self) -> int:
        return sum(layer.nbytes for layers in self.parts for layer in layers)

    def layers(self) -> Iterator[WordArray]:
        """Yield the layers of the tile, with the memory of one at a time."""
        for layers in zip(*self.parts, strict=True):
            yield layers[0] if len(layers) == 1 else np.concatenate(layers, axis=1)


class TileBuilder:
    """Collects hashes by unit and column and writes tiles."""

    def __init__(self, writer: SegmentWriter, num_columns: int, fpp: float, expected_items: int | None) -> None:
        self._writer = writer
        self._fpp = fpp
        rates = sizing.layer_fpps(fpp)
        self._num_layers = len(rates)
        self._fixed_blocks = 0 if expected_items is None else sizing.num_blocks(expected_items, rates[0])
        self._open: list[_UnitHashes | None] = [None] * num_columns
        self._closed: list[list[_UnitHashes]] = [[] for _ in range(num_columns)]
        self._waiting: dict[tuple[int, int], _Waiting] = {}
        """By column and number of blocks."""
        self.pending = 0
        """How many hashes are in memory now."""

    def begin(self, unit: int, column: int) -> None:
        """Start collecting a column of a unit. Discards one that was begun and not ended."""
        unfinished = self._open[column]
        if unfinished is not None:
            self.pending -= unfinished.pending
        self._open[column] = _UnitHashes(unit)

    def add(self, column: int, hashes: HashArray, rows_in_unit: int) -> None:
        """Add values to the current unit; it has at most ``rows_in_unit`` values."""
        current = self._open[column]
        assert current is not None
        if current.filters is None and self.pending + len(hashes) > PENDING_HASHES:
            self._make_filters()
            self._start_filters(len(hashes), rows_in_unit)
        if current.filters is None:
            current.parts.append(hashes)
            self.pending += len(hashes)
        else:
            _insert(current.filters, hashes)

    def take(self, column: int, filter: Sbbf) -> None:
        """Give the current unit an imported filter, which keeps its size and has one layer."""
        current = self._open[column]
        assert current is not None
        current.imported = filter
        self.pending += current.pending

    def _start_filters(self, coming: int, rows_in_unit: int) -> None:
        """Turn the longest columns of the current unit into filters, until there is room for more hashes."""
        blocks = self._fixed_blocks or _foldable(sizes.blocks_for(rows_in_unit, self._fpp))
        columns = [column for column in self._open if column is not None and column.filters is None]
        for column in sorted(columns, key=lambda column: column.pending, reverse=True):
            if self.pending + coming <= PENDING_HASHES:
                return
            column.filters = [Sbbf(blocks) for _ in range(self._num_layers)]
            for part in column.parts:
                _insert(column.filters, part)
            self.pending -= column.pending
            column.parts = []

    def end(self, column: int) -> None:
        """Close the column's unit. Makes filters if there are many hashes."""
        current = self._open[column]
        assert current is not None
        self._closed[column].append(current)
        self._open[column] = None
        if self.pending > PENDING_HASHES or current.filters is not None:
            self._make_filters()

    def flush(self) -> None:
        """Write the tiles of all closed units."""
        self._make_filters()
        for column, blocks in sorted(self._waiting):
            self._write_waiting(column, blocks)

    def _make_filters(self) -> None:
        """Release the hashes of all closed units."""
        for column, units in enumerate(self._closed):
            self._write(column, units)
            self.pending -= sum(unit.pending for unit in units)
            self._closed[column] = []

    def _write(self, column: int, units: list[_UnitHashes]) -> None:
        for unit in units:
            if unit.filters is not None:
                self._writer.add_tile(column, [unit.unit], [f.words[:, None] for f in self._folded(unit.filters)])
        self._write_imported(column, [(unit.unit, unit.imported) for unit in units if unit.imported is not None])
        hashed = [unit for unit in units if unit.filters is None and unit.imported is None]
        needed = [self._fixed_blocks or self._blocks_for(unit.parts) for unit in hashed]
        for blocks, group in sizes.classes(needed):
            for chosen in _tiles_of([hashed[i] for i in group], blocks):
                layers = self._layers(blocks, [unit.parts for unit in chosen])
                self._wait(column, blocks, [unit.unit for unit in chosen], layers)

    def _wait(self, column: int, blocks: int, units: list[int], layers: list[WordArray]) -> None:
        """Add filters to those of the same size. Writes tiles where these become too many."""
        waiting = self._waiting.setdefault((column, blocks), _Waiting())
        if BYTES_PER_BLOCK * blocks * (len(waiting.units) + len(units)) > TILE_BYTES:
            self._write_waiting(column, blocks)
            self._waiting[column, blocks] = waiting = _Waiting()
        waiting.units += units
        waiting.parts.append(layers)
        while sum(each.size_bytes for each in self._waiting.values()) > PENDING_FILTER_BYTES:
            self._write_waiting(*max(self._waiting, key=lambda key: (self._waiting[key].size_bytes, key)))

    def _write_waiting(self, column: int, blocks: int) -> None:
        waiting = self._waiting.pop((column, blocks))
        if waiting.units:
            self._writer.add_tile(column, waiting.units, waiting.layers())

    def _write_imported(self, column: int, units: list[tuple[int, Sbbf]]) -> None:
        for blocks in sorted({f.num_blocks for _, f in units}, reverse=True):
            group = [(unit, f) for unit, f in units if f.num_blocks == blocks]
            for chosen in _tiles_of(group, blocks):
                self._writer.add_tile(column, [unit for unit, _ in chosen], [np.stack([f.words for _, f in chosen], 1)])

    def _blocks_for(self, parts: list[HashArray]) -> int:
        return sizes.on_grid(sizes.blocks_for(sizes.distinct(*parts), self._fpp))

    def _folded(self, filters: list[Sbbf]) -> list[Sbbf]:
        if self._fixed_blocks:
            return filters
        target = sizing.layer_fpps(self._fpp)[0]
        blocks = max(f.fold_to(target).num_blocks for f in filters)
        return [f.fold(blocks) for f in filters]

    def _layers(self, blocks: int, contents: list[list[HashArray]]) -> list[WordArray]:
        layers = [np.empty((blocks, len(contents), WORDS_PER_BLOCK), dtype=np.uint32) for _ in range(self._num_layers)]
        for slot, parts in enumerate(contents):
            filters = [Sbbf(blocks) for _ in layers]
            for part in parts:
                _insert(filters, part)
            for layer, f in zip(layers, filters, strict=True):
                layer[:, slot] = f.words
        return layers


def _tiles_of(units: list[_Unit], blocks: int) -> Iterator[list[_Unit]]:
    """Divide units whose filters have this many blocks into tiles that fit into memory."""
    step = max(1, TILE_BYTES // (BYTES_PER_BLOCK * blocks))
    return (units[start : start + step] for start in range(0, len(units), step))


def _insert(filters: list[Sbbf], hashes: HashArray) -> None:
    for layer, f in enumerate(filters):
        f.insert_hashes(in_layer(hashes, layer))


def _foldable(blocks: int) -> int:
    """Return a slightly larger number with many divisors, so that folding can stop close to any size."""
    step = 2520 if blocks > 100_000 else 60
    return -(-blocks // step) * step
