"""Any Thrift struct as a tree without loss: reading and writing keeps all fields, also unknown ones.

A struct is a list of (number, kind, value) in the order of the bytes, where ``kind`` is one of thrift's ``TType``:

    BOOL, BYTE, I16, I32, I64, DOUBLE    bool, int, float
    STRING                               bytes
    STRUCT                               Struct
    LIST, SET                            Items
    MAP                                  Pairs
    UUID                                 uuid.UUID

Bytes are not trusted. Sizes are checked against the number of remaining bytes, structs nest at most
``MAX_DEPTH`` deep, and every element takes at least a byte: time and memory are linear in the length of the bytes.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from thrift.protocol.TCompactProtocol import TCompactProtocol
from thrift.Thrift import TException, TType
from thrift.transport.TTransport import TMemoryBuffer

from lakebloom.errors import CorruptFooterError

__all__ = ["Items", "Pairs", "Struct", "Value", "parse", "serialise"]

MAX_DEPTH = 64
"""Parquet's own structs nest nine deep."""

Value: TypeAlias = Any
Field: TypeAlias = tuple[int, int, Value]

_RANGES = {
    kind: range(-(1 << bits - 1), 1 << bits - 1)
    for kind, bits in ((TType.BYTE, 8), (TType.I16, 16), (TType.I32, 32), (TType.I64, 64))
}
_UNREADABLE = (TException, EOFError, ValueError, LookupError, TypeError, AssertionError, struct.error)
"""Exceptions of the thrift package for bytes that are not Thrift."""


@dataclass(slots=True)
class Struct:
    """Fields in the order of the bytes."""

    fields: list[Field] = field(default_factory=list)

    def get(self, number: int, kind: int) -> Any:
        """Return a field's value, None if it is missing. Raises CorruptFooterError if it has another kind."""
        for found, found_kind, value in self.fields:
            if found == number:
                if found_kind != kind:
                    raise _corrupt(f"field {number} of Thrift type {found_kind} instead of {kind}")
                return value
        return None

    def put(self, number: int, kind: int, value: Value) -> None:
        """Set a field. A new one is inserted before the first field with a higher number."""
        new = (number, kind, value)
        for at, (found, _, _) in enumerate(self.fields):
            if found == number:
                self.fields[at] = new
                return
            if found > number:
                self.fields.insert(at, new)
                return
        self.fields.append(new)

    def drop(self, *numbers: int) -> None:
        """Remove fields, if they exist."""
        self.fields = [entry for entry in self.fields if entry[0] not in numbers]


@dataclass(slots=True)
class Items:
    """The elements of a list or set."""

    kind: int
    values: list[Value]


@dataclass(slots=True)
class Pairs:
    """The entries of a map."""

    key_kind: int
    value_kind: int
    entries: list[tuple[Value, Value]]


def parse(data: bytes) -> tuple[Struct, int]:
    """Read the struct at the start of ``data``; return it and how many bytes it has.

    Raises CorruptFooterError for bytes that are not a struct in Thrift's compact protocol.

    >>> parse(bytes([0x15, 0x04, 0x00, 0xFF]))
    (Struct(fields=[(1, 8, 2)]), 3)
    """
    transport = _Bytes(data)
    protocol = TCompactProtocol(transport, len(data), len(data))
    try:
        return _read_struct(protocol, MAX_DEPTH), transport.at
    except CorruptFooterError:
        raise
    except _UNREADABLE as error:
        raise _corrupt(f"{error.__class__.__name__} at byte {transport.at} of {len(data)}") from error


def serialise(tree: Struct) -> bytes:
    """Return the bytes of a struct in Thrift's compact protocol."""
    transport = TMemoryBuffer()
    _write_struct(TCompactProtocol(transport), tree)
    return bytes(transport.getvalue())


class _Bytes:
    """A transport over bytes. Thrift's own needs three calls for each byte, and they would take most of the time."""

    __slots__ = ("at", "data")

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def readAll(self, size: int) -> bytes:  # noqa: N802  # thrift calls it so
        start, end = self.at, self.at + size
        if end > len(self.data):
            raise EOFError
        self.at = end
        return self.data[start:end]


def _read_struct(protocol: Any, depth: int) -> Struct:
    if depth == 0:
        raise _corrupt(f"structs or lists nested more than {MAX_DEPTH} deep")
    fields: list[Field] = []
    protocol.readStructBegin()
    while True:
        _, kind, number = protocol.readFieldBegin()
        if kind == TType.STOP:
            protocol.readStructEnd()
            break
        if number not in _RANGES[TType.I16]:
            raise _corrupt(f"field number {number}")
        fields.append((number, kind, _read_value(protocol, kind, depth)))
        protocol.readFieldEnd()
    if len({number for number, _, _ in fields}) != len(fields):  # readers disagree which one counts
        raise _corrupt("a field twice in one struct")
    return Struct(fields)


def _read_value(protocol: Any, kind: int, depth: int) -> Value:
    if kind == TType.STRUCT:
        return _read_struct(protocol, depth - 1)
    if kind in (TType.LIST, TType.SET):
        return _read_items(protocol, depth - 1)
    if kind == TType.MAP:
        return _read_pairs(protocol, depth - 1)
    value = _READ[kind](protocol)
    if kind in _RANGES and value not in _RANGES[kind]:
        raise _corrupt("a number that its type cannot hold")
    return value


def _read_items(protocol: Any, depth: int) -> Items:
    if depth == 0:
        raise _corrupt(f"structs or lists nested more than {MAX_DEPTH} deep")
    kind, count = protocol.readListBegin()
    if kind == TType.STOP:  # elements without bytes: nothing would limit their number
        raise _corrupt("a list without a type")
    values = [_read_value(protocol, kind, depth) for _ in range(count)]
    protocol.readListEnd()
    return Items(kind, values)


def _read_pairs(protocol: Any, depth: int) -> Pairs:
    if depth == 0:
        raise _corrupt(f"structs or lists nested more than {MAX_DEPTH} deep")
    key_kind, value_kind, count = protocol.readMapBegin()
    if count and TType.STOP in (key_kind, value_kind):
        raise _corrupt("a map without types")
    entries = []
    for _ in range(count):
        key = _read_value(protocol, key_kind, depth)
        entries.append((key, _read_value(protocol, value_kind, depth)))
    protocol.readMapEnd()
    return Pairs(key_kind, value_kind, entries)


_READ = {
    TType.BOOL: TCompactProtocol.readBool,
    TType.BYTE: TCompactProtocol.readByte,
    TType.I16: TCompactProtocol.readI16,
    TType.I32: TCompactProtocol.readI32,
    TType.I64: TCompactProtocol.readI64,
    TType.DOUBLE: TCompactProtocol.readDouble,
    TType.STRING: TCompactProtocol.readBinary,
    TType.UUID: TCompactProtocol.readUuid,
}
_WRITE = {
    TType.BOOL: TCompactProtocol.writeBool,
    TType.BYTE: TCompactProtocol.writeByte,
    TType.I16: TCompactProtocol.writeI16,
    TType.I32: TCompactProtocol.writeI32,
    TType.I64: TCompactProtocol.writeI64,
    TType.DOUBLE: TCompactProtocol.writeDouble,
    TType.STRING: TCompactProtocol.writeBinary,
    TType.UUID: TCompactProtocol.writeUuid,
}


def _write_struct(protocol: Any, tree: Struct) -> None:
    protocol.writeStructBegin("")
    for number, kind, value in tree.fields:
        protocol.writeFieldBegin("", kind, number)
        _write_value(protocol, kind, value)
        protocol.writeFieldEnd()
    protocol.writeFieldStop()
    protocol.writeStructEnd()


def _write_value(protocol: Any, kind: int, value: Any) -> None:
    if kind == TType.STRUCT:
        _write_struct(protocol, value)
    elif kind in (TType.LIST, TType.SET):
        protocol.writeListBegin(value.kind, len(value.values))
        for element in value.values:
            _write_value(protocol, value.kind, element)
        protocol.writeListEnd()
    elif kind == TType.MAP:
        protocol.writeMapBegin(value.key_kind, value.value_kind, len(value.entries))
        for key, element in value.entries:
            _write_value(protocol, value.key_kind, key)
            _write_value(protocol, value.value_kind, element)
        protocol.writeMapEnd()
    else:
        _WRITE[kind](protocol, value)


def _corrupt(found: str) -> CorruptFooterError:
    return CorruptFooterError(
        "cannot read the footer of a Parquet file: it is not a struct in Thrift's compact protocol",
        found=found,
        hint="check that the file is complete",
    )
