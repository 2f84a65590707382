"""Reads and probes the filters inside a Parquet file.

The footer is read once, in one read unless it is very long; then each filter that is used, in one more read. A
column without filters costs nothing beyond the footer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lakebloom.calls import typed_call
from lakebloom.errors import CorruptFooterError, FilterFormatError
from lakebloom.parquet.embedded_filter import EmbeddedFilter
from lakebloom.parquet.metadata import Metadata, read_metadata
from lakebloom.parquet.open_file import open_file
from lakebloom.parquet.probes import probe_for
from lakebloom.tables.columns import ColumnNames, format_name, parse_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakebloom.parquet.encryption import KeyRetriever
    from lakebloom.parquet.footer import ColumnChunk, Source
    from lakebloom.parquet.open_file import OpenFile
    from lakebloom.parquet.schema import Leaf
    from lakebloom.sbbf.kernels import BoolArray
    from lakebloom.sbbf.values.probes import Probe

__all__ = ["filters", "might_contain"]


@typed_call
def filters(
    path: Source, columns: str | Sequence[str] | None = None, *, key_retriever: KeyRetriever | None = None
) -> list[EmbeddedFilter]:
    """Return the filters of a Parquet file, of all columns or of those named, by row group and column.

    `path` is a local path, a URI (file, s3, gs, az, abfs) or an open file of Python or pyarrow, which must stay open.
    Columns are leaves, named in Spark's convention. `key_retriever` returns the keys of an encrypted file: a function
    from a key's metadata to its bytes.

    Raises ColumnNotFoundError; NotParquetError or CorruptFooterError; EncryptedFileError if a key is missing or
    wrong; NotFoundError, AccessDeniedError or StorageError.

    >>> import io, pyarrow as pa, pyarrow.parquet as pq
    >>> file = io.BytesIO()
    >>> options = {"id": {"ndv": 1000, "fpp": 0.001}}
    >>> pq.write_table(pa.table({"id": range(1000)}), file, bloom_filter_options=options)
    >>> [found] = filters(file)
    >>> found.row_group, found.column, 42 in found.filter, -1 in found.filter
    (0, 'id', True, False)
    """
    file = open_file(path)
    metadata = read_metadata(file, key_retriever)
    leaves = metadata.footer.leaves
    if columns is not None:
        names = [columns] if isinstance(columns, str) else list(columns)
        wanted = {find_leaf(leaves, name).number for name in names}
        leaves = tuple(leaf for leaf in leaves if leaf.number in wanted)
    located = (
        _locate(file, metadata, row_group, leaf)
        for row_group in range(len(metadata.footer.row_groups))
        for leaf in leaves
    )
    return [found for found in located if found is not None]


@typed_call
def might_contain(path: Source, column: str, values: object, *, key_retriever: KeyRetriever | None = None) -> BoolArray:
    """Tell for each row group and value whether the value may be there: False is certain.

    Returns an array of bools [row groups, values], also for a single value. `path`, `column` and `key_retriever` are
    those of `filters`; `values` are a scalar, a sequence, numpy or Arrow values. They are compared by value with those
    of the column, in any width, unit or scale. As in ``Sbbf``, a NULL is in no filter.

    The result is True for what a filter cannot decide: a row group without a filter, or with a damaged or empty one,
    unless the statistics say that all values are NULL; a value that the column's type cannot hold, or of another kind
    (text for a number, a timestamp without time zone for one in UTC); NaN; every value of a BOOLEAN column.

    Raises what `filters` raises, and ValueConversionError for Python values that have no common type.

    >>> import io, pyarrow as pa, pyarrow.parquet as pq
    >>> file = io.BytesIO()
    >>> options = {"id": {"ndv": 1000, "fpp": 0.001}}
    >>> pq.write_table(pa.table({"id": range(2000)}), file, row_group_size=1000, bloom_filter_options=options)
    >>> might_contain(file, "id", [1, 1999, -1])
    array([[ True, False, False],
           [False,  True, False]])
    """
    file = open_file(path)
    metadata = read_metadata(file, key_retriever)
    leaf = find_leaf(metadata.footer.leaves, column)
    probe = probe_for(leaf.element, values, metadata.footer.key_value_metadata)
    answers = [
        _probe_row_group(file, metadata, row_group, leaf, probe) for row_group in range(len(metadata.footer.row_groups))
    ]
    return np.array(answers, dtype=np.bool_).reshape(len(answers), len(probe))


def _probe_row_group(file: OpenFile, metadata: Metadata, row_group: int, leaf: Leaf, probe: Probe) -> BoolArray:
    found = _locate(file, metadata, row_group, leaf) if probe.needs_filter else None
    if found is None:
        return probe.without_filter()
    try:
        bits = found.filter
    except FilterFormatError:  # an unreadable filter decides nothing
        return probe.without_filter()
    if not bits.words.any() and not _is_all_null(metadata.chunk(row_group, leaf.number)):
        return probe.without_filter()  # an empty filter was never filled
    return probe.run(bits)


def _is_all_null(chunk: ColumnChunk) -> bool:
    return chunk.null_count is not None and chunk.null_count == chunk.num_values


def _locate(file: OpenFile, metadata: Metadata, row_group: int, leaf: Leaf) -> EmbeddedFilter | None:
    chunk = metadata.chunk(row_group, leaf.number)
    if (chunk.path_in_schema, chunk.physical_type) != (leaf.path, leaf.physical_type):
        raise CorruptFooterError(
            f"the footer of {file.name} contradicts itself",
            found=f"a chunk of {format_name(chunk.path_in_schema)} in {chunk.physical_type} where "
            f"{format_name(leaf.path)} in {leaf.physical_type} should be",
            hint="check that the file is complete",
        )
    if chunk.bloom_filter_offset is None or chunk.file_path is not None:  # pages and filter are in another file
        return None
    return EmbeddedFilter(
        row_group=row_group,
        column=format_name(leaf.path),
        offset=chunk.bloom_filter_offset,
        length=chunk.bloom_filter_length,
        _file=file,
        _metadata=metadata,
        _key=metadata.key_of(row_group, leaf.number),
    )


def find_leaf(leaves: Sequence[Leaf], name: str) -> Leaf:
    """Return the column of this name, in Spark's convention. Raises ColumnNotFoundError."""
    names = ColumnNames([leaf.path for leaf in leaves], case_sensitive=True)
    path = names.require(parse_name(name), where="the file")
    (number,) = names.matches(path)
    return leaves[number]
