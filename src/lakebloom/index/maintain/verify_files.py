"""Hashes files again and probes every value in its unit's filter."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lakebloom.display.progress import Progress
from lakebloom.errors import BloomIndexError, DataFileError, LakebloomError
from lakebloom.sbbf.filter import Sbbf
from lakebloom.sbbf.hashing.hash_values import hash_array
from lakebloom.sbbf.layers import mix
from lakebloom.store.tiles import read_tile
from lakebloom.store.unit_table import NO_TILE
from lakebloom.tables.file_identity import is_same
from lakebloom.tables.listing.listing import stat_file
from lakebloom.tables.parquet.columns import ColumnSpec, ParquetColumns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from lakebloom.display.progress import Report
    from lakebloom.index.snapshot import Snapshot
    from lakebloom.sbbf.kernels import WordArray
    from lakebloom.store.segments import Segment
    from lakebloom.tables.file_identity import TableFile


class FileCheck:
    """Checks files of one version and counts what it finds."""

    def __init__(self, snapshot: Snapshot, options: Mapping[str, str]) -> None:
        self._snapshot = snapshot
        self._access = snapshot.commit.table.access(options)
        self.files_checked = self.values_checked = self.false_negatives = 0
        self.unreadable: list[str] = []

    def files(self, files: Sequence[TableFile], progress: Report | None = None) -> None:
        """Check all units of these files, segment by segment, so that the tiles of only one are in memory."""
        total = Progress(0, len(files), 0, sum(file.size_bytes for file in files), 0)
        if progress is not None:
            progress(total)
        for segment, kept in zip(self._snapshot.segments, self._snapshot.listed(files), strict=True):
            filters = _Filters(self._snapshot, segment)
            numbers = np.flatnonzero(kept)
            order = numbers[np.argsort(segment.units.file_numbers[numbers], kind="stable")]
            cuts = np.flatnonzero(np.diff(segment.units.file_numbers[order])) + 1
            for units in np.split(order, cuts) if len(order) else []:
                file = segment.units.distinct_files[segment.units.file_numbers[units[0]]]
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
            if not is_same(file, stat_file(file.uri, self._access.options)):
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
        found = np.ones(len(hashes), dtype=np.bool_)
        for layer, f in enumerate(filters.of(place, column)):
            found &= f.might_contain_hashes(hashes if layer == 0 else mix(hashes))
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
    """The filters of one segment, unit by unit."""

    def __init__(self, snapshot: Snapshot, segment: Segment) -> None:
        self._storage = snapshot.storage
        self._segment = segment
        columns = snapshot.commit.config.columns
        self.specs = [ColumnSpec(c.path, kind) for c, kind in zip(columns, segment.record.types, strict=True)]
        self._tile_numbers = [segment.units.tiles(column) for column in range(len(columns))]
        self._slots = [_slots(numbers) for numbers in self._tile_numbers]
        self._words: dict[str, WordArray] = {}

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

    def of(self, place: _Place, column: int) -> list[Sbbf]:
        """Return the layers of a unit's filter; empty if it has no filter."""
        number = int(self._tile_numbers[column][place.number])
        if number == NO_TILE:
            return []
        slot = int(self._slots[column][place.number])
        layers = []
        for tile in self._segment.layers(column).get(number, ()):  # a missing tile drops no unit
            if tile.file.path not in self._words:
                self._words[tile.file.path] = read_tile(self._storage, tile)
            layers.append(Sbbf.from_words(np.ascontiguousarray(self._words[tile.file.path][:, slot])))
        return layers


def _slots(tile_numbers: np.ndarray[Any, np.dtype[np.int64]]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return each unit's position among the units that name the same tile."""
    slots = np.zeros(len(tile_numbers), dtype=np.int64)
    for number in np.unique(tile_numbers):
        inside = np.flatnonzero(tile_numbers == number)
        slots[inside] = np.arange(len(inside))
    return slots
