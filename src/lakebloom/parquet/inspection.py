"""The filters of a Parquet file as records: sizes, fill, and sizes of the dictionaries."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lakebloom.display.tables import Printable
from lakebloom.errors import EncryptedFileError, FilterFormatError
from lakebloom.parquet.metadata import read_metadata
from lakebloom.parquet.open_file import open_file
from lakebloom.parquet.reader import filters
from lakebloom.sbbf.blocks import BITS_PER_BLOCK
from lakebloom.tables.columns import format_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakebloom.parquet.embedded_filter import EmbeddedFilter
    from lakebloom.parquet.footer import ColumnChunk, Source

__all__ = ["FileFilters", "FilterRecord", "dictionary_bytes", "inspect_file"]


@dataclass(frozen=True, slots=True)
class FilterRecord(Printable):
    """One filter, with sizes of its column chunk."""

    column: str
    row_group: int
    values: int
    filter_bytes: int
    fill: float | None
    """The share of set bits. This and the estimates below are None if the filter cannot be read."""
    fpp: float | None
    ndv: float | None
    """The estimated number of distinct values; None also if all bits are set."""
    dictionary_bytes: int | None
    """The stored size of the column chunk's dictionary page; None if it has none."""
    column_bytes: int
    """The stored size of the column chunk."""
    problem: str | None = None
    """Why the filter cannot be read: the code of an error."""


@dataclass(frozen=True, slots=True)
class FileFilters:
    """The filters of a file."""

    file: str
    rows: int
    row_groups: int
    created_by: str
    filters: tuple[FilterRecord, ...]
    columns_without_filter: tuple[str, ...]


def inspect_file(path: Source, columns: Sequence[str] | None = None) -> FileFilters:
    """Return the filters of a file, by column and row group. Reads only the footer and the filters.

    Raises what ``filters`` raises; a filter that cannot be read is a record with a problem.

    >>> import io, pyarrow as pa, pyarrow.parquet as pq
    >>> file = io.BytesIO()
    >>> options = {"id": {"ndv": 1000, "fpp": 0.01}}
    >>> pq.write_table(pa.table({"id": range(1000), "x": range(1000)}), file, bloom_filter_options=options)
    >>> found = inspect_file(file)
    >>> [(f.column, f.row_group) for f in found.filters], found.columns_without_filter
    ([('id', 0)], ('x',))
    """
    embedded = filters(path, columns)
    file = open_file(path)
    metadata = read_metadata(file, None)
    footer = metadata.footer
    numbers = {format_name(leaf.path): leaf.number for leaf in footer.leaves}
    records = [_record(found, metadata.chunk(found.row_group, numbers[found.column])) for found in embedded]
    with_filter = {record.column for record in records}
    return FileFilters(
        file=file.name,
        rows=sum(group.num_rows for group in footer.row_groups),
        row_groups=len(footer.row_groups),
        created_by=footer.created_by or "an unnamed writer",
        filters=tuple(sorted(records, key=lambda record: (numbers[record.column], record.row_group))),
        columns_without_filter=tuple(name for name in numbers if columns is None and name not in with_filter),
    )


def dictionary_bytes(chunk: ColumnChunk) -> int | None:
    """Return the size of a chunk's dictionary page, header included: it ends where the data pages begin."""
    start, end = chunk.dictionary_page_offset, chunk.data_page_offset
    if not start or end is None or end <= start:
        return None
    return end - start


def _record(found: EmbeddedFilter, chunk: ColumnChunk) -> FilterRecord:
    fill = fpp = ndv = problem = None
    size_bytes = found.length or 0
    try:
        bits = found.filter
    except (FilterFormatError, EncryptedFileError) as error:
        problem = error.code
    else:
        size_bytes = found.length or bits.num_bytes
        fill = int(np.bitwise_count(bits.words).sum(dtype=np.int64)) / (bits.num_blocks * BITS_PER_BLOCK)
        fpp, ndv = bits.fpp, bits.ndv if math.isfinite(bits.ndv) else None
    return FilterRecord(
        column=found.column,
        row_group=found.row_group,
        values=chunk.num_values,
        filter_bytes=size_bytes,
        fill=fill,
        fpp=fpp,
        ndv=ndv,
        dictionary_bytes=dictionary_bytes(chunk),
        column_bytes=chunk.total_compressed_size or 0,
        problem=problem,
    )
