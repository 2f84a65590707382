"""A predicate's truth for one row, written as plainly as possible: the judge of everything vectorised.

A row holds Python values: int (also for dates and timestamps), float, Fraction for decimals, str, bytes, bool, None.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from lakebloom.predicate.prune.normalise import (
    AllOf,
    AnyOf,
    Beginning,
    Bound,
    HoldsNull,
    HoldsValue,
    Keep,
    Never,
    Normal,
    OneOf,
)
from lakebloom.predicate.spark_types import Kind
from lakebloom.predicate.tree import (
    And,
    Compare,
    Equals,
    EqualsNullSafe,
    If,
    IsNotNull,
    IsNull,
    Literal,
    Not,
    Null,
    Or,
    Predicate,
    StartsWith,
    TruthIs,
    Unknown,
)
from lakebloom.tables.columns import ColumnPath

Row = Mapping[ColumnPath, Any]
Truth = bool | None


def unknown_is_null(_: Unknown) -> Truth:
    return None


def evaluate(predicate: Predicate, row: Row, unknown: Callable[[Unknown], Truth] = unknown_is_null) -> Truth:
    if isinstance(predicate, Unknown):
        return unknown(predicate)
    if isinstance(predicate, Not):
        truth = evaluate(predicate.child, row, unknown)
        return None if truth is None else not truth
    if isinstance(predicate, And | Or):
        decisive = isinstance(predicate, Or)
        truths = [evaluate(child, row, unknown) for child in predicate.children]
        return decisive if decisive in truths else None if None in truths else not decisive
    if isinstance(predicate, TruthIs):
        names = {True: "true", False: "false", None: "null"}
        return names[evaluate(predicate.child, row, unknown)] in predicate.among
    if isinstance(predicate, If):
        is_true = evaluate(predicate.condition, row, unknown) is True
        return evaluate(predicate.then if is_true else predicate.otherwise, row, unknown)
    if isinstance(predicate, Null):
        return None
    value = row[predicate.column]
    if isinstance(predicate, IsNull | IsNotNull):
        return (value is None) == isinstance(predicate, IsNull)
    if isinstance(predicate, EqualsNullSafe):
        if value is None or predicate.value.is_null:
            return value is None and predicate.value.is_null
        return is_in(value, (predicate.value,))
    if isinstance(predicate, Compare):
        return compare(value, predicate.op, predicate.value)
    if isinstance(predicate, StartsWith):
        return starts_with(value, predicate.value)
    return is_in(value, (predicate.value,) if isinstance(predicate, Equals) else predicate.values)


def is_in(value: Any, literals: tuple[Literal, ...]) -> Truth:
    if not literals:
        return False
    others = [plain(literal) for literal in literals]
    if value is None:
        return None
    as_doubles = any(isinstance(number, float) for number in (value, *others))
    if any(other is not None and key(value, as_doubles) == key(other, as_doubles) for other in others):
        return True
    return None if None in others else False


def compare(value: Any, op: str, literal: Literal) -> Truth:
    other = plain(literal)
    if value is None or other is None:
        return None
    as_doubles = isinstance(value, float) or isinstance(other, float)
    left, right = key(value, as_doubles), key(other, as_doubles)
    return {"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}[op]


def starts_with(value: Any, literal: Literal) -> Truth:
    other = plain(literal)
    return None if value is None or other is None else value[: len(other)] == other


def plain(literal: Literal) -> Any:
    if literal.is_null:
        return None
    value = literal.decoded()
    if literal.spark_type.kind is Kind.DECIMAL:
        assert isinstance(value, int)
        return Fraction(value, 10**literal.spark_type.scale)
    return value


def key(value: Any, as_double: bool) -> Any:
    """What Spark orders by: NaN is the largest double, and Python already calls both zeros equal."""
    if isinstance(value, str):
        return value.encode()
    if not as_double:
        return value
    number = float(value)
    return (1, 0.0) if math.isnan(number) else (0, number)


def holds(normal: Normal, row: Row, keep: Callable[[Keep], bool]) -> bool:
    """Whether a normal form admits a row; ``keep`` says so of the leaves that no index answers."""
    match normal:
        case AllOf(children):
            return all(holds(child, row, keep) for child in children)
        case AnyOf(children):
            return any(holds(child, row, keep) for child in children)
        case OneOf(part, column, _, True) if not isinstance(row[column], int):
            return evaluate(part, row) is True  # not probed
        case OneOf(_, column, values):
            return is_in(row[column], values) is True
        case Bound(_, column, op, value):
            return compare(row[column], op, value) is True
        case Beginning(_, column, value):
            return starts_with(row[column], value) is True
        case HoldsNull(_, column):
            return row[column] is None
        case HoldsValue(_, column):
            return row[column] is not None
        case Never():
            return False
        case Keep():
            return keep(normal)
