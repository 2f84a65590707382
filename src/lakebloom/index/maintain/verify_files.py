"""Hashes files again, and probes every value in its unit's filter and bounds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from pyarrow import types as pt

from lakebloom.display.progress import Progress
from lakebloom.errors import BloomIndexError, DataFileError, LakebloomError
from lakebloom.sbbf.blocks import BYTES_PER_BLOCK, WORDS_PER_BLOCK
from lakebloom.sbbf.filter import Sbbf
from lakebloom.sbbf.hashing.hash_values import hash_array
from lakebloom.sbbf.layers import in_layer
from lakebloom.store.min_max import limit_at, stored_values
from lakebloom.store.unit_bounds import unit_bounds
from lakebloom.tables.file_identity import is_same
from lakebloom.tables.listing.listing import look_again
from lakebloom.tables.parquet.columns import ParquetColumns
from lakebloom.tuning import VERIFIED_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa

    from lakebloom.display.progress import Report
    from lakebloom.index.snapshot import Snapshot
    from lakebloom.sbbf.kernels import BoolArray, WordArray
    from lakebloom.store.segments import Segment
    from lakebloom.store.tiles import TileReader
    from lakebloom.tables.file_identity import TableFile

    IntArray = np.ndarray[Any, np.dtype[np.int64]]


class FileCheck:
    """Checks files of one version and counts what it finds."""

    def __init__(self, snapshot: Snapshot, options: Mapping[str, str]) -> None:
        self._snapshot = snapshot
        self._access = snapshot.commit.table.access(options)
        self.files_checked = self.values_checked = self.false_negatives = 0
        self.unreadable: list[str] = []

    def files(self, files: Sequence[TableFile], progress: Report | None = None) -> None:
        """Check all units of these files, some at a time, so that only the filters of these are in memory."""
        total = Progress(0, len(files), 0, sum(file.size_bytes for file in files), 0)
        if progress is not None:
            progress(total)
        for segment, kept in zip(self._snapshot.segments, self._snapshot.listed(files), strict=True):
            filters = _Filters(self._snapshot, segment)
            numbers = np.flatnonzero(kept)
            of_units = segment.units.files.of_units(numbers)
            cuts = np.flatnonzero(np.diff(of_units)) + 1  # the units of a file are next to each other
            for units in filters.loaded(np.split(numbers, cuts) if len(numbers) else []):
                (file,) = segment.units.files.rows(segment.units.files.of_units(units[:1]))
                self._file(file, filters, units)
                total = replace(
                    total,
                    files_done=total.files_done + 1,
                    bytes_done=total.bytes_done + file.size_bytes,
                    rows_done=total.rows_done + int(segment.units.whole("row_count")[units].sum()),
                )
                if progress is not None:
                    progress(total)

    def _file(self, file: TableFile, filters: _Filters, units: np.ndarray[Any, np.dtype[np.int64]]) -> None:
        counted = self.values_checked, self.false_negatives
        try:
            with ParquetColumns(file.uri, filters.specs, self._access) as columns:
                self._units(filters, filters.places(units), columns)
            if not is_same(file, look_again(file, self._access.options)):
                self.values_checked, self.false_negatives = counted
                raise DataFileError(f"{file.uri} changed while it was checked", hint="verify the index again")
            self.files_checked += 1
        except BloomIndexError:
            raise
        except LakebloomError as error:
            self.unreadable.append(f"{file.uri}: {error}")

    def _units(self, filters: _Filters, places: Sequence[_Place], columns: ParquetColumns) -> None:
        nulls = [[0] * len(filters.specs) for _ in places]
        starts = np.array([place.row_start for place in places])
        # No query finds rows that no unit covers.
        self.false_negatives += columns.num_rows - sum(place.row_count for place in places)
        for group in range(len(columns.row_groups)):
            for first, arrays in columns.batches(group):
                last = first + len(arrays[0])
                at = max(0, int(np.searchsorted(starts, first, side="right")) - 1)
                while at < len(places) and places[at].row_start < last:
                    low, high = max(places[at].row_start, first), min(places[at].row_stop, last)
                    if low < high:
                        for column, array in enumerate(arrays):
                            part = array.slice(low - first, high - low)
                            nulls[at][column] += self._values(filters, places[at], column, part)
                    at += 1
        for place, counted in zip(places, nulls, strict=True):
            for recorded, count in zip(place.null_counts, counted, strict=True):
                self.false_negatives += 0 if recorded is None else abs(recorded - count)

    def _values(self, filters: _Filters, place: _Place, column: int, array: pa.Array) -> int:
        """Probe the values, and return how many are NULL."""
        hashes, valid = hash_array(array)
        if valid is not None:
            hashes = hashes[valid]
        found = filters.enclosed(place, column, array)
        for layer, f in enumerate(filters.of(place, column)):
            found &= f.might_contain_hashes(in_layer(hashes, layer))
        self.values_checked += len(hashes)
        self.false_negatives += int(np.count_nonzero(~found))
        return len(array) - len(hashes)


@dataclass(frozen=True, slots=True)
class _Place:
    """One unit, and the place of its filters."""

    number: int
    row_start: int
    row_count: int
    null_counts: tuple[int | None, ...]

    @property
    def row_stop(self) -> int:
        return self.row_start + self.row_count


class _Filters:
    """The filters of one segment, those of some units at a time: a tile is read once for all of them."""

    def __init__(self, snapshot: Snapshot, segment: Segment) -> None:
        self._segment = segment
        columns = snapshot.commit.config.columns
        self._paths = [column.path for column in columns]
        self.specs = [c.spec_as(kind) for c, kind in zip(columns, segment.record.types, strict=True)]
        self._tile_numbers = [segment.units.tiles(column) for column in range(len(columns))]
        self._words: dict[tuple[int, int], list[WordArray]] = {}

    def loaded(self, files: Sequence[IntArray]) -> Iterator[IntArray]:
        """Yield the units of each file while their filters are in memory."""
        sizes = [sum(self._bytes_of(column, units) for column in range(len(self.specs))) for units in files]
        start = 0
        while start < len(files):
            end, total = start + 1, sizes[start]
            while end < len(files) and total + sizes[end] <= VERIFIED_BYTES:
                total += sizes[end]
                end += 1
            self._load(np.sort(np.concatenate(files[start:end])))
            yield from files[start:end]
            start = end

    def _bytes_of(self, column: int, units: IntArray) -> int:
        layers = self._segment.layers(column)
        sizes = {number: BYTES_PER_BLOCK * sum(tile.num_blocks for tile in tiles) for number, tiles in layers.items()}
        return sum(sizes.get(number, 0) for number in self._tile_numbers[column][units].tolist())

    def _load(self, units: IntArray) -> None:
        self._words = {}
        for column, path in enumerate(self._paths):
            tile_of_unit = self._tile_numbers[column][units]
            for number, layers in self._segment.tiles(path).items():
                inside = units[tile_of_unit == number]
                if len(inside):
                    slots = np.searchsorted(self._segment.members(path, number), inside)
                    words = [_filters_in(layer, slots) for layer in layers]
                    for i, unit in enumerate(inside.tolist()):
                        self._words[column, unit] = [of_layer[i] for of_layer in words]

    def places(self, units: np.ndarray[Any, np.dtype[np.int64]]) -> list[_Place]:
        """Return units in the order of their rows."""
        start, count = (self._segment.units.whole(name) for name in ("row_start", "row_count"))
        nulls = [self._segment.units.null_counts(column) for column in range(len(self.specs))]
        return [
            _Place(
                unit,
                int(start[unit]),
                int(count[unit]),
                tuple(int(counts[unit]) if known[unit] else None for counts, known in nulls),
            )
            for unit in units[np.argsort(start[units], kind="stable")].tolist()
        ]

    def enclosed(self, place: _Place, column: int, array: pa.Array) -> BoolArray:
        """Tell of each value that is not NULL whether it lies within the unit's bounds."""
        plain = array.dictionary_decode() if pt.is_dictionary(array.type) else array
        values = stored_values(plain.drop_null())
        each = unit_bounds(values, values)
        low, high = (limit_at(ends, place.number) for ends in self._segment.units.bounds(column))
        inside = np.ones(len(values), dtype=np.bool_)
        if low is not None:
            inside &= each.above(low, itself=True)
        return inside if high is None else inside & each.below(high, itself=True)

    def of(self, place: _Place, column: int) -> list[Sbbf]:
        """Return the layers of a unit's filter; empty if it has no filter, or if its tile is missing."""
        return [Sbbf.from_words(words) for words in self._words.get((column, place.number), ())]


def _filters_in(layer: TileReader, slots: IntArray) -> WordArray:
    """Return the filters of some units of a tile, [num_units, num_blocks, 8]."""
    words = np.empty((len(slots), layer.tile.num_blocks, WORDS_PER_BLOCK), dtype=np.uint32)
    for first, blocks in layer.ranges():
        words[:, first : first + len(blocks)] = blocks[:, slots].swapaxes(0, 1)
    return words
