"""Turns the filters that Spark pushes down to a Python data source into a predicate.

Spark passes Python values. If a value may differ from that in the query, the filter becomes Unknown, and skips nothing.
Spark checks all rows with the conditions of the query.
"""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

from lakebloom.predicate.python_literals import literal, literals
from lakebloom.predicate.tree import (
    And,
    Compare,
    Equals,
    EqualsNullSafe,
    IsIn,
    IsNotNull,
    IsNull,
    Not,
    Operator,
    Predicate,
    StartsWith,
    Unknown,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["predicate_of"]

_OPERATORS: dict[str, Operator] = {
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
}
_REPLACEMENT = "\ufffd"
"""Java decodes bytes that are not UTF-8 to this character."""
_FIRST_SAFE = datetime.date(1900, 1, 2)
"""Older dates and timestamps are converted by java.sql's calendar, in which 1582-10-10 is another day."""


def predicate_of(filters: Iterable[Any]) -> Predicate:
    """Return the predicate that a row must match to pass all filters (``pyspark.sql.datasource.Filter``)."""
    return And(tuple(map(_predicate, filters)))


def _predicate(pushed: Any) -> Predicate:
    try:
        return _understood(pushed)
    except Exception as error:
        # A value of another type: reading more is never wrong.
        return Unknown("NOT_SUPPORTED", f"{type(pushed).__name__}: {error}")


def _understood(pushed: Any) -> Predicate:
    # By name: Spark 4.0 has no such classes.
    kind = type(pushed).__name__
    match kind:
        case "Not":
            return Not(_understood(pushed.child))
        case "IsNull":
            return IsNull(pushed.attribute)
        case "IsNotNull":
            return IsNotNull(pushed.attribute)
        case "EqualTo":
            return Equals(pushed.attribute, literal(_exact(pushed.value)))
        case "EqualNullSafe":
            return EqualsNullSafe(pushed.attribute, literal(_exact(pushed.value)))
        case "StringStartsWith":
            return StartsWith(pushed.attribute, literal(_exact(pushed.value)))
        case "In":
            return IsIn(pushed.attribute, literals([_exact(value) for value in pushed.value]))
        case _ if kind in _OPERATORS:
            return Compare(pushed.attribute, _OPERATORS[kind], literal(_exact(pushed.value)))
    return Unknown("NOT_SUPPORTED", kind)


def _exact(value: Any) -> Any:
    """Return a value if it is certainly the one in the query. Raises ValueError otherwise."""
    day = value.date() if isinstance(value, datetime.datetime) else value
    if isinstance(day, datetime.date) and day < _FIRST_SAFE:
        raise ValueError("a date of another calendar")
    if isinstance(value, str) and _REPLACEMENT in value:
        raise ValueError("a string that may have lost bytes")
    return value
