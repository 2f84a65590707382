"""Estimates units, rate and size of an index before it is built, from a few footers and without reading data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakebloom.display.tables import amount, sized
from lakebloom.errors import IndexTooLargeError
from lakebloom.index.build import sizes
from lakebloom.sbbf import sizing
from lakebloom.sbbf.blocks import BYTES_PER_BLOCK
from lakebloom.tuning import ALWAYS_ALLOWED_BYTES

if TYPE_CHECKING:
    from lakebloom.index.settings import Settings
    from lakebloom.index.units import Shape


def filter_bytes(shape: Shape, num_columns: int, fpp: float, expected_items: int | None) -> int:
    """Return the estimated size of all filters."""
    if shape.units == 0:
        return 0
    items = round(shape.rows / shape.units) if expected_items is None else expected_items
    layers = len(sizing.layer_fpps(fpp))
    return round(sizes.blocks_for(items, fpp) * BYTES_PER_BLOCK * layers * num_columns * shape.units)


def require_size(index_bytes: int, source_bytes: int, settings: Settings) -> None:
    """Raise IndexTooLargeError for an index that is larger than allowed."""
    allowed = settings.max_index_bytes
    if allowed is None:
        allowed = max(source_bytes // 4, ALWAYS_ALLOWED_BYTES)
    if index_bytes > allowed:
        raise IndexTooLargeError(
            f"the index would be larger than the {allowed:,} bytes allowed ({amount(allowed)})",
            found=f"about {sized(index_bytes, ' bytes')} for a source of {sized(source_bytes, ' bytes')}",
            hint="use a higher fpp, a coarser granularity or fewer columns, or raise spark.lakebloom.maxIndexBytes",
        )
