"""What an index will be before it is built: its units, its rate, its size. From a few footers, not from data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakebloom.display.tables import amount, sized
from lakebloom.errors import IndexTooLargeError, LakebloomError
from lakebloom.index.build import sizes
from lakebloom.index.build.task import spans_of
from lakebloom.sbbf import sizing
from lakebloom.sbbf.blocks import BYTES_PER_BLOCK
from lakebloom.tables.parquet.columns import ParquetColumns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lakebloom.index.settings import Settings
    from lakebloom.store.records import Granularity
    from lakebloom.tables.file_identity import TableFile
    from lakebloom.tables.parquet.columns import ColumnSpec

_SAMPLED_FILES = 16
_ALWAYS_ALLOWED_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class Shape:
    """How many units and rows a table has, and how many bytes its indexed columns, about."""

    units: float
    rows: float
    column_bytes: float = 0.0
    """As they are stored; 0 where only a scan can tell."""


def sample_shape(
    files: Sequence[TableFile],
    columns: Sequence[ColumnSpec],
    granularity: Granularity,
    options: Mapping[str, str],
    *,
    case_sensitive: bool = False,
) -> Shape:
    """Return the shape of a Parquet table from the footers of a few files, spread over all of them.

    Files that cannot be read will be skipped by the build and are left out here. Raises AccessDeniedError,
    DataFileError, UnsupportedTypeError or whatever is wrong with the first of them where none can be read.
    """
    step = max(1, len(files) // _SAMPLED_FILES)
    rows = units = size_bytes = column_bytes = read = 0
    problem: LakebloomError | None = None
    for file in files[::step]:
        try:
            with ParquetColumns(file.uri, columns, options, case_sensitive=case_sensitive) as reader:
                rows += reader.num_rows
                column_bytes += reader.column_bytes
                units += len(spans_of(reader.row_groups, granularity))
        except LakebloomError as error:
            problem = problem or error
            continue
        size_bytes += file.size_bytes
        read += 1
    if not read:
        assert problem is not None
        raise problem
    share = size_bytes / max(1, sum(file.size_bytes for file in files))
    return Shape(
        units=max(len(files), units / read * len(files)),
        rows=rows / share if share else 0,
        column_bytes=column_bytes / share if share else 0,
    )


def filter_bytes(shape: Shape, num_columns: int, fpp: float, expected_items: int | None) -> int:
    """Return about how large all filters will be."""
    if shape.units == 0:
        return 0
    items = round(shape.rows / shape.units) if expected_items is None else expected_items
    layers = len(sizing.layer_fpps(fpp))
    return round(sizes.blocks_for(items, fpp) * BYTES_PER_BLOCK * layers * num_columns * shape.units)


def require_size(index_bytes: int, source_bytes: int, settings: Settings) -> None:
    """Raise IndexTooLargeError for an index that is larger than allowed."""
    allowed = settings.max_index_bytes
    if allowed is None:
        allowed = max(source_bytes // 4, _ALWAYS_ALLOWED_BYTES)
    if index_bytes > allowed:
        raise IndexTooLargeError(
            f"the index would be larger than the {allowed:,} bytes allowed ({amount(allowed)})",
            found=f"about {sized(index_bytes, ' bytes')} for a source of {sized(source_bytes, ' bytes')}",
            hint="use a higher fpp, a coarser granularity or fewer columns, or raise spark.lakebloom.maxIndexBytes",
        )
