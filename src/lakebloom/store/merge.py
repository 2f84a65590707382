"""Merges segments into one without reading a data file: tiles of equal size are concatenated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lakebloom.store.segments import Segment, SegmentWriter
from lakebloom.store.tiles import read_tile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakebloom.sbbf.kernels import BoolArray, WordArray
    from lakebloom.storage import Storage
    from lakebloom.store.records import SegmentRecord, TileRecord
    from lakebloom.store.unit_table import Unit
    from lakebloom.tables.columns import ColumnPath


@dataclass(frozen=True, slots=True)
class _Part:
    """Units of one tile that go into the merged segment."""

    layers: tuple[TileRecord, ...]
    slots: np.ndarray[Any, np.dtype[np.int64]]
    """Which units of the tile."""
    members: list[int]
    """Their numbers in the merged segment."""


def merge_segments(
    storage: Storage,
    segment_id: str,
    columns: Sequence[ColumnPath],
    segments: Sequence[tuple[Segment, BoolArray]],
) -> SegmentRecord:
    """Write one segment with the units of others for which ``keep`` is set, and return its record.

    The segments must have the same column types.
    """
    writer = SegmentWriter(storage, segment_id, columns)
    units: list[Unit] = []
    parts: dict[tuple[int, tuple[int, ...]], list[_Part]] = {}
    for segment, keep in segments:
        _collect(segment, keep, len(columns), units, parts)
    for (column, _), group in sorted(parts.items()):
        members = [member for part in group for member in part.members]
        order = np.argsort(members)
        depth = len(group[0].layers)
        layers = [_side_by_side(storage, group, layer)[:, order] for layer in range(depth)]
        writer.add_tile(column, sorted(members), layers)
    types = segments[0][0].record.types
    return writer.finish(units, types, max(segment.record.fpp for segment, _ in segments))


def _collect(
    segment: Segment,
    keep: BoolArray,
    num_columns: int,
    units: list[Unit],
    parts: dict[tuple[int, tuple[int, ...]], list[_Part]],
) -> None:
    numbers = np.cumsum(keep) - 1 + len(units)
    units.extend(unit for unit, kept in zip(segment.units.units(num_columns), keep, strict=True) if kept)
    for column in range(num_columns):
        tile_of_unit = segment.units.tiles(column)
        for number, layers in segment.layers(column).items():
            inside = np.flatnonzero(tile_of_unit == number)
            slots = np.flatnonzero(keep[inside])
            if len(slots):
                size = tuple(layer.num_blocks for layer in layers)
                part = _Part(tuple(layers), slots, numbers[inside[slots]].tolist())
                parts.setdefault((column, size), []).append(part)


def _side_by_side(storage: Storage, group: list[_Part], layer: int) -> WordArray:
    return np.concatenate([read_tile(storage, part.layers[layer])[:, part.slots] for part in group], axis=1)
