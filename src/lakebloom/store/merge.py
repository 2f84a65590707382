"""Merges segments into one without reading a data file: filters of equal size come into one tile, whatever their size.

Units stay in their order. A tile is made row by row: a range of rows is read from all tiles that go into it, put
together and written as one part. So memory is bounded for any number of units and any size of filters, and ranges can
be made anywhere: a range is a task of its own, which needs nothing of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from lakebloom.errors import CorruptIndexError
from lakebloom.sbbf.blocks import BYTES_PER_BLOCK, WORDS_PER_BLOCK
from lakebloom.sbbf.distinct import runs
from lakebloom.store.records import PartRecord, TileRecord
from lakebloom.store.segments import Segment, SegmentWriter, tile_stem
from lakebloom.store.tiles import part_path, read_rows, tile_record, write_part
from lakebloom.store.unit_columns import UnitColumns
from lakebloom.tuning import MERGED_BYTES, REQUESTS

if TYPE_CHECKING:
    from lakebloom.sbbf.kernels import BoolArray
    from lakebloom.storage import Storage
    from lakebloom.store.records import SegmentRecord
    from lakebloom.tables.columns import ColumnPath

    IntArray = np.ndarray[Any, np.dtype[np.int64]]

__all__ = ["MergedRange", "RunRanges", "merge_range", "merge_segments"]


@dataclass(frozen=True, slots=True)
class _Part:
    """Units of one tile that go into the merged segment."""

    layers: tuple[TileRecord, ...]
    slots: IntArray
    """Which units of the tile."""
    members: IntArray
    """Their numbers in the merged segment."""


@dataclass(frozen=True, slots=True)
class _Source:
    """Units of one layer of a tile that go into a merged tile."""

    tile: TileRecord
    slots: IntArray | None
    """Which units of the tile; None for all of them."""
    places: IntArray | int
    """Their numbers in the merged tile; the first one if they follow each other."""


@dataclass(frozen=True, slots=True)
class MergedRange:
    """Some rows of a merged tile: everything that is needed to write them, wherever that is."""

    path: str
    column: int
    number: int
    layer: int
    num_units: int
    first_row: int
    num_rows: int
    sources: tuple[_Source, ...]

    @property
    def size_bytes(self) -> int:
        """The size of its filters."""
        return self.num_rows * self.num_units * BYTES_PER_BLOCK


RunRanges: TypeAlias = Callable[[Sequence[MergedRange]], Sequence[PartRecord]]
"""Writes ranges, and returns the record of each in the same order."""


def merge_range(storage: Storage, task: MergedRange) -> PartRecord:
    """Write one range. Raises CorruptIndexError if a tile that goes into it is damaged."""
    blocks = np.empty((task.num_rows, task.num_units, WORDS_PER_BLOCK), dtype=np.uint32)

    def fill(source: _Source) -> None:
        found = read_rows(storage, source.tile, task.first_row, task.num_rows)
        chosen = found if source.slots is None else found[:, source.slots]
        first = source.places
        places = slice(first, first + chosen.shape[1]) if isinstance(first, int) else first
        blocks[:, places] = chosen

    # Requests to an object store wait side by side. What all of them return is not more than the range itself.
    at_once = 1 if storage.uri.startswith("file:") else min(len(task.sources), REQUESTS)
    if at_once == 1:
        for source in task.sources:
            fill(source)
    else:
        with ThreadPoolExecutor(at_once, thread_name_prefix="lakebloom-merge") as threads:
            list(threads.map(fill, task.sources))
    return write_part(
        storage,
        task.path,
        blocks,
        column=task.column,
        number=task.number,
        layer=task.layer,
        first_row=task.first_row,
    )


def merge_segments(
    storage: Storage,
    segment_id: str,
    columns: Sequence[ColumnPath],
    segments: Sequence[tuple[Segment, BoolArray]],
    run: RunRanges | None = None,
) -> SegmentRecord:
    """Write one segment with the units of others for which ``keep`` is set, and return its record.

    The segments must have the same column types. ``run`` writes the ranges; without it, they are written here, one
    after the other.
    """
    writer = SegmentWriter(storage, segment_id, columns)
    units: list[UnitColumns] = []
    parts: dict[tuple[int, tuple[int, ...]], list[_Part]] = {}
    for segment, keep in segments:
        _copy_pages(segment, keep, writer, sum(len(before.files) for before in units))
        _collect(segment, keep, len(columns), units, parts)
    planned: list[tuple[int, IntArray, list[list[MergedRange]]]] = []
    for (column, _), group in sorted(parts.items()):
        members = np.concatenate([part.members for part in group])
        number = sum(1 for other, _, _ in planned if other == column)
        stem = tile_stem(segment_id, columns[column], column)
        layers = [_ranges(stem, column, number, layer, group, members) for layer in range(len(group[0].layers))]
        planned.append((column, members, layers))
    tasks = [task for _, _, layers in planned for ranges in layers for task in ranges]
    written = iter([merge_range(storage, task) for task in tasks] if run is None else run(tasks))
    for column, members, layers in planned:
        tiles = [
            tile_record(column, ranges[0].number, layer, len(members), [next(written) for _ in ranges])
            for layer, ranges in enumerate(layers)
        ]
        writer.add_written(column, np.sort(members).tolist(), tiles)
    types = segments[0][0].record.types
    return writer.finish(UnitColumns.concat(units), types, max(segment.record.fpp for segment, _ in segments))


def _copy_pages(segment: Segment, keep: BoolArray, writer: SegmentWriter, before: int) -> None:
    """Add where pages of the files lie that are kept; ``before`` is the number of files before them.

    Without damaged ones: of such files row groups are read.
    """
    if segment.pages is None:
        return
    files, _ = runs(segment.units.file_numbers[keep])
    for number, file in enumerate(files.tolist()):
        with suppress(CorruptIndexError):
            data = segment.pages.copy(file)
            if data is not None:
                writer.pages.add(before + number, data)


def _collect(
    segment: Segment,
    keep: BoolArray,
    num_columns: int,
    columns: list[UnitColumns],
    parts: dict[tuple[int, tuple[int, ...]], list[_Part]],
) -> None:
    numbers = np.cumsum(keep) - 1 + sum(len(before.units) for before in columns)
    columns.append(segment.units.columns().filter(keep))
    for column in range(num_columns):
        tile_of_unit = segment.units.tiles(column)
        for number, layers in segment.layers(column).items():
            inside = np.flatnonzero(tile_of_unit == number)
            slots = np.flatnonzero(keep[inside])
            if len(slots):
                size = tuple(layer.num_blocks for layer in layers)
                part = _Part(tuple(layers), slots, numbers[inside[slots]])
                parts.setdefault((column, size), []).append(part)


def _ranges(
    stem: str, column: int, number: int, layer: int, group: Sequence[_Part], members: IntArray
) -> list[MergedRange]:
    """Divide a layer of a merged tile into ranges of rows that take a bounded amount of memory."""
    place_of = np.empty(int(members.max()) + 1, dtype=np.int64)
    place_of[np.sort(members)] = np.arange(len(members))
    sources = tuple(_source(part.layers[layer], part.slots, place_of[part.members]) for part in group)
    num_blocks = sources[0].tile.num_blocks
    # A range is in memory as blocks and as planes, and with what is read of one tile.
    step = max(1, MERGED_BYTES // (8 * len(members) * BYTES_PER_BLOCK))
    return [
        MergedRange(
            path=part_path(stem, number, layer, part),
            column=column,
            number=number,
            layer=layer,
            num_units=len(members),
            first_row=first,
            num_rows=min(step, num_blocks - first),
            sources=sources,
        )
        for part, first in enumerate(range(0, num_blocks, step))
    ]


def _source(tile: TileRecord, slots: IntArray, places: IntArray) -> _Source:
    follows = int(places[-1] - places[0]) + 1 == len(places) and bool((np.diff(places) == 1).all())
    return _Source(tile, None if len(slots) == tile.num_units else slots, int(places[0]) if follows else places)
