"""Values that a table's metadata states for all rows of a file, in the JSON form of Iceberg's specification.

They are initial defaults of columns that the file does not have, and values of partitions.
"""

from __future__ import annotations

import datetime
import decimal
from typing import Any

import msgspec
import pyarrow as pa
from pyarrow import types as pt

from lakebloom.errors import ValueConversionError
from lakebloom.sbbf.values.plain_arrays import plain_array

__all__ = ["constant_array"]

_NOT_FINITE = ("NaN", "Infinity", "-Infinity")
"""JSON has no numbers for these."""


def constant_array(name: str, kind: pa.DataType, text: str) -> pa.Array:
    """Return an array of one value. Raises ValueConversionError for what is no value of the type.

    >>> constant_array("d", pa.date32(), '"2024-02-29"').to_pylist()
    [datetime.date(2024, 2, 29)]
    """
    try:
        value = msgspec.json.decode(text)
        return pa.nulls(1, kind) if value is None else _array(value, kind)
    except (msgspec.MsgspecError, ValueError, TypeError, ArithmeticError, pa.ArrowException) as error:
        raise ValueConversionError(
            f"the table's metadata has no {kind} for column {name}",
            found=f"{text[:80]}: {error}",
            hint="query the table with its own engine, or leave the column out",
        ) from error


def _array(value: Any, kind: pa.DataType) -> pa.Array:
    if pt.is_boolean(kind) or pt.is_integer(kind):
        wanted: type = bool if pt.is_boolean(kind) else int
        if type(value) is not wanted:
            raise ValueError(f"{value!r}")
        return plain_array([value], kind)
    if pt.is_floating(kind):
        if value not in _NOT_FINITE and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise ValueError(f"{value!r}")
        return plain_array([float(value)], kind)
    if not isinstance(value, str):
        raise ValueError(f"{value!r}")
    if pt.is_string(kind):
        return plain_array([value], kind)
    if pt.is_binary(kind):
        return plain_array([bytes.fromhex(value)], kind)
    if pt.is_decimal(kind):
        return pa.array([decimal.Decimal(value)], kind)
    if pt.is_date(kind):
        return pa.array([datetime.date.fromisoformat(value)], kind)
    if pt.is_timestamp(kind):
        return pa.array([_moment(value, has_zone=kind.tz is not None)], kind)
    raise ValueError(f"no constants of the type {kind}")


def _moment(text: str, *, has_zone: bool) -> datetime.datetime:
    found = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    if (found.tzinfo is not None) != has_zone:
        raise ValueError("a time zone is missing, or should not be there")
    return found
