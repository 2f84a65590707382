"""Which bytes of a value are hashed: one encoder, three targets.

``CANONICAL``  what an index hashes for a value of a Spark type. One zero, one NaN, timestamps in microseconds. An index
               casts the values of a file to the column's Spark type first, so a value has the same hash in every
               file; an int 5 and a bigint 5 have different ones. Types for which a Bloom filter cannot help, or which
               Spark compares in a way that hashing cannot follow, are refused.
``Parquet``    what a filter inside a Parquet file hashes: the PLAIN bytes of the file's physical type, which the
               target names (INT32, FIXED_LEN_BYTE_ARRAY of 7, ...); by default the physical type that Arrow writes.
``LANCE``      what Lance's index hashes: the Arrow value's own width, so an int8 is one byte.
"""

from __future__ import annotations

from typing import TypeAlias, get_args

import msgspec
import numpy as np
import pyarrow as pa
from pyarrow import types as pt

from lakebloom.errors import InvalidArgumentError
from lakebloom.sbbf.hashing import decimals
from lakebloom.sbbf.hashing.arrow import cast, fixed_layout, is_text_or_bytes, refuse, text_or_bytes_layout
from lakebloom.sbbf.hashing.layouts import Fixed, Floats, Layout
from lakebloom.sbbf.hashing.parquet import PhysicalType, parquet_layout

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
    "require_encoding",
]


class Canonical(msgspec.Struct, frozen=True):
    """The bytes that an index hashes for a Spark value."""


class Parquet(msgspec.Struct, frozen=True):
    """The bytes that a filter inside a Parquet file hashes.

    ``type_length`` is that of a FIXED_LEN_BYTE_ARRAY column. Timestamps must be in the file's unit and decimals in the
    file's scale; that is not checked. Raises InvalidArgumentError for an unknown type.

    >>> Parquet("FIXED_LEN_BYTE_ARRAY", 7)
    Parquet(physical_type='FIXED_LEN_BYTE_ARRAY', type_length=7)
    """

    physical_type: PhysicalType | None = None
    type_length: int | None = None

    def __post_init__(self) -> None:
        if self.physical_type is not None and self.physical_type not in get_args(PhysicalType):
            raise InvalidArgumentError(
                f"physical_type must be one of {', '.join(get_args(PhysicalType))}", found=self.physical_type
            )
        if self.type_length is None:
            return
        if self.physical_type != "FIXED_LEN_BYTE_ARRAY":
            raise InvalidArgumentError(
                "only a FIXED_LEN_BYTE_ARRAY has a type_length",
                found=f"{self.type_length} for {self.physical_type}",
                hint="leave it out",
            )
        if not isinstance(self.type_length, int) or self.type_length < 1:
            raise InvalidArgumentError("type_length must be a whole number, at least 1", found=self.type_length)


class Lance(msgspec.Struct, frozen=True):
    """The bytes that a Lance Bloom filter index hashes."""


Encoding: TypeAlias = Canonical | Parquet | Lance
CANONICAL, PARQUET, LANCE = Canonical(), Parquet(), Lance()


def encode(array: pa.Array, encoding: Encoding) -> Layout:
    """Return the layout of the bytes to hash for a plain array. The bytes of a NULL are undefined, but safe to read.

    Raises UnsupportedTypeError for a type the encoding has no bytes for, and ValueConversionError for a value that
    the target type cannot hold.
    """
    if pt.is_null(array.type):
        return Fixed(np.zeros((len(array), 0), dtype=np.uint8))
    if isinstance(encoding, Canonical):
        return _canonical(array)
    if isinstance(encoding, Lance):
        return _lance(array)
    return parquet_layout(array, encoding.physical_type, encoding.type_length)


def _canonical(array: pa.Array) -> Layout:
    kind = array.type
    if pt.is_boolean(kind) or pt.is_int8(kind) or pt.is_uint8(kind):
        refuse(kind, "a Bloom filter over at most 256 values skips nothing", "index another column")
    if pt.is_uint16(kind) or pt.is_int16(kind):
        return fixed_layout(cast(array, pa.int32()))
    if pt.is_uint32(kind):  # Spark reads it as bigint
        return fixed_layout(cast(array, pa.int64()))
    if pt.is_uint64(kind):  # Spark reads it as decimal(20,0)
        return _canonical(cast(array, pa.decimal128(20, 0)))
    if pt.is_date64(kind):
        return fixed_layout(cast(array, pa.date32()))
    if pt.is_int32(kind) or pt.is_int64(kind) or pt.is_date32(kind):
        return fixed_layout(array)
    if pt.is_timestamp(kind):
        return fixed_layout(cast(array, pa.timestamp("us", kind.tz)))
    if pt.is_float32(kind) or pt.is_float64(kind):
        return Floats(fixed_layout(array).values)
    if pt.is_decimal(kind) and kind.precision <= 38:
        return _canonical_decimal(array)
    if is_text_or_bytes(kind):
        return text_or_bytes_layout(array)
    refuse(kind, "an index has no hash for it", "index one of its leaves, or cast the column when writing it")


def _canonical_decimal(array: pa.Array) -> Layout:
    precision = array.type.precision
    if precision <= 9:
        return Fixed(decimals.little_endian(array, 4))
    if precision <= 18:
        return Fixed(decimals.little_endian(array, 8))
    return Fixed(decimals.big_endian(array, decimals.min_bytes(precision)))


def _lance(array: pa.Array) -> Layout:
    kind = array.type
    if pt.is_fixed_size_binary(kind) or pt.is_float16(kind):
        refuse(kind, "Lance's Bloom filter index does not accept it", "index another column")
    if is_text_or_bytes(kind):
        return text_or_bytes_layout(array)
    if pt.is_integer(kind) or pt.is_floating(kind) or pt.is_date(kind) or pt.is_time(kind) or pt.is_timestamp(kind):
        return fixed_layout(array)
    refuse(kind, "Lance's Bloom filter index does not accept it", "index another column")


def require_encoding(encoding: object) -> Encoding:
    """Return the argument if it is an encoding, and raise InvalidArgumentError otherwise."""
    if isinstance(encoding, (Canonical, Parquet, Lance)):
        return encoding
    raise InvalidArgumentError(
        "encoding must be CANONICAL, LANCE, PARQUET or Parquet(physical_type, type_length)", found=encoding
    )
