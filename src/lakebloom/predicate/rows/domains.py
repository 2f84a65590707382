"""The domain in which a column and a literal are compared: the type to which Spark's analyzer would cast both.

    INTEGERS    booleans, integers, days or microseconds, each with its own kind only
    DECIMALS    integers and decimals, compared by value
    DOUBLES     a float or double on either side
    BYTES       strings (of binary collation) or binaries, each with its own kind only

All other pairs are refused. A column may be stored in any Arrow type that holds the values of its Spark type: a
narrower number (in a file from before the column was widened), a dictionary, another unit of time.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence, Set
from typing import Any

import pyarrow as pa
from pyarrow import types as pt

import lakebloom.arrow_compute as pc
from lakebloom.errors import UnsupportedTypeError, ValueConversionError
from lakebloom.predicate.rows.decimals import decimal_array
from lakebloom.predicate.spark_types import Kind, spark_type
from lakebloom.predicate.tree import Literal
from lakebloom.sbbf.values.plain_arrays import plain_array

__all__ = ["Domain", "column_in", "domain_of", "to_double", "values_in", "widest"]

_NUMBERS = frozenset({Kind.INTEGER, Kind.DECIMAL, Kind.FLOATING})
_COUNTED = frozenset({Kind.BOOLEAN, Kind.INTEGER, Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ})
_MAX_SCALE = 38


class Domain(enum.Enum):
    """A domain, and the Arrow type in which it compares."""

    INTEGERS = pa.int64()
    # Holds every decimal of at most 38 digits, whatever its scale, and every 64-bit integer.
    DECIMALS = pa.decimal256(76, _MAX_SCALE)
    DOUBLES = pa.float64()
    # A column with short offsets is compared as pa.binary(): see values_in.
    BYTES = pa.large_binary()


_WIDEST_FIRST = (Domain.DOUBLES, Domain.DECIMALS, Domain.INTEGERS, Domain.BYTES)


def domain_of(column_type: str, literal_type: str) -> Domain:
    """Return the domain for a column and a literal of these Spark types.

    Raises UnsupportedTypeError if there is none.

    >>> domain_of("decimal(10,2)", "bigint").name, domain_of("bigint", "double").name
    ('DECIMALS', 'DOUBLES')
    """
    kinds = {spark_type(column_type).kind, spark_type(literal_type).kind}
    if len(kinds) == 1 and kinds <= _COUNTED:
        return Domain.INTEGERS
    if kinds in ({Kind.STRING}, {Kind.BINARY}):
        return Domain.BYTES
    if kinds <= _NUMBERS:
        return Domain.DOUBLES if Kind.FLOATING in kinds else Domain.DECIMALS
    raise UnsupportedTypeError(
        f"cannot compare a column of type {column_type} exactly as Spark does",
        found=f"a value of type {literal_type}",
        hint=f"give a value of type {column_type}, or filter the rows in Spark",
    )


def widest(domains: Set[Domain]) -> Domain:
    """Return the domain for a list of literals: the whole list is compared in the widest one."""
    return next(domain for domain in _WIDEST_FIRST if domain in domains)


def values_in(domain: Domain, literals: Sequence[Literal], column: pa.DataType) -> pa.Array:
    """Return literals, none of them NULL, as values of a domain, to compare with a column of this type."""
    if domain is Domain.DECIMALS:
        return decimal_array([_unscaled(literal) for literal in literals], domain.value)
    if domain is Domain.DOUBLES:
        return pc.add(pa.array([to_double(literal) for literal in literals], domain.value), 0.0)  # -0.0 becomes 0.0
    if domain is Domain.INTEGERS:
        return plain_array([int(literal.decoded()) for literal in literals], domain.value)
    return plain_array([literal.decoded() for literal in literals], column)


def _unscaled(literal: Literal) -> int:
    factor: int = 10 ** (_MAX_SCALE - literal.spark_type.scale)
    return int(literal.decoded()) * factor


def to_double(literal: Literal) -> float:
    """Return a number that is not NULL as the double that Spark compares."""
    value: Any = literal.decoded()
    # Python rounds to the nearest double, as Java does, when it divides integers or converts them to floats.
    return value / 10**literal.spark_type.scale if literal.spark_type.kind is Kind.DECIMAL else float(value)


def column_in(domain: Domain, column: pa.ChunkedArray, column_type: str) -> pa.ChunkedArray:
    """Return a column of this Spark type as values of a domain.

    Raises UnsupportedTypeError for an Arrow type that does not store this Spark type, and ValueConversionError for a
    stored value that the Spark type cannot hold.
    """
    stored = column.type
    if pt.is_null(stored):
        return pc.cast(column, domain.value)
    kind = spark_type(column_type).kind
    if not _holds(stored, kind):
        raise UnsupportedTypeError(
            f"a column of Spark type {column_type} is not stored like this",
            found=f"Arrow type {stored}",
            hint="read the file with Spark",
        )
    if kind in (Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ):
        return _microseconds(column)
    if kind is Kind.DATE:
        return pc.cast(pc.cast(_cast(column, pa.date32()), pa.int32()), domain.value)
    if domain is Domain.DOUBLES:
        return _doubles(column)
    if pt.is_string(stored) or pt.is_binary(stored):  # nothing is copied
        return _cast(column, pa.binary())
    return _cast(column, domain.value)


def _cast(column: pa.ChunkedArray, type: pa.DataType) -> pa.ChunkedArray:
    try:
        return pc.cast(column, type)
    except pa.ArrowInvalid as error:
        raise ValueConversionError(f"values of type {column.type} do not fit {type}", found=str(error)) from error


def _holds(stored: pa.DataType, kind: Kind) -> bool:
    octets = pt.is_binary(stored) or pt.is_large_binary(stored) or pt.is_binary_view(stored)
    text = pt.is_string(stored) or pt.is_large_string(stored) or pt.is_string_view(stored)
    match kind:
        case Kind.BOOLEAN:
            return bool(pt.is_boolean(stored))
        case Kind.INTEGER:
            return bool(pt.is_integer(stored))
        case Kind.DECIMAL:
            return bool(pt.is_decimal(stored) or pt.is_integer(stored))
        case Kind.FLOATING:
            return bool(pt.is_floating(stored) or pt.is_integer(stored))
        case Kind.STRING:  # some writers leave out the annotation that makes bytes a string
            return bool(text or octets)
        case Kind.BINARY:
            return bool(octets or pt.is_fixed_size_binary(stored))
        case Kind.DATE:
            return bool(pt.is_date(stored))
        case Kind.TIMESTAMP:  # INT96, which is UTC in Spark, has no zone in Arrow
            return bool(pt.is_timestamp(stored))
        case Kind.TIMESTAMP_NTZ:
            return bool(pt.is_timestamp(stored) and stored.tz is None)
        case _:
            return False


def _microseconds(column: pa.ChunkedArray) -> pa.ChunkedArray:
    unit = column.type.unit
    column = pc.cast(pc.cast(column, pa.int64()), pa.timestamp(unit))  # the zone is only for display
    if unit == "ns":  # Spark rounds down, Arrow's cast rounds towards 1970
        column = pc.floor_temporal(column, unit="microsecond")
    return pc.cast(_cast(column, pa.timestamp("us")), pa.int64())


def _doubles(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pt.is_decimal(column.type):
        # Arrow's conversion is sometimes off by one bit. Through text it gives the nearest double, as Java does.
        column = pc.cast(column, pa.string())
    return pc.add(pc.cast(column, pa.float64(), safe=False), 0.0)  # -0.0 becomes 0.0
