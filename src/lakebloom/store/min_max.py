"""Bounds of a column's values: in which Arrow type they are stored.

    Spark type                              bound
    smallint, int, bigint                   int64
    date, timestamp, timestamp_ntz          int64: days or microseconds
    float, double                           float64: NaN is the largest value, 0.0 stands for both zeros
    decimal(p,s), at most 18 digits         int64: the unscaled value
    decimal(p,s), wider                     decimal128(38,s)
    string, binary                          binary: bytes in unsigned order, cut to BOUND_BYTES

A bound need not be a value of the unit: the upper bound of cut bytes is larger than the bytes it was cut from.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from pyarrow import types as pt

import lakebloom.arrow_compute as pc
from lakebloom.sbbf.hashing.buffers import fixed_rows
from lakebloom.tables.columns import arrow_type

__all__ = ["BOUND_BYTES", "LONG_DIGITS", "BoundValue", "bound_type", "limit_at", "stored_values"]

BoundValue: TypeAlias = int | float | bytes | Decimal

BOUND_BYTES = 32
"""Strings and binaries are cut to so many bytes."""
LONG_DIGITS = 18
"""Decimals of at most so many digits are stored as 64-bit integers."""
_MOST_DIGITS = 38


def bound_type(spark_type: str) -> pa.DataType:
    """Return the Arrow type of the bounds of a column with this Spark type. Raises UnsupportedTypeError.

    >>> bound_type("date"), bound_type("decimal(10,2)"), bound_type("decimal(20,2)"), bound_type("string")
    (DataType(int64), DataType(int64), Decimal128Type(decimal128(38, 2)), DataType(binary))
    """
    kind = arrow_type(spark_type)
    if pt.is_decimal(kind) and kind.precision > LONG_DIGITS:
        return pa.decimal128(_MOST_DIGITS, kind.scale)
    if pt.is_floating(kind):
        return pa.float64()
    return pa.binary() if pt.is_string(kind) or pt.is_binary(kind) else pa.int64()


def stored_values(array: pa.Array) -> pa.Array:
    """Return values of a type of ``arrow_type``, none of them NULL, in the type of their bounds. Nothing is cut.

    >>> stored_values(pa.array([Decimal("1.50")], pa.decimal128(9, 2)))[0].as_py()
    150
    """
    kind = array.type
    if pt.is_decimal(kind):
        if kind.precision > LONG_DIGITS:
            return pc.cast(array, pa.decimal128(_MOST_DIGITS, kind.scale))
        low_words = np.ascontiguousarray(fixed_rows(array, 16).view("<i8")[:, 0])
        return pa.Array.from_buffers(pa.int64(), len(array), [None, pa.py_buffer(low_words)])
    if pt.is_floating(kind):
        return pc.cast(array, pa.float64())
    if pt.is_string(kind) or pt.is_binary(kind):
        return array.view(pa.binary())
    plain = {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[kind.bit_width]
    return pc.cast(array.view(plain), pa.int64())


def limit_at(bounds: pa.Array, number: int) -> int | float | bytes | None:
    """Return one bound as a limit of ``UnitBounds``: a decimal is unscaled. None if it is unknown.

    >>> limit_at(pa.array([Decimal("1.50")], pa.decimal128(38, 2)), 0)
    150
    """
    bound = bounds[number]
    if not bound.is_valid or not pt.is_decimal(bounds.type):
        value: int | float | bytes | None = bound.as_py()
        return value
    return int.from_bytes(fixed_rows(bounds[number : number + 1], 16).tobytes(), "little", signed=True)
