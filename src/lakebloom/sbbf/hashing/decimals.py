"""Unscaled decimals as bytes. Arrow stores them as little-endian two's complement of 4, 8, 16 or 32 bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lakebloom.errors import ValueConversionError
from lakebloom.sbbf.hashing.buffers import fixed_rows, without_nulls

if TYPE_CHECKING:
    import pyarrow as pa

    from lakebloom.sbbf.kernels import ByteArray


def min_bytes(precision: int) -> int:
    """Return the bytes that two's complement needs for every number of this many decimal digits.

    >>> [min_bytes(precision) for precision in (1, 2, 9, 18, 20, 38)]
    [1, 1, 4, 8, 9, 16]
    """
    return int(10**precision).bit_length() // 8 + 1


def little_endian(array: pa.Array, width: int) -> ByteArray:
    """Return the unscaled values as [count, width] little-endian bytes."""
    # NULLs become zeros: their memory is undefined, and could fail the check below.
    stored = without_nulls(fixed_rows(array, array.type.bit_width // 8), array)
    if width > stored.shape[1]:
        return np.ascontiguousarray(np.hstack([stored, _sign_bytes(stored, width - stored.shape[1])]))
    _require_fit(array, stored, width)
    return np.ascontiguousarray(stored[:, :width])


def big_endian(array: pa.Array, width: int) -> ByteArray:
    """Return the unscaled values as [count, width] big-endian bytes, the form of FIXED_LEN_BYTE_ARRAY."""
    return np.ascontiguousarray(little_endian(array, width)[:, ::-1])


def _sign_bytes(rows: ByteArray, count: int) -> ByteArray:
    negative = rows[:, -1:] >= 0x80
    return np.repeat(np.where(negative, 0xFF, 0).astype(np.uint8), count, axis=1)


def _require_fit(array: pa.Array, rows: ByteArray, width: int) -> None:
    dropped, kept = rows[:, width:], rows[:, :width]
    if not np.array_equal(dropped, _sign_bytes(kept, dropped.shape[1])):
        raise ValueConversionError(
            f"cannot hash {array.type} values in {width} bytes",
            found="a value that needs more",
            hint="give values that fit the column's precision",
        )
