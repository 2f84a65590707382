"""Avro files of a table's metadata, read by pyiceberg's reader over a decoder that trusts no byte.

pyiceberg's compiled decoder does not check where the bytes end, and crashes the process on a damaged file. Its reader
takes a file that was cut off for one that ends there, and a table would silently lose files, or their deletes. And a
small file may claim any number of records: memory and time are bounded by what a file holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyiceberg.avro.decoder import BinaryDecoder
from pyiceberg.avro.file import AvroFile, Block
from pyiceberg.avro.resolver import resolve_reader
from pyiceberg.types import FixedType, ListType, MapType, StructType, UnknownType

from lakebloom.tables.formats.iceberg.unpacking import unpacked

if TYPE_CHECKING:
    from pyiceberg.schema import Schema
    from pyiceberg.types import IcebergType

__all__ = ["records"]

_SYNC_BYTES = 16
_MOST_INT_BYTES = 10
_MOST_BLOCK_BYTES = 1 << 27
_MOST_FILE_BYTES = 1 << 29
"""Unpacked. Writers begin another manifest after 8 MB, and another block after some kilobytes or with each entry."""


def records(data: bytes, schema: Schema, **options: Any) -> AvroFile[Any]:
    """Open an Avro file, to be iterated; its own schema is ``.schema``. Any error is one of a damaged file."""
    found = _StrictFile(None, schema, **options)  # type: ignore[arg-type]
    found.begin(data)
    return found


class _StrictFile(AvroFile[Any]):
    """Ends where its bytes end, after a whole block."""

    def begin(self, data: bytes) -> None:
        """Read the header."""
        self._data_size = len(data)
        self.decoder = _Decoder(data)
        self.header = self._read_header()
        self.schema = self.header.get_schema()
        _require_bytes(self.schema.as_struct())
        self._unpacked_bytes = 0
        assert self.read_schema is not None
        self.reader = resolve_reader(self.schema, self.read_schema, self.read_types, self.read_enums)

    def _read_block(self) -> int:
        """Go to the next block that has records. Raises EOFError where the file ends."""
        count = 0
        while not count:
            count = self._next_block()
        return count

    def _next_block(self) -> int:
        if self.block is not None and self.decoder.read(_SYNC_BYTES) != self.header.sync:
            raise ValueError("a block that does not end where it should")
        if self.decoder.tell() == self._data_size:
            raise EOFError
        count = self.decoder.read_int()
        data = self.decoder.read_bytes()
        codec = self.header.compression_codec()
        if codec is not None:
            data = unpacked(codec, data, min(_MOST_BLOCK_BYTES, _MOST_FILE_BYTES - self._unpacked_bytes))
        self._unpacked_bytes += len(data)
        if not 0 <= count <= len(data):
            raise ValueError(f"a block of {count} records in {len(data)} bytes")
        self.block = Block(reader=self.reader, block_records=count, block_decoder=_Decoder(data))
        return count


def _require_bytes(kind: IcebergType) -> None:
    """Raise ValueError for a list or a map of what takes no bytes: any number of it would fit into any file."""
    if isinstance(kind, StructType):
        for field in kind.fields:
            _require_bytes(field.field_type)
    elif isinstance(kind, ListType):
        if kind.element_required and _takes_nothing(kind.element_type):
            raise ValueError(f"a list of {kind.element_type}")
        _require_bytes(kind.element_type)
    elif isinstance(kind, MapType):
        if kind.value_required and _takes_nothing(kind.key_type) and _takes_nothing(kind.value_type):
            raise ValueError(f"a map of {kind.key_type} and {kind.value_type}")
        _require_bytes(kind.key_type)
        _require_bytes(kind.value_type)


def _takes_nothing(kind: IcebergType) -> bool:
    if isinstance(kind, StructType):
        return all(field.required and _takes_nothing(field.field_type) for field in kind.fields)
    return isinstance(kind, UnknownType) or (isinstance(kind, FixedType) and not len(kind))


class _Decoder(BinaryDecoder):
    """Reads values out of bytes, and nothing beyond them."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def tell(self) -> int:
        """Return the current position."""
        return self._at

    def read(self, n: int) -> bytes:
        """Read n bytes."""
        start = self._at
        self.skip(n)
        return self._data[start : self._at]

    def skip(self, n: int) -> None:
        """Skip n bytes."""
        if not 0 <= n <= len(self._data) - self._at:
            raise ValueError(f"{n} bytes where {len(self._data) - self._at} are left")
        self._at += n

    def read_int(self) -> int:
        """Read an int or long."""
        data, at = self._data, self._at
        found = shift = 0
        for number in data[at : at + _MOST_INT_BYTES]:
            at += 1
            found |= (number & 0x7F) << shift
            shift += 7
            if number < 0x80:
                self._at = at
                return (found >> 1) ^ -(found & 1)
        raise ValueError("a number that does not end")

    def skip_int(self) -> None:
        """Skip an int or long."""
        self.read_int()
