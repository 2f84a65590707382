"""Whether a filter can be probed for a literal, and with which hash.

A filter contains hashes of values of the column's type. A literal of another type can be probed only if it converts to
that type without loss, and if the comparison after conversion has the same result as Spark's:

    column                          literal
    smallint, int, bigint           any integer or decimal that the column can hold
    decimal(p,s)                    any integer or decimal that the column can hold
    float, double                   any float, double or integer that the column can hold exactly
    string, binary, date,
    timestamp, timestamp_ntz        of the same type only

Everything else keeps all units. That includes a double against an integer or decimal column: Spark compares them as
doubles, where 2^53 equals 2^53 + 1. It also includes a number beyond the column's range.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from lakebloom.errors import UnsupportedTypeError
from lakebloom.predicate.reasons import Reason
from lakebloom.predicate.rows.decimals import decimal_array, rescaled
from lakebloom.predicate.spark_types import Kind, SparkType, decode_all, fits, spark_type
from lakebloom.predicate.tree import Literal
from lakebloom.sbbf.hashing.hash_values import hash_array
from lakebloom.sbbf.kernels.single import hash_one
from lakebloom.sbbf.values.plain_arrays import plain_array
from lakebloom.store.min_max import stored_values
from lakebloom.tables.columns import arrow_type
from lakebloom.tables.file_columns import whole_numbers
from lakebloom.tuning import SHORT_BYTES

if TYPE_CHECKING:
    from lakebloom.sbbf.kernels import HashArray

    IntArray = np.ndarray[Any, np.dtype[np.int64]]

__all__ = ["Probes", "to_array", "to_hash", "to_hashes", "to_probes", "why_kept"]

_EXACT = frozenset({Kind.INTEGER, Kind.DECIMAL})
_OWN_TYPE_ONLY = frozenset({Kind.STRING, Kind.BINARY, Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ})

_TEXTS = frozenset({"string", "binary"})
_INTEGERS = {"smallint": 16, "int": 32, "bigint": 64}


class Probes:
    """Distinct values to look for, in the type of bounds (``store.min_max``)."""

    def __init__(
        self,
        hashes: HashArray,
        given: pa.Array = None,
        places: IntArray | None = None,
        *,
        single: int | bytes | None = None,
    ) -> None:
        """``places`` are those of the value of each hash among the given ones. A single value may be by itself."""
        self.hashes = hashes
        self.single = single
        """The only value, if it is by itself; then there is no array."""
        self._given, self._places = given, places

    @cached_property
    def values(self) -> pa.Array:
        """The value of each hash. Made when it is needed: of a million values it takes as long as to hash them."""
        return self._given if self._places is None else self._given.take(whole_numbers(self._places))

    def some_values(self, most: int) -> pa.Array:
        """Return at most so many of the values, from all over."""
        if self._places is None:
            return self._given[:most]
        step = -(-len(self._places) // most)
        return self._given.take(whole_numbers(self._places[::step]))


def to_probes(literals: Sequence[Literal], column_type: str) -> Probes | None:
    """Return the distinct values of literals in a column of this type, with their hashes; None if one has none."""
    if not literals:
        return Probes(np.empty(0, dtype=np.uint64), pa.array([], pa.int64()))
    if len(literals) == 1:
        plain = _plain_bytes(literals[0], column_type)
        if plain is not None:
            hashes = np.array([hash_one(plain)], dtype=np.uint64)
            return Probes(hashes, single=plain if column_type in _TEXTS else int(literals[0].decoded()))
    converted = _arrays(literals, column_type)
    if converted is None:
        return None
    hashes, first = _distinct(np.concatenate([hash_array(array)[0] for array in converted]))
    values = pa.concat_arrays([stored_values(array) for array in converted])
    return Probes(hashes, values, first)


def _distinct(hashes: HashArray) -> tuple[HashArray, IntArray]:
    """Return the distinct hashes, ascending, and where each was found. Of a million, ``np.unique`` takes longer."""
    order = np.argsort(hashes)
    ordered = hashes[order]
    is_first = np.append(True, ordered[1:] != ordered[:-1])
    return ordered[is_first], order[is_first]


def to_hash(literal: Literal, column_type: str) -> int | None:
    """Return the hash to probe in a column of this Spark type; None if there is none and all units are kept.

    >>> to_hash(Literal("bigint", 5), "int") == to_hash(Literal("decimal(3,2)", "500"), "int")
    True
    >>> to_hash(Literal("bigint", 3_000_000_000), "int") is to_hash(Literal("double", "5.0"), "int") is None
    True
    """
    plain = _plain_bytes(literal, column_type)
    if plain is not None:
        return hash_one(plain)
    hashes, converted = to_hashes([literal], column_type)
    return int(hashes[0]) if converted else None


def to_hashes(literals: Sequence[Literal], column_type: str) -> tuple[HashArray, bool]:
    """Return the hashes of all literals, in no particular order, and whether all of them could be converted.

    If one could not, no hash is returned: that value may be in any unit.
    """
    if len(literals) == 1:
        plain = _plain_bytes(literals[0], column_type)
        if plain is not None:
            return np.array([hash_one(plain)], dtype=np.uint64), True
    nothing = np.empty(0, dtype=np.uint64)
    converted = _arrays(literals, column_type)
    if converted is None:
        return nothing, False
    return np.concatenate([nothing, *(hash_array(array)[0] for array in converted)]), True


def to_array(literals: Sequence[Literal], column_type: str) -> pa.Array | None:
    """Return literals as values of a column's type, in no particular order; None if one does not convert.

    >>> to_array([Literal("int", 5)], "bigint").type
    DataType(int64)
    """
    converted = _arrays(literals, column_type)
    return None if not converted else pa.concat_arrays(converted)


def _plain_bytes(literal: Literal, column_type: str) -> bytes | None:
    """Return the bytes to hash for integers and short texts, a fast path without arrays; None for other values."""
    if literal.value is None:
        return None
    if literal.type == column_type in _TEXTS:
        value = literal.decoded()
        plain = value.encode() if isinstance(value, str) else value
        return plain if isinstance(plain, bytes) and len(plain) <= SHORT_BYTES else None
    bits = _INTEGERS.get(column_type)
    if bits is None or literal.type not in _INTEGERS:
        return None
    number = int(literal.decoded())
    return number.to_bytes(max(4, bits // 8), "little", signed=True) if fits(number, bits) else None


def _arrays(literals: Sequence[Literal], column_type: str) -> list[pa.Array] | None:
    try:
        target = arrow_type(column_type)
    except UnsupportedTypeError:
        return None
    names = dict.fromkeys([literal.type for literal in literals])
    by_type: dict[str, list[Any]] = {
        name: [literal.value for literal in literals if len(names) == 1 or literal.type == name] for name in names
    }
    if any(None in values for values in by_type.values()):  # callers leave out NULL, which equals nothing
        return None
    arrays = [
        _convert(decode_all(spark_type(name), values), spark_type(name), spark_type(column_type), target)
        for name, values in by_type.items()
    ]
    converted = [array for array in arrays if array is not None]
    return converted if len(converted) == len(arrays) else None


def why_kept(literals: Sequence[Literal], column_type: str) -> Reason:
    """Return the reason why literals cannot be probed in a column of this type."""
    names = {column_type.lower(), *(literal.type.lower() for literal in literals)}
    if any(name.startswith("string collate") for name in names):
        return Reason.COLLATION
    if any(name.startswith(("char(", "varchar(")) for name in names):
        return Reason.CHAR_PADDING
    return Reason.TYPE_MISMATCH


def _convert(values: list[Any], given: SparkType, column: SparkType, target: pa.DataType) -> pa.Array | None:
    """Return the values, of a given type, as an array of the column's type; None if one does not fit."""
    if given.kind in _EXACT and column.kind in _EXACT:
        return _exact(rescaled(values, given.scale, column.scale), column, target)
    if column.kind is Kind.FLOATING and given.kind in (Kind.FLOATING, Kind.INTEGER):
        return _floating(values, column)
    if given.kind is not column.kind or given.kind not in _OWN_TYPE_ONLY:
        return None
    if given.kind in (Kind.STRING, Kind.BINARY):
        return plain_array(values, target)
    return plain_array(values, pa.int32() if given.bits == 32 else pa.int64()).view(target)


def _exact(unscaled: list[int] | None, column: SparkType, target: pa.DataType) -> pa.Array | None:
    if unscaled is None:
        return None
    if column.kind is Kind.INTEGER:
        in_range = not unscaled or (fits(min(unscaled), column.bits) and fits(max(unscaled), column.bits))
        return plain_array(unscaled, target) if in_range else None
    limit = 10**column.precision
    return decimal_array(unscaled, target) if all(-limit < number < limit for number in unscaled) else None


def _floating(values: list[int] | list[float], column: SparkType) -> pa.Array | None:
    doubles = np.array([float(value) for value in values], dtype=np.float64)
    # Python compares an integer with a double exactly, without rounding. A NaN differs from itself.
    if any(value != double and value == value for value, double in zip(values, doubles.tolist(), strict=True)):
        return None
    if column.bits == 64:
        return pa.array(doubles)
    with np.errstate(over="ignore", invalid="ignore"):
        floats = doubles.astype(np.float32)
    return pa.array(floats) if np.array_equal(floats.astype(np.float64), doubles, equal_nan=True) else None
