"""The Arrow type of the values in a column of a Parquet file. The values of a probe are converted to it.

It follows from the physical and logical type in the file. Types whose filters cannot be trusted, or whose values do not
have one form, have no result here, and their filters are not probed:

    BOOLEAN                    parquet-java writes filters without any bit, also where there are values
    DECIMAL in BYTE_ARRAY      a number may or may not have leading bytes
    INTERVAL, VARIANT, ...     equal values may have different bytes
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from lakebloom.parquet.schema import SchemaElement
    from lakebloom.tables.parquet.types import Family

__all__ = ["family_of", "value_type"]

_MOST_DIGITS, _MOST_DIGITS_128, _MOST_DECIMAL_BYTES = 76, 38, 32
_INTEGERS = {
    (8, True): pa.int8(), (16, True): pa.int16(), (32, True): pa.int32(), (64, True): pa.int64(),
    (8, False): pa.uint8(), (16, False): pa.uint16(), (32, False): pa.uint32(), (64, False): pa.uint64(),
}  # fmt: skip
_PLAIN = {
    "INT32": pa.int32(),
    "INT64": pa.int64(),
    "INT96": pa.timestamp("us"),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "BYTE_ARRAY": pa.binary(),
}
_ANNOTATED = {
    ("BYTE_ARRAY", "STRING"): pa.binary(),
    ("BYTE_ARRAY", "ENUM"): pa.binary(),
    ("BYTE_ARRAY", "JSON"): pa.binary(),
    ("BYTE_ARRAY", "BSON"): pa.binary(),
    ("BYTE_ARRAY", "UTF8"): pa.binary(),
    ("INT32", "DATE"): pa.date32(),
    ("INT32", "TIME_MILLIS"): pa.time32("ms"),
    ("INT64", "TIME_MICROS"): pa.time64("us"),
    ("INT64", "TIMESTAMP_MILLIS"): pa.timestamp("ms", "UTC"),
    ("INT64", "TIMESTAMP_MICROS"): pa.timestamp("us", "UTC"),
    **{("INT32", f"INT_{bits}"): _INTEGERS[bits, True] for bits in (8, 16, 32)},
    **{("INT32", f"UINT_{bits}"): _INTEGERS[bits, False] for bits in (8, 16, 32)},
    ("INT64", "INT_64"): pa.int64(),
    ("INT64", "UINT_64"): pa.uint64(),
}
_TIMES = {("INT32", "ms"): pa.time32("ms"), ("INT64", "us"): pa.time64("us"), ("INT64", "ns"): pa.time64("ns")}
_STORED_BITS = {"INT32": 32, "INT64": 64}


def value_type(element: SchemaElement) -> pa.DataType | None:
    """Return the type of a column's values, None if its filters must not be probed."""
    physical, logical = element.physical_type, element.logical_type
    if physical is None or physical == "BOOLEAN":
        return None
    name = logical.name if logical is not None else element.converted_type
    if name == "DECIMAL":
        return _decimal(element)
    if logical is not None and name in ("INTEGER", "TIME", "TIMESTAMP"):
        return _parametrised(element)
    if physical == "FIXED_LEN_BYTE_ARRAY":
        return _fixed(element.type_length, name)
    return _PLAIN.get(physical) if name is None else _ANNOTATED.get((physical, name))


def family_of(kind: pa.DataType, element: SchemaElement) -> Family:
    """Return the kind of calendar on which old dates and timestamps of a column depend; "other" for none."""
    if element.physical_type == "INT96":
        return "int96"
    if kind == pa.date32():
        return "date"
    return "timestamp" if pa.types.is_timestamp(kind) and kind.tz is not None else "other"


def _decimal(element: SchemaElement) -> pa.DataType | None:
    says = element.logical_type if element.logical_type is not None else element
    precision, scale = says.precision, says.scale or 0
    if element.physical_type == "FIXED_LEN_BYTE_ARRAY" and not 1 <= (element.type_length or 0) <= _MOST_DECIMAL_BYTES:
        return None
    if element.physical_type == "BYTE_ARRAY" or precision is None:
        return None
    if not (1 <= precision <= _MOST_DIGITS and 0 <= scale <= precision):
        return None
    return pa.decimal128(precision, scale) if precision <= _MOST_DIGITS_128 else pa.decimal256(precision, scale)


def _parametrised(element: SchemaElement) -> pa.DataType | None:
    physical, logical = element.physical_type, element.logical_type
    if logical is None or physical not in _STORED_BITS:
        return None
    if logical.name == "INTEGER":
        kind = _INTEGERS.get((logical.bit_width or 0, bool(logical.is_signed)))
        # Integers of up to 32 bits are stored as INT32, wider ones as INT64.
        return kind if kind is not None and max(32, kind.bit_width) == _STORED_BITS[physical] else None
    if logical.name == "TIME":
        return _TIMES.get((physical, logical.unit or ""))
    if physical != "INT64" or logical.unit is None:
        return None
    return pa.timestamp(logical.unit, "UTC" if logical.is_adjusted_to_utc else None)


def _fixed(type_length: int | None, name: str | None) -> pa.DataType | None:
    if name == "FLOAT16":
        return pa.float16() if type_length == 2 else None
    if name == "UUID":
        return pa.uuid() if type_length == 16 else None
    return pa.binary(type_length) if name is None and type_length is not None and type_length > 0 else None
