"""Python objects as Arrow arrays, without loss.

Python objects have no width. They become the given type, or the one that Arrow infers: int64, double, string, binary,
date32, timestamp[us], decimal. An integer beyond int64 becomes a uint64, and beyond that a decimal(38,0), independent
of the other values: the hash of 5 does not depend on its neighbours.
"""

from __future__ import annotations

import datetime
import decimal
import itertools
import uuid
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types as pt

from lakebloom.errors import ValueConversionError
from lakebloom.sbbf.values.casts import as_type, to_array

__all__ = ["to_arrays"]

_BEYOND_UINT64 = pa.decimal128(38, 0)
_TEMPORAL = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)
_FRACTIONAL = (float, decimal.Decimal, np.floating)


def to_arrays(values: list[Any], type: pa.DataType | None) -> list[pa.Array]:
    """Return the values in order, as one array of ``type``, or as arrays of the types that Arrow infers.

    Raises ValueConversionError.
    """
    values = [_plain(value) for value in values]
    return _infer(values) if type is None else [_of_type(values, type)]


def _plain(value: Any) -> Any:
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, uuid.UUID):
        return value.bytes
    return None if value is np.ma.masked else value


def _infer(values: list[Any]) -> list[pa.Array]:
    try:
        return [_of_one_type(values)]
    except ValueConversionError:
        if not all(value is None or isinstance(value, int) for value in values):
            raise
    return [to_array(list(run), kind) for kind, run in itertools.groupby(values, _integer_type)]


def _integer_type(value: int | None) -> pa.DataType:
    if value is None or -(2**63) <= value < 2**63:
        return pa.int64()
    return pa.uint64() if 0 <= value < 2**64 else _BEYOND_UINT64


def _of_one_type(values: list[Any]) -> pa.Array:
    array = to_array(values, None)
    if pt.is_date32(array.type) and _holds(values, (datetime.datetime,)):
        raise ValueConversionError(
            "cannot read dates and datetimes as one type",
            found="both among the values; Arrow would drop the time",
            hint="give values of one type",
        )
    if pt.is_timestamp(array.type) and len({value.tzinfo is None for value in values if _is_datetime(value)}) > 1:
        raise ValueConversionError(
            "cannot read datetimes with and without time zone as one type",
            found="both among the values; Arrow would use the time zone of the first",
            hint="give values of one type",
        )
    if pt.is_timestamp(array.type) and any(getattr(value, "nanosecond", 0) for value in values):  # pandas' Timestamp
        raise ValueConversionError(
            "cannot read Python timestamps with nanoseconds",
            found="a timestamp with nanoseconds, which Arrow would drop",
            hint="give an array of type timestamp[ns]",
        )
    return array


def _of_type(values: list[Any], type: pa.DataType) -> pa.Array:
    # Arrow truncates values to these types without an error: infer first, then cast with a check.
    cut_off = _TEMPORAL + _FRACTIONAL if pt.is_temporal(type) else _FRACTIONAL if pt.is_integer(type) else ()
    return as_type(_of_one_type(values), type) if _holds(values, cut_off) else to_array(values, type)


def _is_datetime(value: Any) -> bool:
    return isinstance(value, datetime.datetime)


def _holds(values: list[Any], classes: tuple[type, ...]) -> bool:
    return any(isinstance(value, classes) for value in values)
