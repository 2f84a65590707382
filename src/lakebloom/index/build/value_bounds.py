"""Bounds of a column's values, computed batch by batch while a unit is built.

A batch is prepared once, and then gives the bounds of any of its rows. NULLs do not count. Order is Spark's: NaN is the
largest number and equals itself, -0.0 equals 0.0, strings and binaries are compared byte by byte, unsigned.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from lakebloom.sbbf.hashing.buffers import byte_view, fixed_rows, validity
from lakebloom.store.min_max import BOUND_BYTES, LONG_DIGITS, BoundValue

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakebloom.sbbf.kernels import BoolArray, ByteArray, OffsetArray

__all__ = ["UNKNOWN", "BatchValues", "Bounds", "batch_values", "bounds_of", "joined", "raised"]

_KERNELS = "lakebloom.sbbf.kernels.compiled"


class Bounds(msgspec.Struct, frozen=True):
    """A lower and an upper bound of some values; None if it is unknown."""

    low: BoundValue | None
    high: BoundValue | None


UNKNOWN = Bounds(None, None)


class BatchValues(Protocol):
    """The values of a batch, prepared."""

    def of(self, rows: slice) -> Bounds | None:
        """Return the bounds of some rows; None if all of them are NULL."""


def batch_values(array: pa.Array, valid: BoolArray | None) -> BatchValues:
    """Prepare an array of a type of ``tables.columns.arrow_type``, or a dictionary of strings or binaries.

    ``valid`` is False for each NULL, and None if there are no NULLs.
    """
    kind = array.type
    if pt.is_dictionary(kind):
        return _Coded(array, valid)
    if pt.is_decimal(kind) and kind.precision > LONG_DIGITS:
        return _Decimals(array)
    if pt.is_decimal(kind):  # the low 64 bits of a number that has no others
        return _Numbers(fixed_rows(array, 16).view("<i8")[:, 0], valid)
    if pt.is_string(kind) or pt.is_binary(kind):
        return _Strings(array, valid)
    width = kind.bit_width // 8
    return _Numbers(fixed_rows(array, width).view(f"<{'f' if pt.is_floating(kind) else 'i'}{width}")[:, 0], valid)


def bounds_of(array: pa.Array) -> Bounds | None:
    """Return the bounds of a whole array; None if all values are NULL."""
    return batch_values(array, validity(array)).of(slice(0, len(array)))


def joined(parts: Sequence[Bounds]) -> Bounds | None:
    """Return the bounds of several sets of values; None if there are none.

    >>> joined([Bounds(1.0, float("nan")), Bounds(-1.0, 2.0)])
    Bounds(low=-1.0, high=nan)
    """
    if not parts:
        return None
    lows, highs = [part.low for part in parts], [part.high for part in parts]
    return Bounds(
        None if None in lows else min(lows, key=_spark_order), None if None in highs else max(highs, key=_spark_order)
    )


def _spark_order(value: Any) -> tuple[bool, Any]:
    is_nan = value != value
    return is_nan, 0 if is_nan else value


class _Numbers:
    """Integers, days, microseconds, unscaled decimals, floats and doubles."""

    def __init__(self, values: np.ndarray[Any, Any], valid: BoolArray | None) -> None:
        self._values, self._valid = values, valid

    def of(self, rows: slice) -> Bounds | None:
        values = self._values[rows] if self._valid is None else self._values[rows][self._valid[rows]]
        if not len(values):
            return None
        if values.dtype.kind == "i":
            return Bounds(int(values.min()), int(values.max()))
        # max is NaN where there is one, fmin only where there is nothing else. Adding 0.0 makes -0.0 positive.
        with np.errstate(invalid="ignore"):  # some NaNs are signals
            return Bounds(float(np.fmin.reduce(values)) + 0.0, float(values.max()) + 0.0)


class _Decimals:
    """Decimals of more digits than 64 bits hold."""

    def __init__(self, array: pa.Array) -> None:
        self._array = array

    def of(self, rows: slice) -> Bounds | None:
        found = pc.min_max(self._array[rows])
        low, high = found["min"].as_py(), found["max"].as_py()
        return None if low is None else Bounds(low, high)


class _Strings:
    """Strings and binaries."""

    def __init__(self, array: pa.Array, valid: BoolArray | None) -> None:
        self._array, self._valid = array, valid
        _, offsets, data = array.buffers()
        self._data: ByteArray = byte_view(data)
        # Arrow has no buffer of offsets for an empty array.
        ends = np.zeros(1, dtype=np.int32) if offsets is None else np.frombuffer(offsets, dtype=np.int32)
        self._offsets: OffsetArray = ends[array.offset : array.offset + len(array) + 1]

    def of(self, rows: slice) -> Bounds | None:
        return self.among(rows, self._valid)

    def among(self, rows: slice, chosen: BoolArray | None) -> Bounds | None:
        """Return the bounds of those of some rows that are chosen."""
        if _KERNELS in sys.modules:
            # Imported here: it loads a compiler, which few values do not pay for.
            from lakebloom.sbbf.kernels.extremes import extremes

            found = extremes(self._offsets, self._data, chosen, rows, BOUND_BYTES)
            return None if found is None else _cut(*map(self._value, found))
        array = self._array[rows]
        extreme = pc.min_max((array if chosen is None else array.filter(pa.array(chosen[rows]))).view(pa.binary()))
        low, high = extreme["min"].as_py(), extreme["max"].as_py()
        return None if low is None else _cut(low, high)

    def _value(self, number: int) -> bytes:
        start, stop = int(self._offsets[number]), int(self._offsets[number + 1])
        return self._data[start : min(stop, start + BOUND_BYTES + 1)].tobytes()


class _Coded:
    """A dictionary of strings or binaries: only those that the rows use count."""

    def __init__(self, array: pa.Array, valid: BoolArray | None) -> None:
        self._codes = (array.indices.fill_null(0) if array.null_count else array.indices).to_numpy(zero_copy_only=False)
        self._valid = valid
        self._distinct = _Strings(array.dictionary, None)
        self._count = len(array.dictionary)

    def of(self, rows: slice) -> Bounds | None:
        used = np.zeros(self._count, dtype=np.bool_)
        codes, valid = self._codes[rows], None if self._valid is None else self._valid[rows]
        if _KERNELS in sys.modules:
            from lakebloom.sbbf.kernels.extremes import mark

            mark(codes, valid, used)
        else:
            used[codes if valid is None else codes[valid]] = True
        return self._distinct.among(slice(0, self._count), used)


def _cut(low: bytes, high: bytes) -> Bounds:
    return Bounds(low[:BOUND_BYTES], raised(high))


def raised(high: bytes) -> bytes | None:
    """Return the upper bound for strings up to this one, not longer than a bound may be; None if there is none.

    >>> raised(b"abc"), raised(b"x" * 40) == b"x" * 31 + b"y", raised(b"ab" + 40 * bytes([255])), raised(40 * b"\\xff")
    (b'abc', True, b'ac', None)
    """
    if len(high) <= BOUND_BYTES:
        return high
    kept = high[:BOUND_BYTES].rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else None
