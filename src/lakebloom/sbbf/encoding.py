"""Which bytes of a value are hashed: one encoder, three targets.

``CANONICAL``  what an index hashes: the same bytes for the same Spark value, whatever file it came from. One zero, one
               NaN, timestamps in microseconds. Types for which a Bloom filter cannot help, or which Spark compares in
               a way that hashing cannot follow, are refused.
``Parquet``    what a filter inside a Parquet file hashes: the PLAIN bytes of the file's own physical type, which the
               target names (INT32, FIXED_LEN_BYTE_ARRAY of 7, ...); without one, that which Arrow writes the type to.
``LANCE``      what Lance's index hashes: the Arrow value's own width, so an int8 is one byte.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NoReturn, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from lakebloom.errors import InvalidArgumentError, UnsupportedTypeError, ValueConversionError
from lakebloom.sbbf import decimals
from lakebloom.sbbf.buffers import byte_view, fixed_rows, without_nulls
from lakebloom.sbbf.layouts import Fixed, Floats, Layout, Offsets, Views

if TYPE_CHECKING:
    from lakebloom.sbbf.kernels import ByteArray

__all__ = [
    "CANONICAL",
    "LANCE",
    "PARQUET",
    "Canonical",
    "Encoding",
    "Lance",
    "Parquet",
    "PhysicalType",
    "encode",
]

PhysicalType: TypeAlias = Literal[
    "BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"
]

_JULIAN_DAY_OF_EPOCH = 2_440_588
_NANOS_PER_DAY = 86_400_000_000_000


@dataclass(frozen=True, slots=True)
class Canonical:
    """The bytes that an index hashes for a Spark value."""


@dataclass(frozen=True, slots=True)
class Parquet:
    """The bytes that a Parquet file's own filter hashes."""

    physical_type: PhysicalType | None = None
    type_length: int | None = None


@dataclass(frozen=True, slots=True)
class Lance:
    """The bytes that a Lance Bloom filter index hashes."""


Encoding: TypeAlias = Canonical | Parquet | Lance
CANONICAL, PARQUET, LANCE = Canonical(), Parquet(), Lance()


def encode(array: pa.Array, encoding: Encoding) -> Layout:
    """Lay out an array's values as the bytes to hash; what stands in NULL slots is undefined but safe to read.

    Raises UnsupportedTypeError for a type the encoding has no bytes for, and ValueConversionError for a value that
    the target type cannot hold.
    """
    if pt.is_null(array.type):
        return Fixed(np.zeros((len(array), 0), dtype=np.uint8))
    if isinstance(array, pa.ExtensionArray):
        return encode(array.storage, encoding)
    if isinstance(encoding, Canonical):
        return _canonical(array)
    if isinstance(encoding, Lance):
        return _lance(array)
    return _parquet(array, encoding)


def _canonical(array: pa.Array) -> Layout:
    kind = array.type
    if pt.is_boolean(kind) or pt.is_int8(kind):
        _refuse(kind, "a Bloom filter over at most 256 values skips nothing", "index another column")
    if pt.is_uint8(kind) or pt.is_uint16(kind) or pt.is_int16(kind):
        return _fixed(_cast(array, pa.int32()))
    if pt.is_uint32(kind):  # Spark reads it as bigint
        return _fixed(_cast(array, pa.int64()))
    if pt.is_uint64(kind):  # Spark reads it as decimal(20,0)
        return _canonical(_cast(array, pa.decimal128(20, 0)))
    if pt.is_date64(kind):
        return _fixed(_cast(array, pa.date32()))
    if pt.is_int32(kind) or pt.is_int64(kind) or pt.is_date32(kind):
        return _fixed(array)
    if pt.is_timestamp(kind):
        return _fixed(_cast(array, pa.timestamp("us", kind.tz)))
    if pt.is_float32(kind) or pt.is_float64(kind):
        return Floats(_fixed(array).values)
    if pt.is_decimal(kind):
        if kind.precision <= 9:
            return Fixed(decimals.little_endian(array, 4))
        if kind.precision <= 18:
            return Fixed(decimals.little_endian(array, 8))
        if kind.precision <= 38:
            return Fixed(decimals.big_endian(array, decimals.min_bytes(kind.precision)))
    if _is_bytes(kind):
        return _bytes(array)
    _refuse(kind, "an index has no hash for it", "index one of its leaves, or cast the column when writing it")


def _lance(array: pa.Array) -> Layout:
    kind = array.type
    if pt.is_fixed_size_binary(kind) or pt.is_float16(kind):
        _refuse(kind, "Lance's Bloom filter index does not accept it", "index another column")
    if _is_bytes(kind):
        return _bytes(array)
    if pt.is_integer(kind) or pt.is_floating(kind) or pt.is_date(kind) or pt.is_time(kind) or pt.is_timestamp(kind):
        return _fixed(array)
    _refuse(kind, "Lance's Bloom filter index does not accept it", "index another column")


def _parquet(array: pa.Array, target: Parquet) -> Layout:
    kind = array.type
    physical = target.physical_type or _physical_type_of(kind)
    if pt.is_decimal(kind):
        return _parquet_decimal(array, physical, target.type_length)
    if physical == "BOOLEAN" and pt.is_boolean(kind):
        return _fixed(_cast(array, pa.uint8()))
    if physical == "INT32" and not pt.is_floating(kind):
        return _fixed(_int32(array))
    if physical == "INT64" and not pt.is_floating(kind):
        return _fixed(_int64(array))
    if physical == "INT96" and pt.is_timestamp(kind):
        return Fixed(_int96(array))
    if physical == "FLOAT" and pt.is_floating(kind):
        return _fixed(_cast(array, pa.float32()))
    if physical == "DOUBLE" and pt.is_floating(kind):
        return _fixed(_cast(array, pa.float64()))
    if physical == "BYTE_ARRAY" and _is_bytes(kind):
        return _bytes(array)
    if physical == "FIXED_LEN_BYTE_ARRAY" and pt.is_float16(kind):
        return _fixed(array)
    if physical == "FIXED_LEN_BYTE_ARRAY" and _is_bytes(kind):
        return _bytes(array if target.type_length is None else _cast(array, pa.binary(target.type_length)))
    _refuse(kind, f"its values are not those of a Parquet column of type {physical}", "cast the values first")


def _physical_type_of(kind: pa.DataType) -> PhysicalType:
    """Return the physical type that Arrow gives a column of this type."""
    if pt.is_boolean(kind):
        return "BOOLEAN"
    if pt.is_float32(kind):
        return "FLOAT"
    if pt.is_float64(kind):
        return "DOUBLE"
    if pt.is_decimal(kind) or pt.is_fixed_size_binary(kind) or pt.is_float16(kind):
        return "FIXED_LEN_BYTE_ARRAY"
    if _is_bytes(kind):
        return "BYTE_ARRAY"
    if pt.is_date(kind) or pt.is_time32(kind):
        return "INT32"
    if pt.is_time64(kind) or pt.is_timestamp(kind) or pt.is_duration(kind):
        return "INT64"
    if pt.is_integer(kind):
        return "INT64" if kind.bit_width == 64 else "INT32"
    _refuse(kind, "Parquet has no Bloom filter for it", "name one of its leaves")


def _parquet_decimal(array: pa.Array, physical: PhysicalType, type_length: int | None) -> Layout:
    if physical == "INT32":
        return Fixed(decimals.little_endian(array, 4))
    if physical == "INT64":
        return Fixed(decimals.little_endian(array, 8))
    if physical == "FIXED_LEN_BYTE_ARRAY":
        return Fixed(decimals.big_endian(array, type_length or decimals.min_bytes(array.type.precision)))
    _refuse(array.type, f"a decimal of physical type {physical} has no fixed bytes", "read the rows instead")


def _int32(array: pa.Array) -> pa.Array:
    kind = array.type
    if pt.is_date64(kind):
        return _cast(array, pa.date32())
    if pt.is_time32(kind):
        return _cast(array, pa.time32("ms"))
    if pt.is_uint32(kind):  # UINT_32 keeps its bits
        return array.view(pa.int32())
    if pt.is_integer(kind):
        return _cast(array, pa.int32())
    if pt.is_date32(kind):
        return array
    _refuse(kind, "its values are not those of a Parquet column of type INT32", "cast the values first")


def _int64(array: pa.Array) -> pa.Array:
    kind = array.type
    if pt.is_timestamp(kind) and kind.unit == "s":  # Parquet's coarsest unit is the millisecond
        return _cast(array, pa.timestamp("ms", kind.tz))
    if pt.is_uint64(kind) or pt.is_timestamp(kind) or pt.is_time64(kind) or pt.is_duration(kind):
        return array
    if pt.is_integer(kind):
        return _cast(array, pa.int64())
    _refuse(kind, "its values are not those of a Parquet column of type INT64", "cast the values first")


def _int96(array: pa.Array) -> ByteArray:
    nanos = _fixed(_cast(array, pa.timestamp("ns", array.type.tz))).values.view("<i8")[:, 0]
    days, nanos_of_day = np.divmod(nanos, _NANOS_PER_DAY)
    rows = np.empty(len(nanos), dtype=[("nanos", "<i8"), ("day", "<i4")])
    rows["nanos"], rows["day"] = nanos_of_day, days + _JULIAN_DAY_OF_EPOCH
    return rows.view(np.uint8).reshape(-1, 12)


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(
        pt.is_string(kind)
        or pt.is_binary(kind)
        or pt.is_large_string(kind)
        or pt.is_large_binary(kind)
        or pt.is_fixed_size_binary(kind)
        or pt.is_string_view(kind)
        or pt.is_binary_view(kind)
    )


def _bytes(array: pa.Array) -> Layout:
    kind = array.type
    if pt.is_fixed_size_binary(kind):
        return _fixed(array)
    if pt.is_string_view(kind) or pt.is_binary_view(kind):
        return _views(array)
    offset_type = np.int64 if pt.is_large_string(kind) or pt.is_large_binary(kind) else np.int32
    if len(array) == 0:
        return Offsets(np.zeros(1, dtype=offset_type), np.zeros(0, dtype=np.uint8))
    _, offsets, data = array.buffers()
    whole = np.frombuffer(offsets, dtype=offset_type)
    return Offsets(whole[array.offset : array.offset + len(array) + 1], byte_view(data))


def _views(array: pa.Array) -> Views:
    # A view under a NULL may point anywhere; as zeros it is an empty value.
    rows = without_nulls(fixed_rows(array, 16), array)
    return Views(rows, [byte_view(buffer) for buffer in array.buffers()[2:]])


def _fixed(array: pa.Array) -> Fixed:
    return Fixed(fixed_rows(array, array.type.bit_width // 8))


def _cast(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if array.type == kind:
        return array
    try:
        return pc.cast(array, kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise ValueConversionError(
            f"cannot hash values of type {array.type} as {kind} without loss",
            found=str(error),
            hint=f"give values that fit {kind}",
        ) from error


def _refuse(kind: pa.DataType, reason: str, hint: str) -> NoReturn:
    raise UnsupportedTypeError(f"values of type {kind} cannot enter this filter: {reason}", found=str(kind), hint=hint)


def require_encoding(encoding: object) -> Encoding:
    """Return the argument if it is an encoding, and raise InvalidArgumentError otherwise."""
    if isinstance(encoding, (Canonical, Parquet, Lance)):
        return encoding
    raise InvalidArgumentError(
        "encoding must be CANONICAL, LANCE, PARQUET or Parquet(physical_type, type_length)", found=encoding
    )
