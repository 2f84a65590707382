"""The values of one column exactly as the file stores them. Its Bloom filter hashes these.

Arrow reads a column by its logical type: decimals widen, timestamps get a unit, a schema stored by Arrow turns strings
into dictionaries and bytes into extension types. To avoid that, Arrow gets a footer with only one column and no logical
types. Then an INT32 is an int32, also if it is a date, a decimal or a UINT_8.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import types as pt
from thrift.Thrift import TType

from lakebloom.errors import DataFileError
from lakebloom.parquet.footer import MAGIC
from lakebloom.parquet.thrift_tree import Items, Struct, serialise
from lakebloom.tables.parquet.batches import plan_batches
from lakebloom.tables.parquet.footer import ArrowFooter
from lakebloom.tables.parquet.open import open_source, parquet_file, reading

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from lakebloom.parquet.footer import ColumnChunk, Footer, RowGroup
    from lakebloom.parquet.schema import Leaf

__all__ = ["StoredValues", "arrow_metadata"]

# Fields of FileMetaData, SchemaElement, RowGroup and ColumnMetaData that are needed to read pages. Statistics are
# not among them: they depend on the logical type.
_VERSION, _SCHEMA, _ROWS, _ROW_GROUPS, _CREATED_BY = 1, 2, 3, 4, 6
_OF_ELEMENT = (1, 2, 3, 4)
_NUM_CHILDREN = 5
_OF_ROW_GROUP = (2, 3)
_OF_CHUNK = (2,)
_OF_METADATA = (1, 2, 3, 4, 5, 6, 7, 9, 11, 13)


class StoredValues:
    """One column of the Parquet file at a canonical URI, open for reading.

    Raises what ``open_source`` raises, and DataFileError if Arrow cannot read the file.
    """

    def __init__(
        self, uri: str, footer: Footer, leaf: Leaf, options: Mapping[str, str], data: memoryview | None = None
    ) -> None:
        """``data`` is the file's content, if it is already in memory."""
        self._uri, self._footer, self._leaf = uri, footer, leaf
        with reading(uri):
            self._metadata = arrow_metadata(_untyped(footer, leaf))
        self._arrow_footer = ArrowFooter(self._metadata, frozenset())  # encrypted files were refused before
        self._source = open_source(uri, options) if data is None else pa.BufferReader(data)

    def __enter__(self) -> StoredValues:
        return self

    def __exit__(self, *exception: object) -> None:
        self._source.close()

    def of_row_group(self, number: int) -> Iterator[pa.Array]:
        """Yield every value of a row group at least once, in plain arrays that may have NULLs, batch by batch.

        For values that are stored as a small dictionary, yields only the dictionary. Raises DataFileError.
        """
        rows = 0
        for column in self._batches(number):
            rows += len(column)
            yield _plain(column)
        expected = self._footer.row_groups[number].num_rows
        if rows != expected:
            raise DataFileError(
                f"row group {number} of {self._uri} does not match its footer",
                found=f"{rows} rows instead of {expected}",
                hint="check that the file is complete",
            )

    def _batches(self, number: int) -> Iterator[pa.Array]:
        with reading(self._uri):
            group = self._metadata.row_group(number)
            dotted, chunk = ".".join(self._leaf.path), group.column(0)
            # Arrow reads only strings and bytes as dictionaries, and only outside of lists.
            is_text = self._leaf.physical_type == "BYTE_ARRAY" and not self._leaf.is_repeated
            plan = plan_batches(group.num_rows, {dotted: (chunk, "bytes" if is_text else "other")})
            # A row with a list has many values; limit the memory by these.
            rows = max(1, plan.rows * group.num_rows // max(chunk.num_values, group.num_rows, 1))
            reader = parquet_file(self._uri, self._source, self._arrow_footer, dictionaries=plan.dictionaries)
            batches = reader.iter_batches(rows, [number], use_threads=False)
        while True:
            with reading(self._uri):
                batch = next(batches, None)
            if batch is None:
                return
            yield batch.column(0)


def _plain(array: pa.Array) -> pa.Array:
    """Return the values inside lists, dictionaries and structs. There is one column: each struct has one field."""
    while True:
        kind = array.type
        if pt.is_dictionary(kind):
            array = array.dictionary
        elif pt.is_list(kind) or pt.is_large_list(kind):
            array = array.flatten()
        elif pt.is_struct(kind):
            (array,) = array.flatten()
        else:
            return array


def arrow_metadata(tree: Struct) -> Any:
    """Return a footer as pyarrow's FileMetaData. Raises Arrow's errors."""
    footer = serialise(tree)
    return pq.read_metadata(pa.BufferReader(MAGIC + footer + len(footer).to_bytes(4, "little") + MAGIC))


def _untyped(footer: Footer, leaf: Leaf) -> Struct:
    elements: list[Struct] = footer.tree.get(_SCHEMA, TType.LIST).values
    schema = [_some(elements[number], *_OF_ELEMENT) for number in (0, *leaf.ancestors)]
    for group in schema[:-1]:
        group.put(_NUM_CHILDREN, TType.I32, 1)
    tree = _some(footer.tree, _VERSION, _ROWS, _CREATED_BY)
    tree.put(_SCHEMA, TType.LIST, Items(TType.STRUCT, schema))
    groups = [_narrow_group(group, leaf) for group in footer.row_groups]
    tree.put(_ROW_GROUPS, TType.LIST, Items(TType.STRUCT, groups))
    return tree


def _narrow_group(group: RowGroup, leaf: Leaf) -> Struct:
    tree = _some(group.tree, *_OF_ROW_GROUP)
    tree.put(1, TType.LIST, Items(TType.STRUCT, [_narrow_chunk(group.columns[leaf.number])]))
    return tree


def _narrow_chunk(chunk: ColumnChunk) -> Struct:
    tree = _some(chunk.tree, *_OF_CHUNK)
    if chunk.metadata is not None:
        tree.put(3, TType.STRUCT, _some(chunk.metadata, *_OF_METADATA))
    return tree


def _some(tree: Struct, *numbers: int) -> Struct:
    """Return a struct of some of a struct's fields."""
    return Struct([entry for entry in tree.fields if entry[0] in numbers])
