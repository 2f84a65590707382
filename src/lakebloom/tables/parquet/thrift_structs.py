"""Some fields of Thrift structs, decoded and encoded by thrift's own C code where there is one.

A class names the fields that it wants in ``thrift_spec``, in thrift's form; all others are skipped. It takes about a
microsecond a struct. ``lakebloom.parquet.thrift_tree`` keeps every field, and takes fifty times as long.

Bytes are not trusted: lengths are checked against the number of bytes, and structs nest at most 64 deep.
"""

from __future__ import annotations

import io
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "BINARY",
    "I32",
    "I64",
    "LIST",
    "LONG_LIST",
    "STRUCT",
    "Fields",
    "UnreadableStructError",
    "decode",
    "encode",
    "list_begin",
    "list_of",
    "struct_of",
]

I32, I64, BINARY, STRUCT, LIST = 8, 10, 11, 12, 15
"""Thrift's numbers of types."""
LONG_LIST = 15
"""A list of so many elements or more has its length behind the first byte."""


class UnreadableStructError(Exception):
    """Bytes are not such a struct, or only its beginning."""


class Fields:
    """A struct of which nothing is read; subclasses read what their ``thrift_spec`` names."""

    thrift_spec: ClassVar[tuple[Any, ...]] = (None,)

    def read(self, protocol: Any) -> None:
        """Fill in the fields, in thrift's Python form."""
        protocol.readStruct(self, self.thrift_spec)

    def write(self, protocol: Any) -> None:
        """Write the fields, in thrift's Python form."""
        protocol.writeStruct(self, self.thrift_spec)


def struct_of(number: int, name: str, kind: type[Fields]) -> tuple[int, int, str, Any, Any]:
    """Return the specification of a field that is a struct."""
    return number, STRUCT, name, [kind, kind.thrift_spec], None


def list_of(number: int, name: str, kind: type[Fields]) -> tuple[int, int, str, Any, Any]:
    """Return the specification of a field that is a list of structs."""
    return number, LIST, name, (STRUCT, [kind, kind.thrift_spec], False), None


def decode(struct: Fields, data: bytes, at: int = 0) -> int:
    """Fill in a struct from bytes that begin at an offset; return where they end.

    Raises UnreadableStructError, also where the bytes end before the struct.
    """
    source = _Bytes(data, at)
    try:
        _codec()[0](struct, source)
    except Exception as error:  # the decoders raise many kinds
        raise UnreadableStructError(f"{type(error).__name__}: {error}") from error
    return source.cstringio_buf.tell()


def encode(struct: Fields) -> bytes:
    """Return the bytes of a struct."""
    return _codec()[1](struct)


@cache
def _codec() -> tuple[Callable[[Fields, _Bytes], None], Callable[[Fields], bytes]]:
    """Return what decodes and what encodes a struct."""
    # Here and not above: much of lakebloom needs no footer. The C code alone loads in two milliseconds.
    try:
        from thrift.protocol.fastbinary import decode_compact, encode_compact
    except ImportError:  # thrift was installed without it
        return _decode_slowly, _encode_slowly
    return (
        lambda struct, source: decode_compact(struct, source, [type(struct), struct.thrift_spec]),
        lambda struct: bytes(encode_compact(struct, [type(struct), struct.thrift_spec])),
    )


def _decode_slowly(struct: Fields, source: _Bytes) -> None:
    from thrift.protocol.TCompactProtocol import TCompactProtocol

    class Protocol(TCompactProtocol):  # type: ignore[misc]  # thrift has no types
        # What is skipped is taken for text, and a minimum of some bytes is none.
        readString = TCompactProtocol.readBinary  # noqa: N815  # thrift calls it so

    struct.read(Protocol(source, source.string_length_limit, source.container_length_limit))


def _encode_slowly(struct: Fields) -> bytes:
    from thrift.protocol.TCompactProtocol import TCompactProtocol
    from thrift.transport.TTransport import TMemoryBuffer

    transport = TMemoryBuffer()
    struct.write(TCompactProtocol(transport))
    return bytes(transport.getvalue())


def list_begin(count: int) -> bytes:
    """Return the bytes that begin a list of so many structs."""
    if count < LONG_LIST:
        return bytes([count << 4 | STRUCT])
    sizes = []
    while count > 0x7F:
        sizes.append(count & 0x7F | 0x80)
        count >>= 7
    return bytes([LONG_LIST << 4 | STRUCT, *sizes, count])


class _Bytes:
    """What thrift's decoders want to know of a protocol and its transport: where the bytes are, how many at most."""

    def __init__(self, data: bytes, at: int) -> None:
        self.trans = self
        self.cstringio_buf = io.BytesIO(data)
        self.cstringio_buf.seek(at)
        self.string_length_limit = self.container_length_limit = len(data)

    def cstringio_refill(self, partial: bytes, _: int) -> io.BytesIO:
        """Raise EOFError: there are no more bytes."""
        raise EOFError(f"{len(partial)} bytes left")

    def readAll(self, size: int) -> bytes:  # noqa: N802  # thrift calls it so
        """Return so many bytes."""
        data = self.cstringio_buf.read(size)
        if len(data) < size:
            raise EOFError(f"{len(data)} bytes left")
        return data
