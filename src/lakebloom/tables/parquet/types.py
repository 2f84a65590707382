"""From the types of a Parquet file to those of the table it belongs to.

A file may be older or younger than its table's schema, or come from another writer. What Spark reads as the table's
type without loss is converted to it; for everything else there is an UnsupportedTypeError, and the file stays without
a filter. Three of Spark's conversions are refused on purpose, because they change values: integers that wrap around in
a smallint, timestamps with and without time zone for each other, dates as timestamps.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec
import pyarrow as pa
from pyarrow import types as pt

import lakebloom.arrow_compute as pc
from lakebloom.errors import UnsupportedTypeError
from lakebloom.tables.columns import arrow_type
from lakebloom.tuning import CACHED_ANSWERS

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Family", "convert", "describe", "family_of", "require_readable", "require_readable_element"]

Family: TypeAlias = Literal[
    "null", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float", "double", "date", "int96",
    "timestamp", "timestamp_ntz", "decimal", "bytes", "fixed bytes", "other",
]  # fmt: skip
"""What a column chunk holds. Narrower signed integers are "int32" too, because they are stored as such."""

_READABLE: Mapping[str, frozenset[Family]] = {
    "smallint": frozenset({"int32", "uint8"}),
    "int": frozenset({"int32", "uint8", "uint16"}),
    "bigint": frozenset({"int32", "int64", "uint8", "uint16", "uint32"}),
    "float": frozenset({"float"}),
    "double": frozenset({"double", "float", "int32"}),
    "date": frozenset({"date"}),
    "timestamp": frozenset({"timestamp", "int96"}),
    "timestamp_ntz": frozenset({"timestamp_ntz"}),
    "string": frozenset({"bytes"}),
    "binary": frozenset({"bytes", "fixed bytes"}),
}
_PLAIN_FAMILIES: Mapping[tuple[str, str], Family] = {
    ("INT32", "None"): "int32",
    ("INT32", "Date"): "date",
    ("INT64", "None"): "int64",
    ("INT96", "None"): "int96",
    ("FLOAT", "None"): "float",
    ("DOUBLE", "None"): "double",
    ("BYTE_ARRAY", "None"): "bytes",
    ("BYTE_ARRAY", "String"): "bytes",
    ("BYTE_ARRAY", "Enum"): "bytes",
    ("BYTE_ARRAY", "JSON"): "bytes",
    ("BYTE_ARRAY", "BSON"): "bytes",
    ("FIXED_LEN_BYTE_ARRAY", "None"): "fixed bytes",
    ("FIXED_LEN_BYTE_ARRAY", "UUID"): "fixed bytes",
}
# The digits before the point that Spark wants a decimal to have before it reads integers as such.
_INTEGER_DIGITS: Mapping[Family, int] = {"int32": 10, "int64": 20}


def family_of(column: Any) -> Family:
    """Return what a leaf of a Parquet schema (pyarrow's ColumnSchema) holds, one value a row."""
    return "other" if column.max_repetition_level else _element_family(column)


def _element_family(column: Any) -> Family:
    return _family_named(column.physical_type, column.logical_type.to_json())


@lru_cache(maxsize=CACHED_ANSWERS)  # files of a table have the same types, and this is asked for each file and column
def _family_named(physical: str, logical_json: str) -> Family:
    logical = msgspec.json.decode(logical_json)
    name = logical["Type"]
    if name == "Null":
        return "null"
    if name == "Decimal":
        return "decimal"
    if name == "Timestamp":
        return "timestamp" if logical["isAdjustedToUTC"] else "timestamp_ntz"
    if name == "Int" and not logical["isSigned"]:
        return _unsigned(logical["bitWidth"])
    return _PLAIN_FAMILIES.get((physical, "None" if name == "Int" else name), "other")


def _unsigned(bits: int) -> Family:
    families: dict[int, Family] = {8: "uint8", 16: "uint16", 32: "uint32", 64: "uint64"}
    return families.get(bits, "other")


def describe(column: Any) -> str:
    """Name a Parquet type for a person: INT64 Timestamp(isAdjustedToUTC=true, …)."""
    repeated = "repeated " if column.max_repetition_level else ""
    logical = str(column.logical_type)
    return f"{repeated}{column.physical_type}" + ("" if logical == "None" else f" {logical}")


def require_readable(column: Any, spark_type: str, name: str) -> Family:
    """Return what a Parquet leaf holds, if Spark reads it as `spark_type` and changes no value.

    Raises UnsupportedTypeError otherwise.
    """
    return _require_readable(column, family_of(column), spark_type, name)


def require_readable_element(column: Any, spark_type: str, name: str) -> Family:
    """The same for a leaf that may be inside lists and maps."""
    return _require_readable(column, _element_family(column), spark_type, name)


def _require_readable(column: Any, family: Family, spark_type: str, name: str) -> Family:
    target = arrow_type(spark_type)
    readable = (
        _is_readable_decimal(column, family, target)
        if pt.is_decimal(target)
        else family in _READABLE[spark_type.lower()]
    )
    if readable or family == "null":
        return family
    raise UnsupportedTypeError(
        f"column {name} of the file cannot be read as {spark_type} without loss",
        found=describe(column),
        hint="rewrite the file with the table's schema; until then it has no filter",
    )


def _is_readable_decimal(column: Any, family: Family, target: pa.DataType) -> bool:
    digits = target.precision - target.scale
    if family == "decimal":
        return bool(column.scale <= target.scale and column.precision - column.scale <= digits)
    if family == "uint64":
        return bool(target.precision == 20 and target.scale == 0)
    return family in _INTEGER_DIGITS and bool(digits >= _INTEGER_DIGITS[family])


def convert(array: pa.Array, target: pa.DataType, name: str) -> pa.Array:
    """Return what Arrow read as an array of `target`, or of a dictionary of it.

    Bytes are never decoded: a string that is not UTF-8 stays what it is. Raises UnsupportedTypeError for a value that
    `target` cannot hold.
    """
    if array.type == target:
        return array
    if isinstance(array, pa.ExtensionArray):
        return convert(array.storage, target, name)
    if pt.is_dictionary(array.type):
        return pa.DictionaryArray.from_arrays(array.indices, convert(array.dictionary, target, name))
    if pt.is_null(array.type):
        return pa.nulls(len(array), target)
    try:
        if pt.is_string(target) or pt.is_binary(target):
            return _bytes(array).view(target)
        if pt.is_timestamp(target):  # INT96 comes without its time zone, which is always UTC
            return pc.cast(array, pa.timestamp(target.unit, array.type.tz)).view(target)
        if pt.is_duration(array.type):  # plain integers to everyone but Arrow
            array = array.view(pa.int64())
        return pc.cast(array, target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise UnsupportedTypeError(
            f"column {name} of the file cannot be read as {target} without loss",
            found=str(error),
            hint="rewrite the file with the table's schema; until then it has no filter",
        ) from error


def _bytes(array: pa.Array) -> pa.Array:
    """Return bytes of any layout in one that has 32-bit offsets."""
    kind = array.type
    if pt.is_large_string(kind) or pt.is_string_view(kind):
        return pc.cast(array, pa.string())
    if pt.is_large_binary(kind) or pt.is_binary_view(kind) or pt.is_fixed_size_binary(kind):
        return pc.cast(array, pa.binary())
    return array
