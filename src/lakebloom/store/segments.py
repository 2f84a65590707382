"""Segments: immutable sets of units with their filters. One task writes a segment; probes read a few planes of it.

    segments/<id>/files.arrow                               the files of the table
    segments/<id>/units.arrow                               which rows each unit covers
    segments/<id>/<column>.facts.arrow                      facts about a column in each unit
    segments/<id>/pages.arrow, pages.<part>.bin             where pages of files lie, if that is recorded
    segments/<id>/<column>.<number>.<layer>.<part>.tile     the filters

A segment is invisible until a commit names it. A task that fails or runs twice leaves only files for vacuum.
"""

from __future__ import annotations

import math
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np

from lakebloom.errors import StorageError
from lakebloom.sbbf import estimates
from lakebloom.sbbf.blocks import BYTES_PER_BLOCK
from lakebloom.sbbf.filter import Sbbf
from lakebloom.store.files import corrupt
from lakebloom.store.page_table import PageTable, PageTableWriter
from lakebloom.store.probing import (
    units_that_hold_any,
    which_hold_any,
    which_hold_each,
    who_holds_what,
)
from lakebloom.store.records import SegmentRecord, TileRecord
from lakebloom.store.some_units import SomeUnits, entirely_null
from lakebloom.store.tile_sets import TileSet
from lakebloom.store.tiles import TileReader, write_tile
from lakebloom.store.unit_bounds import unit_bounds
from lakebloom.store.unit_columns import NO_TILE, Unit, UnitColumns
from lakebloom.store.unit_table import UnitTable
from lakebloom.tuning import SAMPLED_BLOCKS, SINGLE_HASHES, WIDE_UNITS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow as pa

    from lakebloom.sbbf.kernels import BoolArray, HashArray, WordArray
    from lakebloom.storage import Storage
    from lakebloom.store.records import ConfigRecord
    from lakebloom.store.unit_bounds import UnitBounds
    from lakebloom.tables.columns import ColumnPath

FOLDER = "segments"
_LABEL_LENGTH = 80
_FULL = 1 - 1e-9


class SegmentWriter:
    """Writes one segment: tiles as they are finished, then the tables of its units."""

    def __init__(self, storage: Storage, segment_id: str, columns: Sequence[ColumnPath]) -> None:
        self._storage = storage
        self._id = segment_id
        self._columns = columns
        self._tiles: list[TileRecord] = []
        self._members: list[tuple[int, int, list[int]]] = []
        self.pages = PageTableWriter(storage, f"{FOLDER}/{segment_id}")
        """Takes where pages of files lie."""

    def add_tile(self, column: int, members: list[int], layers: Iterable[WordArray]) -> None:
        """Write the filters of some units (by their numbers in the segment) as [num_blocks, num_units, 8] words."""
        number, stem = self._next_number(column), tile_stem(self._id, self._columns[column], column)
        self._members.append((column, number, members))
        for layer, blocks in enumerate(layers):
            self._tiles.append(write_tile(self._storage, stem, blocks, column=column, number=number, layer=layer))

    def add_written(self, column: int, members: list[int], layers: Sequence[TileRecord]) -> None:
        """Add the layers of a tile whose parts were written elsewhere."""
        self._members.append((column, layers[0].number, members))
        self._tiles.extend(layers)

    def _next_number(self, column: int) -> int:
        return sum(1 for other, _, _ in self._members if other == column)

    def abandon(self) -> None:
        """Delete the files of a segment that will not be finished. Vacuum removes what cannot be deleted here."""
        self.pages.abandon()
        with suppress(StorageError):
            for tile in self._tiles:
                for part in tile.parts:
                    self._storage.delete(part.file.path)

    def finish(self, units: Sequence[Unit] | UnitColumns, types: Sequence[str], fpp: float) -> SegmentRecord:
        """Write the tables of the units and return the segment's record."""
        columns = units if isinstance(units, UnitColumns) else UnitColumns.of(units, types)
        for column in range(len(self._columns)):
            tiles = np.full(len(columns.units), NO_TILE, dtype=np.int64)
            for _, number, members in (placed for placed in self._members if placed[0] == column):
                tiles[members] = number
            columns = columns.with_tiles(column, tiles)
        labels = [_label(path, column) for column, path in enumerate(self._columns)]
        pages = self.pages.finish(len(columns.files))
        table_files, of_units, *facts = columns.write(self._storage, f"{FOLDER}/{self._id}", labels)
        return SegmentRecord(
            id=self._id,
            types=tuple(types),
            fpp=fpp,
            num_files=len(columns.files),
            num_units=len(columns.units),
            num_rows=_sum(columns.units["row_count"]),
            data_bytes=_sum(columns.files["size_bytes"]),
            uris=columns.uris,
            table_files=table_files,
            units=of_units,
            facts=tuple(facts),
            tiles=tuple(self._tiles),
            pages=pages,
        )


def _sum(column: pa.ChunkedArray) -> int:
    return sum(column.to_pylist())  # exact for any numbers


def tile_stem(segment_id: str, path: ColumnPath, column: int) -> str:
    """Return the beginning of the paths of a column's tiles."""
    return f"{FOLDER}/{segment_id}/{_label(path, column)}"


def _label(path: ColumnPath, column: int) -> str:
    # A dot inside a part becomes %2E, so that the leaf k of s and a column named `s.k` have different labels.
    label = ".".join(quote(part, safe="").replace(".", "%2E") for part in path)
    return label if len(label) <= _LABEL_LENGTH else f"{label[:_LABEL_LENGTH]}~{column}"


class Segment:
    """One segment, open for probes. A probe reads a few planes of each tile, and of the units those that passed."""

    def __init__(self, storage: Storage, record: SegmentRecord, config: ConfigRecord) -> None:
        self.record = record
        self._storage = storage
        self._columns = {column.path: number for number, column in enumerate(config.columns)}
        self._sized_by_content = config.expected_items is None
        self._rates: dict[ColumnPath, float] = {}
        self._bounds: dict[ColumnPath, UnitBounds] = {}
        self._entirely_null: dict[ColumnPath, BoolArray | None] = {}
        self._tiles: dict[int, dict[int, list[TileReader]]] = {}
        self._tile_sets: dict[ColumnPath, TileSet] = {}
        self._members: dict[tuple[int, int], np.ndarray[Any, np.dtype[np.int64]]] = {}

    @cached_property
    def units(self) -> UnitTable:
        """Its units. Reads nothing yet. Raises CorruptIndexError."""
        return UnitTable(self._storage, self.record)

    @cached_property
    def pages(self) -> PageTable | None:
        """Where pages of its files lie. Reads nothing yet; None if that is recorded for no file."""
        recorded = self.record.pages
        return None if recorded is None else PageTable(self._storage, self.record, recorded)

    @property
    def num_units(self) -> int:
        """The number of units."""
        return self.record.num_units

    @property
    def wide(self) -> Segment | None:
        """Itself, if only facts about units that passed a filter are read."""
        return self if self.num_units > WIDE_UNITS else None

    def some(self, units: np.ndarray[Any, np.dtype[np.int64]]) -> SomeUnits:
        """Return the facts about some units."""
        return SomeUnits(self.units, self._columns, units)

    def column_type(self, column: ColumnPath) -> str | None:
        """Return the Spark type of a column when it was hashed, None for a column that is not indexed."""
        number = self._columns.get(column)
        return None if number is None else self.record.types[number]

    def row_counts(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return the number of rows of each unit."""
        return self.units.whole("row_count")

    def null_counts(self, column: ColumnPath) -> tuple[np.ndarray[Any, np.dtype[np.int64]], BoolArray]:
        """Return the number of NULLs of each unit, and whether it is known."""
        return self.units.null_counts(self._columns[column])

    def entirely_null(self, column: ColumnPath) -> BoolArray | None:
        """Tell which units have no value but NULL; None if there is no such unit."""
        if column not in self._entirely_null:
            self._entirely_null[column] = entirely_null(self.null_counts(column), self.row_counts())
        return self._entirely_null[column]

    def bounds(self, column: ColumnPath) -> UnitBounds:
        """Return the bounds of each unit's values."""
        if column not in self._bounds:
            self._bounds[column] = unit_bounds(*self.stored_bounds(column))
        return self._bounds[column]

    def stored_bounds(self, column: ColumnPath) -> tuple[pa.Array, pa.Array]:
        """Return the lower and the upper bound of each unit's values as they are stored, null where it is unknown."""
        return self.units.bounds(self._columns[column])

    def false_positive_rate(self, column: ColumnPath) -> float:
        """Return the rate the filters were sized for; for filters of a fixed size, an estimate from some blocks."""
        if self._sized_by_content:
            return self.record.fpp
        if column not in self._rates:
            layered = list(self.tiles(column).values())
            rates = [math.prod(map(_shown_rate, layers)) for layers in layered]
            units = [layers[0].tile.num_units for layers in layered]
            self._rates[column] = float(np.average(rates, weights=units)) if layered else 0.0
        return self._rates[column]

    def might_contain_any(self, column: ColumnPath, hashes: HashArray) -> BoolArray:
        """Tell for each unit whether it may contain a value with one of these distinct hashes."""
        tiles = self.tiles(column)
        if len(hashes) > SINGLE_HASHES:
            for layers in tiles.values():
                if layers[0].tile.num_units == self.num_units:
                    return which_hold_any(layers, hashes)  # one tile has all units
        else:
            return self.tile_set(column).keep(hashes)
        keep: BoolArray = np.ones(self.num_units, dtype=np.bool_)  # also where a unit has no tile
        for tile_number, layers in tiles.items():
            keep[self.members(column, tile_number)] = which_hold_any(layers, hashes)
        return keep

    def holding(self, column: ColumnPath, hashes: HashArray) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return the units that may contain a value with one of these distinct hashes, ascending."""
        for layers in self.tiles(column).values():
            if layers[0].tile.num_units == self.num_units:  # one tile has all units
                return (
                    self.tile_set(column).holders(int(hashes[0]))[0]
                    if len(hashes) == 1
                    else units_that_hold_any(layers, hashes)
                )
        return np.flatnonzero(self.might_contain_any(column, hashes))

    def which(self, column: ColumnPath, hashes: HashArray, units: np.ndarray[Any, np.dtype[np.int64]]) -> BoolArray:
        """Tell for each hash and each of these units, [num_hashes, len(units)], whether the unit may contain it."""
        tile_of_unit = self.tile_numbers(column)
        passed = np.ones((len(hashes), len(units)), dtype=np.bool_)
        for tile_number, layers in self.tiles(column).items():
            inside = np.flatnonzero(tile_of_unit[units] == tile_number)
            if len(inside):
                slots = np.searchsorted(self.members(column, tile_number), units[inside])
                passed[:, inside] = which_hold_each(layers, hashes, slots)
        return passed

    def shortlists(
        self, column: ColumnPath, hashes: HashArray, units: np.ndarray[Any, np.dtype[np.int64]], most: int
    ) -> list[np.ndarray[Any, np.dtype[np.int64]] | None]:
        """Return for each of these ascending units which of the hashes it may contain, by their places.

        None for a unit without a filter, and for all of a tile that have more than about ``most`` hashes together.
        """
        tile_of_unit = self.tile_numbers(column)[units]
        lists: list[np.ndarray[Any, np.dtype[np.int64]] | None] = [None] * len(units)
        for tile_number, layers in self.tiles(column).items():
            inside = np.flatnonzero(tile_of_unit == tile_number)
            slots = np.searchsorted(self.members(column, tile_number), units[inside])
            pairs = who_holds_what(layers, hashes, slots, most) if len(inside) else None
            if pairs is not None:
                order = np.argsort(pairs[1], kind="stable")
                cuts = np.searchsorted(pairs[1][order], np.arange(1, len(inside)))
                for i, numbers in zip(inside.tolist(), np.split(pairs[0][order], cuts), strict=True):
                    lists[i] = numbers
        return lists

    def tile_set(self, column: ColumnPath) -> TileSet:
        """Return all tiles of a column, for few values."""
        if column not in self._tile_sets:
            tiles = self.tiles(column)
            self._tile_sets[column] = TileSet(
                list(tiles.values()), self.num_units, lambda: [self.members(column, number) for number in tiles]
            )
        return self._tile_sets[column]

    def members(self, column: ColumnPath, tile_number: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return the units of a tile: the j-th of them is its unit j."""
        key = self._columns[column], tile_number
        if key not in self._members:
            members = np.flatnonzero(self.tile_numbers(column) == tile_number)
            if any(len(members) != layer.tile.num_units for layer in self.tiles(column).get(tile_number, ())):
                raise corrupt(self.record.units.path, f"{len(members)} units name it, and it has others")
            self._members[key] = members
        return self._members[key]

    def filters(self, column: ColumnPath, unit: int) -> list[Sbbf]:
        """Return the filter of a unit, bit for bit as it was built, one for each layer; none if it has no filter."""
        number = int(self.tile_numbers(column)[unit])
        layers = self.tiles(column).get(number, [])
        slot = int(np.searchsorted(self.members(column, number), unit))
        return [Sbbf.from_words(np.ascontiguousarray(layer.filter(slot))) for layer in layers]

    def tile_numbers(self, column: ColumnPath) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return the tile number of each unit, NO_TILE for a unit without a filter."""
        return self.units.tiles(self._columns[column])

    def tiles(self, column: ColumnPath) -> dict[int, list[TileReader]]:
        """Return the layers of each tile of a column, by tile number."""
        return self._readers(self._columns[column])

    def layers(self, column: int) -> dict[int, list[TileRecord]]:
        """Return the records of the layers of each tile of a column, by tile number."""
        return {number: [reader.tile for reader in readers] for number, readers in self._readers(column).items()}

    def samples(self, column: int, most_bytes: int, most_blocks: int) -> dict[int, list[WordArray]]:
        """Return some blocks of each layer of a column's tiles (``TileReader.sample``), by tile number."""
        return {
            number: [
                reader.sample(max(1, min(most_blocks, most_bytes // (BYTES_PER_BLOCK * reader.tile.num_units))))
                for reader in readers
            ]
            for number, readers in self._readers(column).items()
        }

    def _readers(self, column: int) -> dict[int, list[TileReader]]:
        if column not in self._tiles:
            found: dict[int, list[TileReader]] = {}
            for tile in sorted(self.record.tiles, key=lambda tile: (tile.number, tile.layer)):
                if tile.column == column:
                    found.setdefault(tile.number, []).append(TileReader(self._storage, tile))
            self._tiles[column] = found
        return self._tiles[column]


def _shown_rate(layer: TileReader) -> float:
    return min(float(estimates.fpps(layer.sample(SAMPLED_BLOCKS)).mean()), _FULL)
