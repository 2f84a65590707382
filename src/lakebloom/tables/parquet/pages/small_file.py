"""Pages of some columns as a small Parquet file in memory, which PyArrow decodes.

    4 bytes  [dictionary page] data pages  [dictionary page] data pages ...     footer  length  "PAR1"

The pages are read to their places in it, with room for a footer at the end. The file has one row group, and a chunk
for each leaf. The chunks of flat columns may have different numbers of rows, because each is read by itself. The
elements of the schema are those of the file, byte by byte, and so is Arrow's own schema where the file has one: what
PyArrow reads has the same type as what it reads of the file.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakebloom.tables.parquet.arrow_reader import open_reader
from lakebloom.tables.parquet.thrift_structs import (
    BINARY,
    I32,
    I64,
    LIST,
    Fields,
    encode,
    list_begin,
    list_of,
    struct_of,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from lakebloom.tables.parquet.file_schema import FileColumn

__all__ = [
    "ARROW_SCHEMA",
    "MAGIC",
    "SmallChunk",
    "arrow_schema_text",
    "footer_bytes",
    "footer_room",
    "open_small",
    "schema_bytes",
]

MAGIC = b"PAR1"
ARROW_SCHEMA = b"ARROW:schema"
_VERSION_2 = b"\x15\x04"
_SCHEMA_BEGINS = b"\x19"
"""In Thrift's compact form: field 1, an i32, is 2; field 2 is a list."""


_CHUNK_BYTES, _REST_BYTES = 128, 256
"""More than the metadata of a chunk takes, and the rest of a footer beside its schemas."""


class _Root(Fields):
    thrift_spec = (
        None,
        None,
        None,
        None,
        (4, BINARY, "name", "BINARY", None),
        (5, I32, "num_children", None, None),
    )
    name = b"schema"

    def __init__(self, num_children: int) -> None:
        self.num_children = num_children


class SmallChunk(Fields):
    """The metadata of a chunk: the numbers of the format."""

    thrift_spec = (
        None,
        (1, I32, "type", None, None),
        (2, LIST, "encodings", (I32, None, False), None),
        (3, LIST, "path", (BINARY, "BINARY", False), None),
        (4, I32, "codec", None, None),
        (5, I64, "num_values", None, None),
        (6, I64, "size_bytes", None, None),
        (7, I64, "size_bytes", None, None),
        None,
        (9, I64, "data_page_offset", None, None),
        None,
        (11, I64, "dictionary_page_offset", None, None),
    )
    # Required by the format, and not used by readers.
    encodings = (0,)
    path = (b"",)

    def __init__(
        self,
        type: int,
        codec: int,
        num_values: int,
        size_bytes: int,
        data_page_offset: int,
        dictionary_page_offset: int | None,
    ) -> None:
        self.type, self.codec, self.num_values, self.size_bytes = type, codec, num_values, size_bytes
        self.data_page_offset, self.dictionary_page_offset = data_page_offset, dictionary_page_offset


class _ColumnChunk(Fields):
    thrift_spec = (None, None, (2, I64, "file_offset", None, None), struct_of(3, "metadata", SmallChunk))
    file_offset = 0

    def __init__(self, metadata: SmallChunk) -> None:
        self.metadata = metadata


class _RowGroup(Fields):
    thrift_spec = (
        None,
        list_of(1, "chunks", _ColumnChunk),
        (2, I64, "size_bytes", None, None),
        (3, I64, "num_rows", None, None),
    )

    def __init__(self, chunks: Sequence[SmallChunk], num_rows: int) -> None:
        self.chunks = [_ColumnChunk(chunk) for chunk in chunks]
        self.size_bytes = sum(chunk.size_bytes for chunk in chunks)
        self.num_rows = num_rows


class _KeyValue(Fields):
    thrift_spec = (None, (1, BINARY, "key", "BINARY", None), (2, BINARY, "value", "BINARY", None))

    def __init__(self, key: bytes, value: bytes) -> None:
        self.key, self.value = key, value


class _Rest(Fields):
    """The fields of a footer behind its schema. Thrift counts numbers from the field before, which is the second."""

    thrift_spec = (
        None,
        (1, I64, "num_rows", None, None),
        list_of(2, "row_groups", _RowGroup),
        list_of(3, "key_values", _KeyValue),
    )

    def __init__(self, row_group: _RowGroup, key_values: Sequence[_KeyValue]) -> None:
        self.num_rows, self.row_groups = row_group.num_rows, [row_group]
        self.key_values = list(key_values) or None


def schema_bytes(columns: Sequence[FileColumn]) -> bytes:
    """Return the beginning of a footer: its version and its schema."""
    count = 1 + sum(column.num_elements for column in columns)
    elements = b"".join(column.elements for column in columns)
    return b"".join((_VERSION_2, _SCHEMA_BEGINS, list_begin(count), encode(_Root(len(columns))), elements))


def arrow_schema_text(schema: pa.Schema) -> bytes:
    """Return Arrow's own schema as a footer has it."""
    return base64.b64encode(schema.serialize())


def footer_bytes(schema: bytes, chunks: Sequence[SmallChunk], num_rows: int, arrow_schema: bytes | None) -> bytes:
    """Return what stands behind the pages."""
    key_values = [] if arrow_schema is None else [_KeyValue(ARROW_SCHEMA, arrow_schema)]
    footer = schema + encode(_Rest(_RowGroup(chunks, num_rows), key_values))
    return footer + len(footer).to_bytes(4, "little") + MAGIC


def footer_room(schema: bytes, arrow_schema: bytes | None, num_chunks: int) -> int:
    """Return how long a footer with so many chunks is at most."""
    return len(schema) + len(arrow_schema or b"") + _CHUNK_BYTES * num_chunks + _REST_BYTES


def open_small(pages: memoryview, room: int, footer: bytes, dictionaries: Collection[int] = ()) -> Any:
    """Open pages as a file is opened. The last bytes, as many as there is ``room``, become the footer.

    The leaves in ``dictionaries`` are read as such.
    """
    if len(footer) > room:
        raise ValueError(f"a footer of {len(footer)} bytes, and room for {room}")
    pages[-len(footer) :] = footer
    return open_reader(pa.BufferReader(pages), None, dictionaries=dictionaries)
