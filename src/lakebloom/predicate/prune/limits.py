"""A bound of a predicate in the form in which an index stores bounds.

``column < literal`` is compared in the domain that Spark would use (``rows/domains.py``). For each domain there is a
limit in the column's own values that says the same:

    column                          literal             limit
    smallint, int, bigint           integer             the integer
                                    decimal             rounded down; then it belongs to the smaller side
                                    float, double       the last integer whose double is on this side
    decimal(p,s)                    integer, decimal    at scale s, rounded down in the same way
    float, double                   any number          its double
    string, binary, date,
    timestamp, timestamp_ntz        of the same type    the value

All other pairs have no limit, and keep every unit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from lakebloom.errors import UnsupportedTypeError
from lakebloom.predicate.rows.domains import Domain, domain_of, to_double
from lakebloom.predicate.spark_types import Kind, spark_type

if TYPE_CHECKING:
    from lakebloom.predicate.tree import Literal, Operator
    from lakebloom.sbbf.kernels import BoolArray
    from lakebloom.store.unit_bounds import UnitBounds

__all__ = ["Limit", "limit_of", "prefix_of"]

_LEAST, _MOST = -(1 << 63), (1 << 63) - 1


class Limit(NamedTuple):
    """One end of a range of a column's values."""

    value: Any
    itself: bool
    """Whether the value belongs to the range."""
    is_upper: bool

    def of(self, bounds: UnitBounds) -> BoolArray:
        """Tell which units may hold a value of the range."""
        test = bounds.below if self.is_upper else bounds.above
        return test(self.value, itself=self.itself)


def limit_of(op: Operator, literal: Literal, column_type: str) -> Limit | None:
    """Return the limit that a literal, which is not NULL, sets to a column of this Spark type; None if there is none.

    >>> from lakebloom.predicate.tree import Literal
    >>> limit_of("<", Literal("decimal(3,1)", "25"), "int")
    Limit(value=2, itself=True, is_upper=True)
    >>> limit_of(">", Literal("string", "a"), "int") is None
    True
    """
    try:
        domain = domain_of(column_type, literal.type)
    except UnsupportedTypeError:
        return None
    itself, is_upper = op in ("<=", ">="), op in ("<", "<=")
    column, value = spark_type(column_type), literal.decoded()
    match domain:
        case Domain.DECIMALS:
            down, rest = divmod(int(value) * 10**column.scale, 10**literal.spark_type.scale)
            return Limit(down, is_upper if rest else itself, is_upper)
        case Domain.DOUBLES if column.kind is Kind.FLOATING:
            return Limit(to_double(literal), itself, is_upper)
        case Domain.DOUBLES if column.kind is Kind.INTEGER:
            return Limit(_last_integer(op, to_double(literal)), True, is_upper)
        case Domain.DOUBLES:
            return None
        case _:
            return Limit(value.encode() if isinstance(value, str) else value, itself, is_upper)


def prefix_of(literal: Literal, column_type: str) -> bytes | None:
    """Return the bytes with which values begin; None if the column has no such values."""
    if literal.type != column_type or literal.spark_type.kind not in (Kind.STRING, Kind.BINARY):
        return None
    value = literal.decoded()
    return value.encode() if isinstance(value, str) else bytes(value)  # type: ignore[arg-type]


def _last_integer(op: Operator, double: float) -> int:
    """Return the last integer whose double is on this side of another double. Every double is below NaN.

    >>> _last_integer("<", 2.5), _last_integer(">=", 2.0), _last_integer(">", 2.0)
    (2, 2, 3)
    """
    itself = op in ("<", ">=")
    # Doubles of integers are in the order of the integers, so the first one beyond the double is found by halving.
    low, high = _LEAST, _MOST + 1
    while low < high:
        middle = (low + high) // 2
        number = float(middle)
        if number > double or (itself and number == double):
            high = middle
        else:
            low = middle + 1
    return low if op in (">", ">=") else low - 1
