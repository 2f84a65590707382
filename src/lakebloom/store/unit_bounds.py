"""Which units can hold a value of a range, by the bounds of all units.

Bounds become 64-bit integers in the order of the values, so that one comparison of arrays answers a query: floats by
their bits, strings and binaries by eight bytes behind what all bounds have in common. Strings with equal eight bytes
are then compared as a whole. Wide decimals are compared by Arrow.

For many units the bounds are summed up in blocks. Most blocks are then decided as a whole, and the bounds of single
units are read only where some of a block can hold the value and others cannot.

Unknown bounds include everything.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
from pyarrow import types as pt

import lakebloom.arrow_compute as pc
from lakebloom.sbbf.hashing.buffers import bits, byte_view, fixed_rows, numbers
from lakebloom.sbbf.values.plain_arrays import plain_array
from lakebloom.tuning import BOUNDS_BLOCK, SORTED_BOUNDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakebloom.sbbf.kernels import BoolArray

    IntArray: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
    Detail: TypeAlias = Callable[[slice], BoolArray]

__all__ = ["UnitBounds", "unit_bounds"]

_LEAST, _MOST = -(1 << 63), (1 << 63) - 1
_KEY_BYTES = 8
_GATHERED_ROWS = 1 << 16


class UnitBounds(ABC):
    """The bounds of some units. Every array of truths has one element for each unit.

    Limits are values in the stored form: an integer for integers, days, microseconds and decimals (unscaled), a float,
    or bytes.
    """

    def __init__(self, num_units: int) -> None:
        self._num_units = num_units

    @abstractmethod
    def below(self, limit: Any, *, itself: bool) -> BoolArray:
        """Tell which units may hold a value below the limit, or the limit itself."""

    @abstractmethod
    def above(self, limit: Any, *, itself: bool) -> BoolArray:
        """Tell which units may hold a value above the limit, or the limit itself."""

    @abstractmethod
    def holding(self, values: pa.Array, among: BoolArray) -> tuple[BoolArray, BoolArray]:
        """Tell which units may hold one of some distinct values, and which of the values a unit ``among`` may hold.

        The values are in the type of the bounds.
        """

    def enclosing(self, value: Any) -> BoolArray:
        """Tell which units may hold a value, given as limits are."""
        return self.below(value, itself=True) & self.above(value, itself=True)

    def all_enclose(self, values: pa.Array) -> bool:
        """Tell whether every unit may hold each of some values. False where that takes longer to find out."""
        return False

    def starting_with(self, prefix: bytes) -> BoolArray:
        """Tell which units may hold a string with this prefix. Bounds that are not of strings do not know."""
        return self._all(True)

    def _all(self, truth: bool) -> BoolArray:
        return np.full(self._num_units, truth, dtype=np.bool_)


def unit_bounds(lows: pa.Array, highs: pa.Array) -> UnitBounds:
    """Return the bounds in two arrays of a type of ``min_max.bound_type``, null where they are unknown."""
    if pt.is_decimal(lows.type):
        return _Decimals(lows, highs)
    if pt.is_binary(lows.type):
        return _Strings(lows, highs)
    if pt.is_floating(lows.type):
        return _Floats(*(_float_keys(array, unknown) for array, unknown in ((lows, _LEAST), (highs, _MOST))))
    return _Numbers(_filled(lows, _LEAST), _filled(highs, _MOST))


class _Numbers(UnitBounds):
    """Bounds as 64-bit integers."""

    def __init__(self, lows: IntArray, highs: IntArray) -> None:
        super().__init__(len(lows))
        self._lows, self._highs = lows, highs

    def below(self, limit: Any, *, itself: bool) -> BoolArray:
        return self._at_most(limit if itself else limit - 1)

    def above(self, limit: Any, *, itself: bool) -> BoolArray:
        return self._at_least(limit if itself else limit + 1)

    def _at_most(self, limit: int) -> BoolArray:
        if not _LEAST <= limit < _MOST:
            return self._all(limit > 0)
        least, most = self._low_blocks
        return self._decided(most <= limit, least <= limit, lambda rows: self._lows[rows] <= limit)

    def _at_least(self, limit: int) -> BoolArray:
        if not _LEAST < limit <= _MOST:
            return self._all(limit < 0)
        least, most = self._high_blocks
        return self._decided(least >= limit, most >= limit, lambda rows: self._highs[rows] >= limit)

    def holding(self, values: pa.Array, among: BoolArray) -> tuple[BoolArray, BoolArray]:
        keys = self._keys_of(values)
        units = self._units_holding(np.sort(keys))
        return units, self._covered(keys, among) if len(keys) > 1 else _any(units & among)

    def enclosing(self, value: Any) -> BoolArray:
        last_low, first_high = self._innermost
        # Of keys in no order, nearly each is within the bounds of every unit.
        return self._everyone if last_low < self._key_of(value) < first_high else super().enclosing(value)

    def all_enclose(self, values: pa.Array) -> bool:
        keys, (last_low, first_high) = self._keys_of(values), self._innermost
        return bool(len(keys)) and last_low < int(keys.min()) and int(keys.max()) < first_high

    @cached_property
    def _innermost(self) -> tuple[int, int]:
        """The greatest lower bound, and the least upper one."""
        return int(self._low_blocks[1].max(initial=_LEAST)), int(self._high_blocks[0].min(initial=_MOST))

    def _key_of(self, value: Any) -> int:
        """Return the integer of a value."""
        return int(value)

    @cached_property
    def _everyone(self) -> BoolArray:
        found = self._all(True)
        found.flags.writeable = False
        return found

    def _keys_of(self, values: pa.Array) -> IntArray:
        return numbers(values, 8)

    def _units_holding(self, ordered: IntArray) -> BoolArray:
        (lowest, last_low), (first_high, highest) = self._low_blocks, self._high_blocks
        some = _some_between(ordered, lowest, highest)
        if len(ordered) > 1 and self._num_units > SORTED_BOUNDS:  # filters take less time than so many searches
            return np.repeat(some, BOUNDS_BLOCK)[: self._num_units]
        return self._decided(
            _some_between(ordered, last_low, first_high),
            some,
            lambda rows: _some_between(ordered, self._lows[rows], self._highs[rows]),
        )

    def _covered(self, keys: IntArray, among: BoolArray) -> BoolArray:
        """Tell which values lie within the bounds of a unit; for many units, within the bounds of all of them."""
        if self._num_units > SORTED_BOUNDS or not self._num_units:
            least, most = self._low_blocks[0].min(initial=_MOST), self._high_blocks[1].max(initial=_LEAST)
            inside: BoolArray = (least <= keys) & (keys <= most)
            return inside
        lows, highs = self._sorted if among.all() else (np.sort(self._lows[among]), np.sort(self._highs[among]))
        begun = np.searchsorted(lows, keys, side="right")
        return begun > np.searchsorted(highs, keys, side="left")  # more units begin than end before it

    @cached_property
    def _sorted(self) -> tuple[IntArray, IntArray]:
        return np.sort(self._lows), np.sort(self._highs)

    @cached_property
    def _low_blocks(self) -> tuple[IntArray, IntArray]:
        return _extremes(self._lows)

    @cached_property
    def _high_blocks(self) -> tuple[IntArray, IntArray]:
        return _extremes(self._highs)

    def _decided(self, of_all: BoolArray, of_some: BoolArray, detail: Detail) -> BoolArray:
        """Return a truth for each unit: known for blocks of which all or no units have it, ``detail`` of the others."""
        mixed = np.flatnonzero(of_some & ~of_all)
        if len(mixed) * 2 >= len(of_all):
            return detail(slice(None))
        truths: BoolArray = np.repeat(of_all, BOUNDS_BLOCK)[: self._num_units]
        for block in mixed.tolist():
            rows = slice(block * BOUNDS_BLOCK, (block + 1) * BOUNDS_BLOCK)
            truths[rows] = detail(rows)
        return truths


class _Floats(_Numbers):
    """Bounds as integers that sort as Spark sorts floats."""

    def below(self, limit: Any, *, itself: bool) -> BoolArray:
        return super().below(_float_key(limit), itself=itself)

    def above(self, limit: Any, *, itself: bool) -> BoolArray:
        return super().above(_float_key(limit), itself=itself)

    def _keys_of(self, values: pa.Array) -> IntArray:
        return _float_keys(values, _LEAST)

    def _key_of(self, value: Any) -> int:
        return _float_key(value)


class _Strings(_Numbers):
    """Bounds of bytes. Their integers may be equal where the bytes differ."""

    def __init__(self, lows: pa.Array, highs: pa.Array) -> None:
        self._low_bytes, self._high_bytes = lows, highs
        # Of both: a unit with one bound may have an upper one before all lower ones, and the other way round.
        known = [
            end for ends in (lows, highs) for end in (pc.min(ends).as_py(), pc.max(ends).as_py()) if end is not None
        ]
        first, last = min(known, default=b""), max(known, default=b"")
        shared = (number for number, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1])
        self._common = first[: next(shared, min(len(first), len(last)))]
        skipped = len(self._common)
        super().__init__(_byte_keys(lows, skipped, _LEAST), _byte_keys(highs, skipped, _MOST))

    def below(self, limit: Any, *, itself: bool) -> BoolArray:
        key, compare = self._key_of(limit), pc.less_equal if itself else pc.less
        least, most = self._low_blocks

        def detail(rows: slice) -> BoolArray:
            keys, ends = self._lows[rows], self._low_bytes[rows]
            return _decided_by_bytes(keys < key, keys == key, ends, compare, limit)

        return self._decided(most < key, least <= key, detail)

    def above(self, limit: Any, *, itself: bool) -> BoolArray:
        key, compare = self._key_of(limit), pc.greater_equal if itself else pc.greater
        least, most = self._high_blocks

        def detail(rows: slice) -> BoolArray:
            keys, ends = self._highs[rows], self._high_bytes[rows]
            return _decided_by_bytes(keys > key, keys == key, ends, compare, limit)

        return self._decided(least > key, most >= key, detail)

    def starting_with(self, prefix: bytes) -> BoolArray:
        stripped = prefix.rstrip(b"\xff")
        behind = stripped[:-1] + bytes([stripped[-1] + 1]) if stripped else None
        reached = self.above(prefix, itself=True)
        return reached if behind is None else reached & self.below(behind, itself=False)

    def holding(self, values: pa.Array, among: BoolArray) -> tuple[BoolArray, BoolArray]:
        if len(values) != 1:
            return super().holding(values, among)
        units = self.enclosing(values[0].as_py())
        return units, _any(units & among)

    def _keys_of(self, values: pa.Array) -> IntArray:
        if not self._common:
            return _byte_keys(values, 0, _LEAST)
        before = bits(pc.less(values, plain_array([self._common], values.type)[0]))
        beyond = np.where(before, _LEAST, _MOST)
        begins = bits(pc.starts_with(values, self._common))
        return np.where(begins, _byte_keys(values, len(self._common), _LEAST), beyond)

    def _key_of(self, value: bytes) -> int:
        """Return the integer of a value; of one without the common beginning, the first or the last."""
        skipped = len(self._common)
        if value[:skipped] != self._common:
            return _LEAST if value < self._common else _MOST
        window = value[skipped : skipped + _KEY_BYTES].ljust(_KEY_BYTES, b"\x00")
        return int.from_bytes(window, "big") + _LEAST


class _Decimals(UnitBounds):
    """Bounds of decimals that 64 bits do not hold. Limits are unscaled integers."""

    def __init__(self, lows: pa.Array, highs: pa.Array) -> None:
        super().__init__(len(lows))
        self._lows, self._highs = lows, highs

    def below(self, limit: Any, *, itself: bool) -> BoolArray:
        return self._compared(self._lows, pc.less_equal if itself else pc.less, limit, limit > 0)

    def above(self, limit: Any, *, itself: bool) -> BoolArray:
        return self._compared(self._highs, pc.greater_equal if itself else pc.greater, limit, limit < 0)

    def _compared(self, ends: pa.Array, compare: Any, limit: int, beyond: bool) -> BoolArray:
        if abs(limit) >= 10**ends.type.precision:
            return self._all(beyond)
        stored = pa.py_buffer(limit.to_bytes(16, "little", signed=True))
        scalar = pa.Array.from_buffers(ends.type, 1, [None, stored])[0]
        return bits(pc.fill_null(compare(ends, scalar), True))

    def holding(self, values: pa.Array, among: BoolArray) -> tuple[BoolArray, BoolArray]:
        units, covered = self._all(False), np.zeros(len(values), dtype=np.bool_)
        for number, value in enumerate(values):
            begun = bits(pc.fill_null(pc.less_equal(self._lows, value), True))
            inside = begun & bits(pc.fill_null(pc.greater_equal(self._highs, value), True))
            units |= inside
            covered[number] = (inside & among).any()
        return units, covered


def _decided_by_bytes(
    truths: BoolArray,
    same: BoolArray,
    ends: pa.Array,
    compare: Callable[[pa.Array, pa.Scalar], pa.Array],
    limit: bytes,
) -> BoolArray:
    """Return truths with those replaced where the integers were the same: there the bytes are compared."""
    numbers_of = np.flatnonzero(same)
    if len(numbers_of):
        found = compare(pc.take(ends, pa.array(numbers_of)), plain_array([limit], ends.type)[0])
        truths[numbers_of] = bits(pc.fill_null(found, True))
    return truths


def _any(truths: BoolArray) -> BoolArray:
    return np.full(1, truths.any(), dtype=np.bool_)


def _some_between(ordered: IntArray, lows: IntArray, highs: IntArray) -> BoolArray:
    """Tell for each pair of bounds whether one of some sorted values is within them."""
    found: BoolArray
    if len(ordered) == 1:
        found = (lows <= ordered[0]) & (ordered[0] <= highs)
        return found
    found = np.searchsorted(ordered, lows, side="left") < np.searchsorted(ordered, highs, side="right")
    return found


def _extremes(ends: IntArray) -> tuple[IntArray, IntArray]:
    """Return the least and the greatest bound of each block."""
    if not len(ends):
        return ends, ends
    starts = np.arange(0, len(ends), BOUNDS_BLOCK)
    return np.minimum.reduceat(ends, starts), np.maximum.reduceat(ends, starts)


def _filled(array: pa.Array, unknown: int) -> IntArray:
    return numbers(pc.fill_null(array, unknown) if array.null_count else array, 8)


def _float_key(value: float) -> int:
    return int(_keys_of_doubles(np.array([value], dtype=np.float64))[0])


def _float_keys(array: pa.Array, unknown: int) -> IntArray:
    keys = _keys_of_doubles(fixed_rows(array, 8).view("<f8")[:, 0])
    return np.where(bits(pc.is_valid(array)), keys, unknown) if array.null_count else keys


def _keys_of_doubles(values: np.ndarray[Any, np.dtype[np.float64]]) -> IntArray:
    """Return the bits of floats, with those behind the sign inverted for negative ones. NaN is the largest."""
    with np.errstate(invalid="ignore"):  # some NaNs are signals
        plain: IntArray = np.where(np.isnan(values), np.nan, values + 0.0).view(np.int64)
    plain ^= (plain >> 63) & np.int64(_MOST)
    return plain


def _byte_keys(array: pa.Array, skipped: int, unknown: int) -> IntArray:
    """Return eight bytes of each value as an integer that sorts like them, with zeros behind a shorter value."""
    keys = np.empty(len(array), dtype=np.int64)
    _, offsets, data = array.buffers()
    ends = np.zeros(1, dtype=np.int32) if offsets is None else np.frombuffer(offsets, dtype=np.int32)
    ends = ends[array.offset : array.offset + len(array) + 1].astype(np.int64)
    padded = np.concatenate([byte_view(data), np.zeros(skipped + _KEY_BYTES, dtype=np.uint8)])
    columns = np.arange(skipped, skipped + _KEY_BYTES)
    for start in range(0, len(array), _GATHERED_ROWS):
        begin, end = ends[start : start + _GATHERED_ROWS], ends[start + 1 : start + 1 + _GATHERED_ROWS]
        begin = begin[: len(end)]
        window = padded[begin[:, None] + columns]
        window[columns >= (end - begin)[:, None]] = 0
        words = window.view(">u8")[:, 0].astype(np.uint64)
        keys[start : start + len(end)] = (words ^ np.uint64(1 << 63)).view(np.int64)
    return np.where(bits(pc.is_valid(array)), keys, unknown) if array.null_count else keys
