"""Values converted to the type of a column in a file: exact values, and NULL for all others.

A probe with a value in another form than the file's would say "certainly absent" about a row that exists. So a value is
converted only if it has exactly one form:

    numbers      by value: 5, 5.0 and Decimal("5.00") are the same; a float means its shortest text, so 0.1 is the
                 decimal 0.1; between floats of two widths, the nearest one
    bytes        text as UTF-8; only the length of the column if that is fixed; text as a UUID in a UUID column
    times        exact, in the column's unit; with a time zone only for a column in UTC, without one only for others

For everything else the rows must be read.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from lakebloom.sbbf.hashing.arrow import is_text_or_bytes
from lakebloom.sbbf.values.numbers import as_other_number, is_number

if TYPE_CHECKING:
    from lakebloom.sbbf.kernels import BoolArray

__all__ = ["fitted"]

_EXACT_DIGITS, _EXACT_INTEGER = 15, 2**53
"""Up to this limit a double equals one decimal or integer. Beyond it, several equal it if compared as doubles."""
_TICKS_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_MILLIS_PER_DAY = 86_400_000


def fitted(array: pa.Array, target: pa.DataType) -> pa.Array | None:
    """Return plain values as values of `target`, NULL for a value that it lacks; None if it lacks all of them.

    >>> fitted(pa.array([1.0, 1.5, None]), pa.int32()).to_pylist()
    [1, None, None]
    """
    kind = array.type
    if is_number(kind) and is_number(target):
        return _number(array, target)
    if is_text_or_bytes(kind) and isinstance(target, pa.UuidType):
        return _uuids(array)
    if is_text_or_bytes(kind) and is_text_or_bytes(target):
        return _fixed_bytes(array, target) if pt.is_fixed_size_binary(target) else array
    if pt.is_date(kind) and pt.is_date(target):
        return _ticks(array, _ticks_per_day(target), _ticks_per_day(kind), target)
    if (pt.is_time(kind) and pt.is_time(target)) or (pt.is_timestamp(kind) and _same_clock(kind, target)):
        return _ticks(array, _TICKS_PER_SECOND[target.unit], _TICKS_PER_SECOND[kind.unit], target)
    return None


def _number(array: pa.Array, target: pa.DataType) -> pa.Array:
    if array.type == target:
        return array
    if pt.is_floating(array.type) and not pt.is_floating(target):
        array = _unambiguous(array, target)
    if pt.is_float16(target):
        return _halves(array)
    return as_other_number(array, target)


def _unambiguous(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Return floats with NULL for each that may equal several values of `target`."""
    if pt.is_decimal(target) and target.precision > _EXACT_DIGITS:
        return pa.nulls(len(array), array.type)
    floats = array.cast(pa.float64())
    return pc.if_else(pc.less_equal(pc.abs(floats), float(_EXACT_INTEGER)), floats, None)


def _halves(array: pa.Array) -> pa.Array:
    doubles: pa.Array = array if pt.is_float64(array.type) else as_other_number(array, pa.float64())
    values = doubles.fill_null(0).to_numpy(zero_copy_only=False)
    with np.errstate(over="ignore"):  # beyond the range, infinity is the nearest
        halves = values.astype(np.float16)
    fits = (halves == values) | np.full(len(array), pt.is_floating(array.type))
    return _masked(halves, fits, doubles, pa.float16())


def _fixed_bytes(array: pa.Array, target: pa.DataType) -> pa.Array:
    whole = array.cast(pa.large_binary())
    return pc.if_else(pc.equal(pc.binary_length(whole), target.byte_width), whole, None).cast(target)


def _uuids(array: pa.Array) -> pa.Array:
    storage = pa.binary(16)
    if not (pt.is_string(array.type) or pt.is_large_string(array.type) or pt.is_string_view(array.type)):
        return _fixed_bytes(array, storage)
    return pa.array([None if text is None else _uuid_bytes(text) for text in array.to_pylist()], storage)


def _uuid_bytes(text: str) -> bytes | None:
    try:
        return uuid.UUID(text).bytes
    except ValueError:
        return None


def _same_clock(kind: pa.DataType, target: pa.DataType) -> bool:
    return pt.is_timestamp(target) and (kind.tz is None) == (target.tz is None)


def _ticks_per_day(date: pa.DataType) -> int:
    return 1 if pt.is_date32(date) else _MILLIS_PER_DAY


def _ticks(array: pa.Array, per_target: int, per_source: int, target: pa.DataType) -> pa.Array:
    """Return times in another unit; NULL for one that would lose a part, or does not fit."""
    width = array.type.bit_width
    stored = array.view(pa.int32() if width == 32 else pa.int64()).cast(pa.int64()).fill_null(0)
    ticks = stored.to_numpy(zero_copy_only=False)
    if per_target >= per_source:
        factor = per_target // per_source
        fits = np.abs(ticks // 2) <= np.iinfo(np.int64).max // factor // 2  # half, because abs(-2**63) overflows
        ticks = np.where(fits, ticks, 0) * factor
    else:
        ticks, rest = np.divmod(ticks, per_source // per_target)
        fits = rest == 0
    if target.bit_width == 32:
        fits &= (ticks >= -(2**31)) & (ticks < 2**31)
        ticks = np.where(fits, ticks, 0).astype(np.int32)
    return _masked(ticks, fits, array, pa.int32() if target.bit_width == 32 else pa.int64()).view(target)


def _masked(values: np.ndarray[Any, Any], fits: BoolArray, source: pa.Array, kind: pa.DataType) -> pa.Array:
    valid = source.is_valid().to_numpy(zero_copy_only=False)
    return pa.array(values, type=kind, mask=~(fits & valid))
