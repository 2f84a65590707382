"""A caller's values as Arrow arrays: Python scalars and sequences, numpy, Arrow, Arrow's C interface.

numpy and Arrow values keep their type. ``python.py`` tells the type of Python objects.
"""

from __future__ import annotations

import datetime
import decimal
import uuid
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import types as pt

from lakebloom.errors import InvalidArgumentError, UnsupportedTypeError
from lakebloom.sbbf.values.casts import FAILED_CONVERSION, as_type, to_array
from lakebloom.sbbf.values.python import to_arrays
from lakebloom.sbbf.values.unwrap import plain_type, unwrapped, without_runs

__all__ = ["Values", "is_scalar", "read_values", "to_chunks"]

_SCALARS = (
    str, bytes, bytearray, memoryview, bool, int, float, complex, decimal.Decimal,
    datetime.date, datetime.time, datetime.timedelta, uuid.UUID, np.generic, pa.Scalar, type(None),
)  # fmt: skip


class Values(NamedTuple):
    """Values as Arrow arrays."""

    chunks: list[pa.Array]
    typed: bool
    """Whether the values had a type: False for Python objects, whose numbers have no width."""


def is_scalar(values: object) -> bool:
    """Tell one value from a collection of values."""
    return isinstance(values, _SCALARS) or (isinstance(values, np.ndarray) and values.ndim == 0)


def to_chunks(values: object, type: pa.DataType | None = None) -> list[pa.Array]:
    """Return the values as Arrow arrays, of ``type`` if it is given; see ``read_values``."""
    return read_values(values, type).chunks


def read_values(values: object, type: pa.DataType | None = None) -> Values:
    """Return the values as one or more Arrow arrays, of the plain type of ``type`` if it is given.

    Raises ValueConversionError if the values do not fit one type, or not that type, without loss.
    """
    wanted = None if type is None else plain_type(type)
    if isinstance(values, np.ndarray):
        _require_one_dimension(values)
        if values.dtype == object:
            values = values.tolist()
    array = _typed(values)
    if array is None:
        return Values(to_arrays(_python_objects(values), wanted), typed=type is not None)
    chunks = array.chunks if isinstance(array, pa.ChunkedArray) else [array]
    chunks = [without_runs(chunk) for chunk in chunks or [pa.nulls(0, array.type)]]
    return Values(chunks if wanted is None else [_as_type(unwrapped(chunk), wanted) for chunk in chunks], typed=True)


def _typed(values: Any) -> pa.Array | pa.ChunkedArray | None:
    """Return values that have a type as an array; None for Python objects."""
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return values
    if isinstance(values, pa.Scalar):
        return _from_arrow_scalar(values)
    if isinstance(values, np.ndarray):
        return _from_numpy(values)
    # np.bytes_ and np.str_ are bytes and str; as numpy arrays they would lose trailing zeros.
    if isinstance(values, np.generic) and not isinstance(values, (bytes, str)):
        return _from_numpy(np.asarray(values))
    if is_scalar(values):
        return None
    for interface, take_over in _INTERFACES.items():
        if hasattr(values, interface):
            return _taken_over(values, take_over)
    return None


_INTERFACES = {"__arrow_c_stream__": pa.chunked_array, "__arrow_c_array__": pa.array, "__arrow_array__": pa.array}


def _taken_over(values: Any, take_over: Any) -> pa.Array | pa.ChunkedArray:
    try:
        return take_over(values)
    except FAILED_CONVERSION as error:
        raise UnsupportedTypeError(
            f"Arrow cannot convert these values of class {values.__class__.__name__}",
            found=str(error),
            hint="cast them to a type that Arrow has",
        ) from error


def _from_arrow_scalar(scalar: pa.Scalar) -> pa.Array:
    outer, plain = scalar.type, plain_type(scalar.type)
    while isinstance(scalar, (pa.ExtensionScalar, pa.DictionaryScalar, pa.RunEndEncodedScalar)):
        scalar = scalar.value
    array = pa.nulls(1, plain) if scalar is None else to_array([scalar], plain)
    if isinstance(outer, pa.BaseExtensionType) and outer.storage_type == plain:
        return pa.ExtensionArray.from_storage(outer, array)
    return array


def _from_numpy(values: np.ndarray[Any, Any]) -> pa.Array:
    if values is np.ma.masked:
        return pa.nulls(1)
    values = values.reshape(-1)
    if not values.dtype.isnative:
        values = values.astype(values.dtype.newbyteorder("="))
    return to_array(values, None)


def _require_one_dimension(values: np.ndarray[Any, Any]) -> None:
    if values.ndim > 1:
        raise InvalidArgumentError("a numpy array of values must have one dimension", found=f"{values.ndim} dimensions")


def _python_objects(values: Any) -> list[Any]:
    if is_scalar(values):
        return [values]
    if isinstance(values, Iterable):
        return list(values)
    raise InvalidArgumentError(
        "values must be a scalar, a sequence, or a numpy or Arrow array", found=values.__class__.__name__
    )


def _as_type(array: pa.Array, type: pa.DataType) -> pa.Array:
    if plain_type(array.type) == type:
        return array
    return as_type(array.dictionary_decode() if pt.is_dictionary(array.type) else array, type)
