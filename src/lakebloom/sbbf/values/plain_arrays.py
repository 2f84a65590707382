"""A few Python values as an Arrow array, made from buffers.

``pa.array`` imports pandas if it is installed, to recognise its objects. That takes longer than a whole lookup.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyarrow import types as pt

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["plain_array"]

_MAX_BYTES = 1 << 30


def plain_array(values: Sequence[Any] | np.ndarray[Any, Any], kind: pa.DataType) -> pa.Array:
    """Return ``pa.array(values, kind)`` for values that are not None and fit.

    >>> plain_array(["a", "bc"], pa.string()).to_pylist(), plain_array([-1], pa.int32()).to_pylist()
    (['a', 'bc'], [-1])
    """
    if pt.is_string(kind) or pt.is_binary(kind) or pt.is_large_binary(kind):
        data, parts = _joined(values)
        if len(parts) == 1 and len(data) <= _MAX_BYTES:
            ends = struct.pack("<qq" if pt.is_large_binary(kind) else "<ii", 0, len(data))
            return pa.Array.from_buffers(kind, 1, [None, pa.py_buffer(ends), pa.py_buffer(data)])
        if pt.is_large_binary(kind) or len(data) <= _MAX_BYTES:
            offsets = np.zeros(len(parts) + 1, dtype=np.int64)
            np.cumsum(np.fromiter(map(len, parts), np.int64, len(parts)), out=offsets[1:])
            width = np.int64 if pt.is_large_binary(kind) else np.int32
            buffers = [None, pa.py_buffer(offsets.astype(width, copy=False)), pa.py_buffer(data)]
            return pa.Array.from_buffers(kind, len(parts), buffers)
    if pt.is_signed_integer(kind):
        numbers = np.array(values, dtype=f"<i{kind.bit_width // 8}")
        return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(numbers)])
    return pa.array(values, type=kind)


def _joined(values: Sequence[Any] | np.ndarray[Any, Any]) -> tuple[bytes, Sequence[Any] | np.ndarray[Any, Any]]:
    """Return all values one behind the other, and values that have the lengths of their bytes."""
    try:
        text = "".join(values)
        if text.isascii():  # then a text has as many bytes as characters
            return text.encode(), values
        parts = list(map(str.encode, values))
    except TypeError:  # bytes, or both
        parts = [value.encode() if isinstance(value, str) else bytes(value) for value in values]
    return b"".join(parts), parts
