"""Proving an index: every checksum fits, and every value of the data is found by its filter."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lakebloom.errors import CorruptIndexError, InvalidArgumentError, LakebloomError, NotFoundError
from lakebloom.index.reports import VerifyReport
from lakebloom.index.snapshot import Snapshot
from lakebloom.index.vacuum import files_of
from lakebloom.sbbf.filter import Sbbf
from lakebloom.sbbf.hashing import hash_array
from lakebloom.sbbf.layers import mix
from lakebloom.store.global_filters import read_global
from lakebloom.store.tiles import read_rows, read_tile
from lakebloom.store.units import NO_TILE
from lakebloom.tables.listing import list_files
from lakebloom.tables.parquet_columns import ColumnSpec, ParquetColumns

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from lakebloom.index.catalog import Index
    from lakebloom.sbbf.kernels import WordArray
    from lakebloom.store.segments import Segment
    from lakebloom.tables.files import TableFile


def verify_index(index: Index, sample: float | None, options: Mapping[str, str]) -> VerifyReport:
    """Check the newest version of an index against itself and against its table."""
    if sample is not None and not 0 <= sample <= 1:
        raise InvalidArgumentError("sample is a share between 0 and 1", found=sample)
    entry = index.active()
    snapshot = Snapshot(index.storage, entry)
    corrupt = list(_corrupt_files(index, snapshot))
    if corrupt:
        return VerifyReport(name=index.name, version=entry.version, corrupt=tuple(corrupt))
    try:
        listed = {file.uri: file for file in list_files(entry.source.locations, options)}
    except NotFoundError:
        listed = {}
    known = snapshot.files
    named = {path for version in index.log.versions() for path in files_of(index.log.read(version))}
    orphaned = [file.path for folder in ("segments", "global") for file in index.storage.list(folder)]
    check = _FilterCheck(index, snapshot, options)
    fresh = sorted(uri for uri, file in known.items() if listed.get(uri) == file)
    for uri in _sampled(fresh, sample):
        check.file(known[uri])
    return VerifyReport(
        name=index.name,
        version=entry.version,
        files_checked=check.files,
        values_checked=check.values,
        false_negatives=check.false_negatives,
        unreadable=tuple(check.unreadable),
        stale=tuple(uri for uri, file in known.items() if uri in listed and listed[uri] != file),
        missing=tuple(uri for uri in known if uri not in listed),
        not_indexed=tuple(uri for uri in listed if uri not in known),
        orphaned=tuple(path for path in orphaned if path not in named),
    )


def _sampled(uris: list[str], sample: float | None) -> list[str]:
    if sample is None or not uris:
        return uris
    count = round(sample * len(uris))
    chosen = np.random.default_rng().choice(len(uris), size=count, replace=False)
    return [uris[i] for i in sorted(chosen.tolist())]


def _corrupt_files(index: Index, snapshot: Snapshot) -> Iterator[str]:
    for segment in snapshot.segments:
        try:
            _ = segment.units
        except CorruptIndexError as error:
            yield str(error)
        for tile in segment.record.tiles:
            try:
                read_tile(index.storage, tile)
                read_rows(index.storage, tile, np.arange(tile.num_blocks))
            except CorruptIndexError as error:
                yield str(error)
    for record in snapshot.entry.global_filters:
        try:
            read_global(index.storage, record)
        except CorruptIndexError as error:
            yield str(error)


class _FilterCheck:
    """Hashes files again and looks every value up in its unit's filter."""

    def __init__(self, index: Index, snapshot: Snapshot, options: Mapping[str, str]) -> None:
        self._index, self._snapshot, self._options = index, snapshot, options
        self._tiles: dict[str, WordArray] = {}
        self.files = self.values = self.false_negatives = 0
        self.unreadable: list[str] = []

    def file(self, file: TableFile) -> None:
        """Check all units of a file."""
        for segment, current in zip(self._snapshot.segments, self._snapshot.current, strict=True):
            places = [i for i, other in enumerate(segment.units.files) if other == file and current[i]]
            if places:
                try:
                    self._units(segment, file, places)
                    self.files += 1
                except CorruptIndexError:
                    raise
                except LakebloomError as error:
                    self.unreadable.append(f"{file.uri}: {error}")

    def _units(self, segment: Segment, file: TableFile, places: list[int]) -> None:
        specs = [
            ColumnSpec(column.path, kind)
            for column, kind in zip(self._snapshot.entry.config.columns, segment.record.types, strict=True)
        ]
        starts, counts = segment.units.whole("row_start"), segment.units.whole("row_count")
        with ParquetColumns(file.uri, specs, self._options) as reader:
            for group in range(len(reader.row_groups)):
                for first, arrays in reader.batches(group):
                    for place in places:
                        low = max(0, int(starts[place]) - first)
                        high = min(len(arrays[0]), int(starts[place] + counts[place]) - first)
                        for column, array in enumerate(arrays):
                            if low < high:
                                self._values(segment, place, column, array.slice(low, high - low))

    def _values(self, segment: Segment, place: int, column: int, array: object) -> None:
        tiles = segment.units.tiles(column)
        if tiles[place] == NO_TILE:
            return
        hashes, valid = hash_array(array)
        if valid is not None:
            hashes = hashes[valid]
        slot = int(np.count_nonzero(tiles[:place] == tiles[place]))
        found = np.ones(len(hashes), dtype=np.bool_)
        for layer in segment.layers(column)[int(tiles[place])]:
            if layer.file.path not in self._tiles:
                self._tiles[layer.file.path] = read_tile(self._index.storage, layer)
            f = Sbbf.from_words(np.ascontiguousarray(self._tiles[layer.file.path][:, slot]))
            found &= f.might_contain_hashes(hashes if layer.layer == 0 else mix(hashes))
        self.values += len(hashes)
        self.false_negatives += int(np.count_nonzero(~found))
