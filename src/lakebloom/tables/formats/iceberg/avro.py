"""Avro files of a table's metadata, read by pyiceberg's reader over a decoder that trusts no byte.

pyiceberg's compiled decoder does not check where the bytes end, and crashes the process on a damaged file. Its reader
takes a file that was cut off for one that ends there, and a table would silently lose files, or their deletes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyiceberg.avro.decoder import BinaryDecoder
from pyiceberg.avro.file import AvroFile, Block
from pyiceberg.avro.resolver import resolve_reader

if TYPE_CHECKING:
    from pyiceberg.schema import Schema

__all__ = ["records"]

_SYNC_BYTES = 16
_MOST_INT_BYTES = 10


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
            data = codec.decompress(data)
        if count < 0:
            raise ValueError(f"a block of {count} records")
        self.block = Block(reader=self.reader, block_records=count, block_decoder=_Decoder(data))
        return count


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
