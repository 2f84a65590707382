"""Equality and order of values within one domain, with Spark's rules.

For doubles, NaN equals NaN and is larger than all other values, and -0.0 equals 0.0 (the domain has only 0.0). The
result is NULL where the column is NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

import lakebloom.arrow_compute as pc
from lakebloom.predicate.rows.domains import Domain, values_in
from lakebloom.predicate.tree import Literal, Operator

__all__ = ["compare", "is_one_of", "starts_with"]

_OPERATORS: dict[Operator, Callable[[Any, Any], Any]] = {
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def is_one_of(domain: Domain, column: pa.ChunkedArray, literals: Sequence[Literal]) -> pa.ChunkedArray:
    """Tell for each value of a column in this domain whether it equals one of the literals, none of them NULL."""
    values = values_in(domain, literals, column.type)
    if len(values) == 1 and domain is not Domain.DOUBLES:
        return pc.equal(column, values[0])
    found = pc.is_in(column, value_set=values)
    if domain is Domain.DOUBLES and pc.any(pc.is_nan(values)).as_py():
        found = pc.or_(found, pc.fill_null(pc.is_nan(column), False))
    if not column.null_count:
        return found
    return pc.if_else(pc.is_null(column), pa.scalar(None, pa.bool_()), found)


def compare(domain: Domain, column: pa.ChunkedArray, op: Operator, literal: Literal) -> pa.ChunkedArray:
    """Compare each value of a column in this domain with a literal that is not NULL."""
    value = values_in(domain, [literal], column.type)[0]
    if domain is not Domain.DOUBLES:
        return _OPERATORS[op](column, value)
    is_nan = pc.is_nan(column)
    if pc.is_nan(value).as_py():
        return _compare_with_nan(op, is_nan)
    plain = _OPERATORS[op](column, value)  # Arrow calls every comparison with NaN false
    return pc.or_(plain, is_nan) if op in (">", ">=") else plain


def starts_with(column: pa.ChunkedArray, prefix: Literal) -> pa.ChunkedArray:
    """Tell for each string or binary whether its bytes begin with those of a literal that is not NULL."""
    value = prefix.decoded()
    return pc.starts_with(column, value.encode() if isinstance(value, str) else value)


def _compare_with_nan(op: Operator, is_nan: pa.ChunkedArray) -> pa.ChunkedArray:
    is_number = pc.invert(is_nan)
    match op:
        case "<":
            return is_number
        case "<=":
            return pc.or_(is_number, is_nan)
        case ">":
            return pc.and_(is_number, is_nan)
        case ">=":
            return is_nan
