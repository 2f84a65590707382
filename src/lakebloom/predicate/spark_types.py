"""Spark types by name, and the form in which a literal holds a value of each type.

    kind                        the literal's value         in Python, by ``decode``
    boolean                     true, false                 bool
    tinyint ... bigint          a number                    int
    date                        days since 1970-01-01       int
    timestamp, timestamp_ntz    microseconds since then     int
    float, double               text: "1.5", "NaN"          float
    decimal(p,s)                the unscaled digits: "150"  int, unscaled
    string                      the text                    str
    binary                      base64                      bytes

All other types (collated strings, char, varchar, intervals, ...) are OTHER: their literals are shown, never compared.
"""

from __future__ import annotations

import base64
import binascii
import enum
import re
import struct
from functools import lru_cache
from typing import TypeAlias

import msgspec

from lakebloom.tuning import CACHED_ANSWERS

__all__ = ["JsonValue", "Kind", "PlainValue", "SparkType", "decode", "decode_all", "is_legal", "spark_type"]

JsonValue: TypeAlias = bool | int | str
"""The value of a literal that is not NULL."""

PlainValue: TypeAlias = bool | int | float | str | bytes
"""The same value in Python."""


class Kind(enum.Enum):
    """A family of types that differ only in width."""

    BOOLEAN = enum.auto()
    INTEGER = enum.auto()
    FLOATING = enum.auto()
    DECIMAL = enum.auto()
    STRING = enum.auto()
    BINARY = enum.auto()
    DATE = enum.auto()
    TIMESTAMP = enum.auto()
    TIMESTAMP_NTZ = enum.auto()
    OTHER = enum.auto()


class SparkType(msgspec.Struct, frozen=True):
    """A kind, with the width of a number or the digits of a decimal."""

    kind: Kind
    bits: int = 0
    precision: int = 0
    scale: int = 0


_NAMED = {
    "boolean": SparkType(Kind.BOOLEAN),
    "tinyint": SparkType(Kind.INTEGER, bits=8),
    "smallint": SparkType(Kind.INTEGER, bits=16),
    "int": SparkType(Kind.INTEGER, bits=32),
    "bigint": SparkType(Kind.INTEGER, bits=64),
    "float": SparkType(Kind.FLOATING, bits=32),
    "double": SparkType(Kind.FLOATING, bits=64),
    "string": SparkType(Kind.STRING),
    "binary": SparkType(Kind.BINARY),
    "date": SparkType(Kind.DATE, bits=32),
    "timestamp": SparkType(Kind.TIMESTAMP, bits=64),
    "timestamp_ntz": SparkType(Kind.TIMESTAMP_NTZ, bits=64),
}
_DECIMAL = r"decimal\((\d+), ?(\d+)\)"
_DIGITS = r"-?[0-9]{1,38}"


@lru_cache(maxsize=CACHED_ANSWERS)
def spark_type(name: str) -> SparkType:
    """Return the type with this ``simpleString`` in Spark.

    >>> spark_type("decimal(10,2)")
    SparkType(kind=<Kind.DECIMAL: 4>, bits=0, precision=10, scale=2)
    >>> spark_type("string collate UTF8_LCASE").kind
    <Kind.OTHER: 10>
    """
    lower = name.lower()
    if lower in _NAMED:
        return _NAMED[lower]
    decimal = re.fullmatch(_DECIMAL, lower)
    if decimal is None:
        return SparkType(Kind.OTHER)
    precision, scale = int(decimal[1]), int(decimal[2])
    legal = 1 <= precision <= 38 and scale <= precision
    return SparkType(Kind.DECIMAL, precision=precision, scale=scale) if legal else SparkType(Kind.OTHER)


def is_legal(type: SparkType, value: JsonValue) -> bool:
    """Tell whether a literal of this type may hold this value."""
    if type.kind is Kind.OTHER:
        return True
    if type.kind is Kind.BOOLEAN:
        return isinstance(value, bool)
    if type.kind in (Kind.INTEGER, Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ):
        return isinstance(value, int) and not isinstance(value, bool) and fits(value, type.bits)
    if not isinstance(value, str):
        return False
    if type.kind is Kind.DECIMAL:
        return re.fullmatch(_DIGITS, value) is not None and abs(int(value)) < 10**type.precision
    if type.kind is Kind.FLOATING:
        return _is_float(value, type.bits)
    return _is_unicode(value) if type.kind is Kind.STRING else _is_base64(value)


def decode(type: SparkType, value: JsonValue) -> PlainValue:
    """Return a legal value in Python's form (see the table above)."""
    if type.kind is Kind.FLOATING:
        return float(value)
    if type.kind is Kind.DECIMAL:
        return int(value)
    if type.kind is Kind.BINARY:
        return base64.b64decode(str(value))
    return value


def decode_all(type: SparkType, values: list[JsonValue]) -> list[PlainValue]:
    """Return legal values in Python's form, as ``decode`` does with each of them."""
    if type.kind in (Kind.FLOATING, Kind.DECIMAL, Kind.BINARY):
        return [decode(type, value) for value in values]
    return list(values)


def fits(value: int, bits: int) -> bool:
    """Tell whether two's complement of this width holds the value."""
    return -(1 << (bits - 1)) <= value < 1 << (bits - 1)


def _is_float(text: str, bits: int) -> bool:
    try:
        number = float(text)
        # A float is written as the double that it widens to: 0.1 is not legal, 0.10000000149011612 is.
        return bits == 64 or number != number or struct.unpack("<f", struct.pack("<f", number))[0] == number
    except (ValueError, OverflowError):
        return False


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # half a surrogate pair
        return False
    return True


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        return False
    return True
