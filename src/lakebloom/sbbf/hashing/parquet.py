"""The PLAIN bytes of a Parquet column's physical type: a filter inside the file hashes these.

Units and scales are not converted: values must have the unit and scale of the file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import pyarrow as pa
from pyarrow import types as pt

from lakebloom.sbbf.hashing import decimals
from lakebloom.sbbf.hashing.arrow import cast, fixed_layout, is_text_or_bytes, refuse, text_or_bytes_layout
from lakebloom.sbbf.hashing.layouts import Fixed, Layout

if TYPE_CHECKING:
    from lakebloom.sbbf.kernels import ByteArray

__all__ = ["PhysicalType", "parquet_layout"]

PhysicalType: TypeAlias = Literal[
    "BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"
]

_JULIAN_DAY_OF_EPOCH = 2_440_588
_MICROS_PER_DAY = 86_400_000_000
_FLOAT16_BYTES = 2


def parquet_layout(array: pa.Array, physical_type: PhysicalType | None, type_length: int | None) -> Layout:
    """Return the layout of values in a column of this physical type; by default, the one that Arrow writes."""
    kind = array.type
    physical = physical_type or _physical_type_of(kind)
    if pt.is_decimal(kind):
        return _decimal(array, physical, type_length)
    if physical == "BOOLEAN" and pt.is_boolean(kind):
        return fixed_layout(cast(array, pa.uint8()))
    if physical == "INT32" and not pt.is_floating(kind):
        return fixed_layout(_int32(array))
    if physical == "INT64" and not pt.is_floating(kind):
        return fixed_layout(_int64(array))
    if physical == "INT96" and pt.is_timestamp(kind):
        return Fixed(_int96(array))
    if physical == "FLOAT" and pt.is_floating(kind):
        return fixed_layout(cast(array, pa.float32()))
    if physical == "DOUBLE" and pt.is_floating(kind):
        return fixed_layout(cast(array, pa.float64()))
    if physical == "BYTE_ARRAY" and is_text_or_bytes(kind):
        return text_or_bytes_layout(array)
    if physical == "FIXED_LEN_BYTE_ARRAY" and pt.is_float16(kind) and type_length in (None, _FLOAT16_BYTES):
        return fixed_layout(array)
    if physical == "FIXED_LEN_BYTE_ARRAY" and is_text_or_bytes(kind):
        return _fixed_bytes(array, type_length)
    length = "" if type_length is None else f"({type_length})"
    refuse(kind, f"its values do not fit a Parquet column of type {physical}{length}", "cast the values first")


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
    if is_text_or_bytes(kind):
        return "BYTE_ARRAY"
    if pt.is_date(kind) or pt.is_time32(kind):
        return "INT32"
    if pt.is_time64(kind) or pt.is_timestamp(kind) or pt.is_duration(kind):
        return "INT64"
    if pt.is_integer(kind):
        return "INT64" if kind.bit_width == 64 else "INT32"
    refuse(kind, "Parquet has no Bloom filter for it", "name one of its leaves")


def _decimal(array: pa.Array, physical: PhysicalType, type_length: int | None) -> Layout:
    if physical == "INT32":
        return Fixed(decimals.little_endian(array, 4))
    if physical == "INT64":
        return Fixed(decimals.little_endian(array, 8))
    if physical == "FIXED_LEN_BYTE_ARRAY":
        return Fixed(decimals.big_endian(array, type_length or decimals.min_bytes(array.type.precision)))
    refuse(array.type, f"a decimal of physical type {physical} has no fixed bytes", "read the rows instead")


def _int32(array: pa.Array) -> pa.Array:
    kind = array.type
    if pt.is_date64(kind):
        return cast(array, pa.date32())
    if pt.is_time32(kind):
        return cast(array, pa.time32("ms"))
    if pt.is_uint32(kind):  # UINT_32 keeps its bits
        return array.view(pa.int32())
    if pt.is_integer(kind):
        return cast(array, pa.int32())
    if pt.is_date32(kind):
        return array
    refuse(kind, "its values do not fit a Parquet column of type INT32", "cast the values first")


def _int64(array: pa.Array) -> pa.Array:
    kind = array.type
    if pt.is_timestamp(kind) and kind.unit == "s":  # Parquet's coarsest unit is the millisecond
        return cast(array, pa.timestamp("ms", kind.tz))
    if pt.is_uint64(kind) or pt.is_timestamp(kind) or pt.is_time64(kind) or pt.is_duration(kind):
        return array
    if pt.is_integer(kind):
        return cast(array, pa.int64())
    refuse(kind, "its values do not fit a Parquet column of type INT64", "cast the values first")


def _int96(array: pa.Array) -> ByteArray:
    """Return nanoseconds of the day (8 bytes) and the Julian day (4 bytes) of each timestamp.

    All years from 1 to 9999 have them, but only 1677 to 2262 fit into 64 bits of nanoseconds: days are taken off in
    microseconds, unless the values are nanoseconds already.
    """
    nanos_per_tick = 1 if array.type.unit == "ns" else 1000
    ticks_array = array if nanos_per_tick == 1 else cast(array, pa.timestamp("us", array.type.tz))
    ticks = fixed_layout(ticks_array).values.view("<i8")[:, 0]
    days, ticks_of_day = np.divmod(ticks, _MICROS_PER_DAY * 1000 // nanos_per_tick)
    rows = np.empty(len(ticks), dtype=[("nanos", "<i8"), ("day", "<i4")])
    rows["nanos"], rows["day"] = ticks_of_day * nanos_per_tick, days + _JULIAN_DAY_OF_EPOCH
    return rows.view(np.uint8).reshape(-1, 12)


def _fixed_bytes(array: pa.Array, type_length: int | None) -> Layout:
    if type_length is None:
        return text_or_bytes_layout(array)
    if pt.is_string_view(array.type) or pt.is_binary_view(array.type):  # Arrow does not cast these directly
        array = cast(array, pa.large_binary())
    return text_or_bytes_layout(cast(array, pa.binary(type_length)))
