"""How full the filters of an index are, and how many false positives they give.

``fpp`` is the rate that filters were sized for. ``fpp_measured`` is computed from their bits, block by block as in
``sbbf.estimates``. For large tiles an evenly spaced sample of blocks is read, because hashes fill all blocks evenly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lakebloom.display.tables import Printable
from lakebloom.sbbf import estimates
from lakebloom.tables.columns import format_name
from lakebloom.tuning import HEALTH_BLOCKS, HEALTH_BYTES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakebloom.index.snapshot import Snapshot
    from lakebloom.store.segments import Segment

__all__ = ["ColumnHealth", "SegmentHealth", "column_health", "segment_health"]


@dataclass(frozen=True, slots=True)
class SegmentHealth(Printable):
    """The filters of one column in one segment."""

    segment: str
    column: str
    files: int
    units: int
    """The units with a filter for the column."""
    size_bytes: int
    fill: float
    """The share of set bits."""
    fpp: float
    fpp_measured: float


@dataclass(frozen=True, slots=True)
class ColumnHealth(Printable):
    """The filters of one column in all segments; each unit has the same weight."""

    column: str
    units: int
    size_bytes: int
    fill: float
    fpp: float
    fpp_measured: float


def segment_health(snapshot: Snapshot) -> list[SegmentHealth]:
    """Return fill and rate of each segment and column, from the bits."""
    columns = [format_name(column.path) for column in snapshot.commit.config.columns]
    return [_of_segment(segment, number, name) for segment in snapshot.segments for number, name in enumerate(columns)]


def _of_segment(segment: Segment, number: int, name: str) -> SegmentHealth:
    samples = segment.samples(number, HEALTH_BYTES, HEALTH_BLOCKS)
    units = [layers[0].shape[1] for layers in samples.values()]
    fills = [float(np.mean([estimates.fills(words) for words in layers])) for layers in samples.values()]
    # A value must pass all layers.
    rates = [float(np.mean(math.prod(map(estimates.fpps, layers)))) for layers in samples.values()]
    tiles = segment.layers(number).values()
    return SegmentHealth(
        segment=segment.record.id,
        column=name,
        files=segment.record.num_files,
        units=sum(units),
        size_bytes=sum(tile.size_bytes for layers in tiles for tile in layers),
        fill=float(np.average(fills, weights=units)) if units else 0.0,
        fpp=segment.record.fpp,
        fpp_measured=float(np.average(rates, weights=units)) if units else 0.0,
    )


def column_health(segments: Sequence[SegmentHealth]) -> list[ColumnHealth]:
    """Return the same for each column over all segments."""
    found = []
    for column in dict.fromkeys(segment.column for segment in segments):
        own = [segment for segment in segments if segment.column == column and segment.units]
        weights = [segment.units for segment in own]

        def mean(values: list[float], weights: list[int] = weights) -> float:
            return float(np.average(values, weights=weights)) if weights else 0.0

        found.append(
            ColumnHealth(
                column=column,
                units=sum(weights),
                size_bytes=sum(segment.size_bytes for segment in own),
                fill=mean([segment.fill for segment in own]),
                fpp=mean([segment.fpp for segment in own]),
                fpp_measured=mean([segment.fpp_measured for segment in own]),
            )
        )
    return found
