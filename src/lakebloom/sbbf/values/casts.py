"""Arrow's conversions with typed errors, and without the losses that Arrow allows."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyarrow import types as pt

import lakebloom.arrow_compute as pc
from lakebloom.errors import ValueConversionError

__all__ = ["FAILED_CONVERSION", "as_type", "to_array"]

FAILED_CONVERSION = (pa.ArrowException, OverflowError, ValueError, TypeError)
"""What Arrow raises for values that it cannot convert."""


def to_array(values: Any, type: pa.DataType | None) -> pa.Array:
    """Return ``pa.array(values, type)``, or raise ValueConversionError."""
    try:
        return pa.array(values, type=type)
    except FAILED_CONVERSION as error:
        wanted = "one Arrow type" if type is None else str(type)
        raise ValueConversionError(
            f"cannot read the values as {wanted}",
            found=str(error),
            hint="give values of one type that can hold them",
        ) from error


def as_type(array: pa.Array, type: pa.DataType) -> pa.Array:
    """Return an array as another type. Raises ValueConversionError if a value would lose something.

    Arrow checks numbers. It cuts off the time of a timestamp that becomes a date, so dates and times are
    converted back and compared.
    """
    if array.type == type:
        return array
    try:
        cast = pc.cast(array, type)
        lost = pt.is_temporal(array.type) and not pc.cast(cast, array.type).equals(array)
    except FAILED_CONVERSION as error:
        raise _lossy(array.type, type, str(error)) from error
    if lost:
        raise _lossy(array.type, type, "a value that would lose its finer part")
    return cast


def _lossy(source: pa.DataType, target: pa.DataType, found: str) -> ValueConversionError:
    return ValueConversionError(
        f"cannot read {source} values as {target} without loss", found=found, hint="cast the values first"
    )
