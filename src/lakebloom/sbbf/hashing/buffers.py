"""Arrow buffers as numpy arrays without a copy. Slices and absent buffers are handled."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

import lakebloom.arrow_compute as pc

if TYPE_CHECKING:
    import pyarrow as pa

    from lakebloom.sbbf.kernels import BoolArray, ByteArray


def byte_view(buffer: pa.Buffer | None) -> ByteArray:
    """Return a buffer's bytes. Arrow has None for an empty buffer."""
    return np.frombuffer(buffer if buffer is not None else b"", dtype=np.uint8)


def fixed_rows(array: pa.Array, width: int) -> ByteArray:
    """Return the values of a fixed-width array as a [count, width] byte array."""
    buffer = array.buffers()[1]
    if buffer is None or width == 0:
        return np.zeros((len(array), width), dtype=np.uint8)
    start = array.offset * width
    return byte_view(buffer)[start : start + len(array) * width].reshape(-1, width)


def validity(array: pa.Array) -> BoolArray | None:
    """Return True for each value that is not NULL; None if there are no NULLs."""
    if array.null_count == 0:
        return None
    return bits(pc.is_valid(array))


def bits(array: pa.Array) -> BoolArray:
    """Return an Arrow array of booleans without NULLs as a numpy array. ``to_numpy`` would load pandas."""
    unpacked = np.unpackbits(byte_view(array.buffers()[1]), count=array.offset + len(array), bitorder="little")
    return unpacked[array.offset :].view(np.bool_)


def numbers(array: pa.Array, width: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return an Arrow array of signed numbers of this width, without NULLs, as a numpy array of int64."""
    return fixed_rows(array, width).view(f"<i{width}")[:, 0].astype(np.int64, copy=False)


def numbers_or(array: pa.Array, width: int, for_null: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return such an array with another number for NULLs. ``fill_null`` would load pandas."""
    values, valid = numbers(array, width), validity(array)
    return values if valid is None else np.where(valid, values, for_null)


def without_nulls(rows: ByteArray, array: pa.Array) -> ByteArray:
    """Return the rows with zeros for NULLs, whose memory is undefined."""
    valid = validity(array)
    if valid is None:
        return rows
    rows = rows.copy()
    rows[~valid] = 0
    return rows
