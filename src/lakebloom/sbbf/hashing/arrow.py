"""Layouts of plain Arrow arrays, and errors for types and values that have none."""

from __future__ import annotations

from typing import NoReturn

import numpy as np
import pyarrow as pa
from pyarrow import types as pt

import lakebloom.arrow_compute as pc
from lakebloom.errors import UnsupportedTypeError, ValueConversionError
from lakebloom.sbbf.hashing.buffers import byte_view, fixed_rows, without_nulls
from lakebloom.sbbf.hashing.layouts import Fixed, Layout, Offsets, Views

__all__ = ["cast", "fixed_layout", "is_text_or_bytes", "refuse", "text_or_bytes_layout"]


def fixed_layout(array: pa.Array) -> Fixed:
    """Return the layout of values of one width."""
    return Fixed(fixed_rows(array, array.type.bit_width // 8))


def is_text_or_bytes(kind: pa.DataType) -> bool:
    """Tell whether this is one of Arrow's types for text or bytes."""
    return bool(
        pt.is_string(kind)
        or pt.is_binary(kind)
        or pt.is_large_string(kind)
        or pt.is_large_binary(kind)
        or pt.is_fixed_size_binary(kind)
        or pt.is_string_view(kind)
        or pt.is_binary_view(kind)
    )


def text_or_bytes_layout(array: pa.Array) -> Layout:
    """Return the layout of text or bytes."""
    kind = array.type
    if pt.is_fixed_size_binary(kind):
        return fixed_layout(array)
    if pt.is_string_view(kind) or pt.is_binary_view(kind):
        return _views(array)
    offset_type = np.int64 if pt.is_large_string(kind) or pt.is_large_binary(kind) else np.int32
    if len(array) == 0:
        return Offsets(np.zeros(1, dtype=offset_type), np.zeros(0, dtype=np.uint8))
    _, offsets, data = array.buffers()
    whole = np.frombuffer(offsets, dtype=offset_type)
    return Offsets(whole[array.offset : array.offset + len(array) + 1], byte_view(data))


def _views(array: pa.Array) -> Views:
    # The view of a NULL may point anywhere. As zeros it is an empty value.
    rows = without_nulls(fixed_rows(array, 16), array)
    return Views(rows, [byte_view(buffer) for buffer in array.buffers()[2:]])


def cast(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return the array as another type; raises ValueConversionError for a value that does not fit."""
    if array.type == kind:
        return array
    try:
        return pc.cast(array, kind)
    except pa.ArrowException as error:
        raise ValueConversionError(
            f"cannot hash values of type {array.type} as {kind} without loss",
            found=str(error),
            hint=f"give values that fit {kind}",
        ) from error


def refuse(kind: pa.DataType, reason: str, hint: str) -> NoReturn:
    """Raise UnsupportedTypeError."""
    raise UnsupportedTypeError(
        f"values of type {kind} cannot be hashed for this filter: {reason}", found=str(kind), hint=hint
    )
