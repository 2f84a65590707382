"""The Thrift header in front of a filter inside a Parquet file.

    BloomFilterHeader   1: i32 numBytes                       size of the bitset that follows
                        2: union algorithm   { 1: BLOCK }     each union has one member so far, an empty struct
                        3: union hash        { 1: XXHASH }
                        4: union compression { 1: UNCOMPRESSED }

    15 40  1c 1c 00 00  1c 1c 00 00  1c 1c 00 00  00          compact protocol, 32-byte bitset: 15 bytes

A header may be followed by anything: the bitset, or padding (parquet-java pads encrypted headers to 100 bytes).
"""

from __future__ import annotations

import struct
from typing import Any

from thrift.protocol.TCompactProtocol import TCompactProtocol
from thrift.Thrift import TException, TType
from thrift.transport.TTransport import TMemoryBuffer

from lakebloom.errors import CorruptFilterError, UnsupportedFilterError
from lakebloom.sbbf.blocks import BYTES_PER_BLOCK

MAX_BITSET_BYTES = 2**31 - 1
MAX_HEADER_BYTES = 64
"""Headers have 15 to 20 bytes today; the rest is room for fields of a later specification."""

_CHOICES = {2: ("algorithm", "BLOCK"), 3: ("hash", "XXHASH"), 4: ("compression", "UNCOMPRESSED")}

_UNREADABLE = (TException, EOFError, ValueError, LookupError, TypeError, AssertionError, RecursionError, struct.error)
"""What the thrift package raises on bytes that are not Thrift."""

_NOT_A_FILTER = "check the offset; the Murmur3 filters of old Parquet drafts have another header and cannot be read"


def write_header(num_bytes: int) -> bytes:
    """Return the header of a bitset of this size."""
    transport = TMemoryBuffer()
    protocol = TCompactProtocol(transport)
    protocol.writeStructBegin("BloomFilterHeader")
    protocol.writeFieldBegin("numBytes", TType.I32, 1)
    protocol.writeI32(num_bytes)
    protocol.writeFieldEnd()
    for field, (union, member) in _CHOICES.items():
        _write_choice(protocol, field, union, member)
    protocol.writeFieldStop()
    protocol.writeStructEnd()
    return bytes(transport.getvalue())


def _write_choice(protocol: Any, field: int, union: str, member: str) -> None:
    protocol.writeFieldBegin(union, TType.STRUCT, field)
    protocol.writeStructBegin(union)
    protocol.writeFieldBegin(member, TType.STRUCT, 1)
    protocol.writeStructBegin(member)
    for _ in range(2):
        protocol.writeFieldStop()
        protocol.writeStructEnd()
        protocol.writeFieldEnd()


def read_header(data: bytes | memoryview) -> tuple[int, int]:
    """Return (bytes of the bitset, bytes of the header) from the start of ``data``.

    Raises CorruptFilterError for bytes that are not a header or have an impossible size, and UnsupportedFilterError for
    a header that names another algorithm, hash or compression.
    """
    start = bytes(data[:MAX_HEADER_BYTES])
    transport = TMemoryBuffer(start)
    try:
        fields = _read_fields(TCompactProtocol(transport, MAX_HEADER_BYTES, MAX_HEADER_BYTES))
    except _UNREADABLE as error:
        raise CorruptFilterError(
            "cannot read a Bloom filter header: the bytes are not a header in Thrift's compact protocol",
            found=f"{start[:16].hex(' ')} ({error.__class__.__name__})",
            hint=_NOT_A_FILTER,
        ) from error
    for field, (union, member) in _CHOICES.items():
        if fields.get(field) != 1:
            raise UnsupportedFilterError(
                f"cannot use a Bloom filter whose {union} is not {member}",
                found=f"{union} number {fields.get(field)}" if field in fields else f"no {union}",
                hint="rewrite the filter with a current writer" if field in fields else _NOT_A_FILTER,
            )
    size = fields.get(1)
    if size is None or not BYTES_PER_BLOCK <= size <= MAX_BITSET_BYTES:
        raise CorruptFilterError(
            f"a Bloom filter has {BYTES_PER_BLOCK} to {MAX_BITSET_BYTES} bytes",
            found="no size" if size is None else f"{size} bytes",
            hint=_NOT_A_FILTER,
        )
    return size, transport.cstringio_buf.tell()


def _read_fields(protocol: Any) -> dict[int, int]:
    """Read the size (field 1) and the member of each union (fields 2 to 4). Unknown fields are ignored."""
    fields: dict[int, int] = {}
    protocol.readStructBegin()
    while True:
        _, kind, number = protocol.readFieldBegin()
        if kind == TType.STOP:
            protocol.readStructEnd()
            return fields
        if number in fields:
            raise _malformed(f"field {number} twice")
        if number == 1 and kind == TType.I32:
            fields[number] = protocol.readI32()
        elif number in _CHOICES and kind == TType.STRUCT:
            fields[number] = _read_choice(protocol)
        else:
            protocol.skip(kind)
        protocol.readFieldEnd()


def _read_choice(protocol: Any) -> int:
    """Return the number of a union's only member, which is a struct; 0 if it has none."""
    chosen = 0
    protocol.readStructBegin()
    while True:
        _, kind, number = protocol.readFieldBegin()
        if kind == TType.STOP:
            protocol.readStructEnd()
            return chosen
        if chosen or kind != TType.STRUCT:
            raise _malformed("a union of several members" if chosen else "a union whose member is not a struct")
        chosen = number
        protocol.skip(kind)
        protocol.readFieldEnd()


def _malformed(found: str) -> CorruptFilterError:
    return CorruptFilterError("cannot read a Bloom filter header", found=found, hint=_NOT_A_FILTER)
