"""Numbers converted to another type, by value.

An integer becomes a float only if the float equals it; a float becomes an integer only if it is whole. Between a
decimal and a float, or floats of two widths, the nearest value is used: a probe too many only adds a "perhaps", but a
probe too few could say "certainly absent" wrongly.

Whole arrays are converted at once. Only floats to decimals, and arrays of decimals of which some do not fit, are
converted one by one, because Arrow's conversion is inexact or fails as a whole.
"""

from __future__ import annotations

import decimal
import math
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types as pt

import lakebloom.arrow_compute as pc
from lakebloom.sbbf.values.casts import FAILED_CONVERSION

__all__ = ["as_other_number", "is_number"]

_MAX_DIGITS = 76
"""Arrow's widest decimal."""


def is_number(type: pa.DataType) -> bool:
    """Tell whether values of a plain type are numbers."""
    return bool(pt.is_integer(type) or pt.is_floating(type) or pt.is_decimal(type))


def as_other_number(array: pa.Array, type: pa.DataType) -> pa.Array | None:
    """Return numbers as numbers of another type, NULL for those that it cannot hold.

    None where either is not a number, or where both types are the same.
    """
    if pt.is_dictionary(array.type):
        values = as_other_number(array.dictionary, type)
        return None if values is None else pa.DictionaryArray.from_arrays(array.indices, values)
    if array.type == type or not (is_number(array.type) and is_number(type)):
        return None
    if pt.is_integer(array.type):
        return _of_integers(array, type)
    if pt.is_floating(array.type):
        return _of_floats(pc.cast(array, pa.float64()), type)
    return _of_decimals(array, type)


def _of_integers(array: pa.Array, type: pa.DataType) -> pa.Array:
    if pt.is_integer(type):
        return pc.cast(_within(array, *_bounds(type)), type)
    if pt.is_floating(type):
        return _integers_to_floats(array, type)
    limit = 10 ** max(0, type.precision - type.scale) - 1
    if type.scale < 0 or type.scale + len(str(2**64)) > _MAX_DIGITS:
        return _one_by_one(array, type)
    # Arrow needs a decimal with room for every integer of the type, and then narrows by value.
    return pc.cast(pc.cast(_within(array, -limit, limit), pa.decimal256(_MAX_DIGITS, type.scale)), type)


def _bounds(type: pa.DataType) -> tuple[int, int]:
    bits = type.bit_width
    return (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if pt.is_signed_integer(type) else (0, 2**bits - 1)


def _within(array: pa.Array, low: int, high: int) -> pa.Array:
    """Return the integers with NULL for those outside these bounds."""
    least, most = _bounds(array.type)
    if low <= least and most <= high:
        return array
    at_least = pc.greater_equal(array, pa.scalar(max(low, least), array.type))
    at_most = pc.less_equal(array, pa.scalar(min(high, most), array.type))
    return pc.if_else(pc.and_(at_least, at_most), array, pa.scalar(None, array.type))


def _integers_to_floats(array: pa.Array, type: pa.DataType) -> pa.Array:
    integers = pc.fill_null(array, 0).to_numpy(zero_copy_only=False)
    floats = integers.astype(type.to_pandas_dtype())
    # The largest integers may have been rounded up to a power of two, which does not fit back.
    fits = floats < float(_bounds(array.type)[1] + 1)
    equal = fits & (np.where(fits, floats, 0).astype(integers.dtype) == integers)
    return _masked(floats, equal, array, type)


def _of_floats(array: pa.Array, type: pa.DataType) -> pa.Array:
    if pt.is_floating(type):
        return pc.cast(array, type)
    if pt.is_decimal(type):
        return _one_by_one(array, type)
    floats = pc.fill_null(array, 0).to_numpy(zero_copy_only=False)
    low, high = _bounds(type)
    # The upper bound plus one is a power of two, which a float holds exactly.
    whole = (floats == np.trunc(floats)) & (floats >= float(low)) & (floats < float(high + 1))
    return _masked(np.where(whole, floats, 0).astype(type.to_pandas_dtype()), whole, array, type)


def _of_decimals(array: pa.Array, type: pa.DataType) -> pa.Array:
    try:
        # Convert through text: Arrow's direct conversion makes 0.7000000000000001 of 0.7.
        return pc.cast(pc.cast(array, pa.string()) if pt.is_floating(type) else array, type)
    except FAILED_CONVERSION:
        return _one_by_one(array, type)


def _masked(values: np.ndarray[Any, Any], fits: np.ndarray[Any, Any], source: pa.Array, type: pa.DataType) -> pa.Array:
    valid = pc.is_valid(source).to_numpy(zero_copy_only=False)
    return pa.array(values, type=type, mask=~(fits & valid))


def _one_by_one(array: pa.Array, type: pa.DataType) -> pa.Array:
    return pa.array([None if value is None else _converted(value, type) for value in array.to_pylist()], type=type)


def _converted(value: int | float | decimal.Decimal, type: pa.DataType) -> Any:
    if not math.isfinite(value):
        return None
    if pt.is_floating(type):
        return float(value)
    scale = type.scale if pt.is_decimal(type) else 0
    unscaled = _unscaled(value, scale)
    if unscaled is None and isinstance(value, float):
        unscaled = _unscaled(repr(value), scale)  # 0.1 is the decimal 0.1, as people write it
    if unscaled is None:
        return None
    if pt.is_decimal(type):
        return _decimal(unscaled, type)
    low, high = _bounds(type)
    return unscaled if low <= unscaled <= high else None


def _unscaled(number: float | decimal.Decimal | str, scale: int) -> int | None:
    from fractions import Fraction  # imported here: it takes longer to load than a lookup takes

    scaled = Fraction(number) * Fraction(10) ** scale
    return scaled.numerator if scaled.denominator == 1 else None


def _decimal(unscaled: int, type: pa.DataType) -> decimal.Decimal | None:
    if abs(unscaled) >= 10**type.precision:
        return None
    digits = tuple(map(int, str(abs(unscaled))))
    return decimal.Decimal((int(unscaled < 0), digits, -type.scale))
