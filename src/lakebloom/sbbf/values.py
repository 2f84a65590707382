"""Whatever a caller passes as values, as Arrow arrays: Python scalars and sequences, numpy, Arrow, Arrow's C interface.

Python objects carry no width (is 5 an int or a bigint?). They are read as the type asked for, or else as Arrow infers
them: int64, double, string, binary, date32, timestamp[us], decimal.
"""

from __future__ import annotations

import datetime
import decimal
import uuid
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from lakebloom.errors import InvalidArgumentError, ValueConversionError

_SCALARS = (
    str, bytes, bytearray, memoryview, bool, int, float, complex, decimal.Decimal,
    datetime.date, datetime.time, datetime.timedelta, uuid.UUID, np.generic, pa.Scalar, type(None),
)  # fmt: skip
_FAILED_CONVERSION = (pa.ArrowException, OverflowError, ValueError, TypeError)


def is_scalar(values: object) -> bool:
    """Tell one value from a collection of values."""
    return isinstance(values, _SCALARS) or (isinstance(values, np.ndarray) and values.ndim == 0)


def to_chunks(values: object, type: pa.DataType | None = None) -> list[pa.Array]:
    """Return the values as Arrow arrays, of ``type`` if it is given.

    Raises ValueConversionError where the values do not fit one type, or not that type.
    """
    array = _to_arrow(values, type)
    chunks = array.chunks if isinstance(array, pa.ChunkedArray) else [array]
    chunks = [pc.run_end_decode(chunk) if pt.is_run_end_encoded(chunk.type) else chunk for chunk in chunks]
    return chunks if type is None else [_as_type(chunk, type) for chunk in chunks]


def _to_arrow(values: Any, type: pa.DataType | None) -> pa.Array | pa.ChunkedArray:
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return values
    if isinstance(values, pa.Scalar):
        return _array([values], values.type)
    if isinstance(values, (np.ndarray, np.generic)):
        return _from_numpy(np.atleast_1d(np.asarray(values)))
    if is_scalar(values):
        return _array([_plain(values)], type)
    if hasattr(values, "__arrow_c_stream__"):
        return pa.chunked_array(values)
    if hasattr(values, "__arrow_c_array__") or hasattr(values, "__arrow_array__"):
        return pa.array(values)
    if isinstance(values, Iterable):
        return _array([_plain(value) for value in values], type)
    raise InvalidArgumentError(
        "values must be a scalar, a sequence, or a numpy or Arrow array", found=values.__class__.__name__
    )


def _plain(value: Any) -> Any:
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    return value.bytes if isinstance(value, uuid.UUID) else value


def _from_numpy(values: np.ndarray[Any, Any]) -> pa.Array:
    if values.ndim != 1:
        raise InvalidArgumentError("a numpy array of values must have one dimension", found=f"{values.ndim} dimensions")
    if not values.dtype.isnative:
        values = values.astype(values.dtype.newbyteorder("="))
    return _array(values, None)


def _array(values: Any, type: pa.DataType | None) -> pa.Array:
    try:
        return pa.array(values, type=type)
    except _FAILED_CONVERSION as error:
        wanted = "one Arrow type" if type is None else str(type)
        raise ValueConversionError(
            f"cannot read the values as {wanted}",
            found=str(error),
            hint="give values of one type that can hold them",
        ) from error


def _as_type(array: pa.Array, type: pa.DataType) -> pa.Array:
    if array.type == type:
        return array
    try:
        return pc.cast(array, type)
    except _FAILED_CONVERSION as error:
        raise ValueConversionError(
            f"cannot read {array.type} values as {type} without loss",
            found=str(error),
            hint="cast the values first",
        ) from error


def as_other_number(array: pa.Array, type: pa.DataType) -> pa.Array | None:
    """Return numbers as numbers of another type, NULL for those it cannot hold; None where either is no number."""
    if array.type == type or not (_is_number(array.type) and _is_number(type)):
        return None
    try:
        return _cast_number(array, type)
    except _FAILED_CONVERSION:
        return pa.concat_arrays([_one_or_null(array.slice(i, 1), type) for i in range(len(array))])


def _one_or_null(single: pa.Array, type: pa.DataType) -> pa.Array:
    try:
        return _cast_number(single, type)
    except _FAILED_CONVERSION:
        return pa.nulls(1, type)


def _cast_number(array: pa.Array, type: pa.DataType) -> pa.Array:
    if pt.is_integer(array.type) and pt.is_decimal(type):
        # Arrow insists on room for every integer of the source type, then narrows by value.
        array = pc.cast(array, pa.decimal256(76, type.scale))
    return pc.cast(array, type)


def _is_number(type: pa.DataType) -> bool:
    return bool(pt.is_integer(type) or pt.is_floating(type) or pt.is_decimal(type))
