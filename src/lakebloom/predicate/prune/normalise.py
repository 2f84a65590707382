"""The normal form of a predicate, for pruning: no NOT, no NULL, and every leaf is probed, kept or impossible.

SQL has three truth values, and a row matches only where the predicate is TRUE. One function, ``_can_be``, tells where
the truth of a predicate can be one of some values. It calls itself for the parts, so that NOT disappears by De Morgan:

    p            can be TRUE where               can be FALSE where              can be NULL where
    NOT a        a can be FALSE                  a can be TRUE                   a can be NULL
    a AND b      both can be TRUE                either can be FALSE             none is FALSE and one is NULL
    a OR b       either can be TRUE              both can be FALSE               none is TRUE and one is NULL
    a IS TRUE    a can be TRUE                   a can be FALSE or NULL          never
    IF a b c     a TRUE and b, or a not TRUE and c, each as wanted
    c = v        c may be v                      unknown: keep                   c may be NULL
    c = NULL     never, it is NULL               never, it is NULL               always
    c <=> v      c may be v                      unknown: keep                   never
    c <=> NULL   c may be NULL                   c may be something else         never
    c IN (v..)   c may be one of them            unknown: keep; never where the  c may be NULL; unknown where the list
                 (NULLs do not count; never      list holds a NULL, because      holds a NULL
                 where nothing else is left)     then what is not found is NULL
    c IS NULL    c may be NULL                   c may be something else         never
    c < v        c may be below v                c may be v or above             c may be NULL
    c LIKE 'v%'  c may begin with v              unknown: keep                   c may be NULL
    anything     unknown: keep                   unknown: keep                   unknown: keep

A lower and an upper bound on one column that leave one value, or few whole numbers, become a list of these values,
which has both bounds in case the values cannot be probed.

This is sound: wherever the predicate is TRUE for a row, so is its normal form. The normal form may match more rows,
never fewer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import msgspec

from lakebloom.predicate.reasons import Reason
from lakebloom.predicate.spark_types import Kind
from lakebloom.predicate.tree import (
    And,
    Compare,
    Equals,
    EqualsNullSafe,
    If,
    IsIn,
    IsNotNull,
    IsNull,
    Literal,
    Not,
    Null,
    Operator,
    Or,
    Predicate,
    StartsWith,
    TruthIs,
    TruthName,
    Unknown,
    flat,
    operands,
)
from lakebloom.tables.columns import ColumnPath
from lakebloom.tuning import MAX_WHOLE_NUMBERS

__all__ = [
    "AllOf",
    "AnyOf",
    "Beginning",
    "Bound",
    "HoldsNull",
    "HoldsValue",
    "Keep",
    "Leaf",
    "Never",
    "Normal",
    "OneOf",
    "normalise",
]

_MAX_DOUBLINGS = 6
"""How often, on the way down, a part may be needed for two truths at once; each time its normal form doubles."""

_TRUE: frozenset[TruthName] = frozenset({"true"})
_FALSE: frozenset[TruthName] = frozenset({"false"})
_NULL: frozenset[TruthName] = frozenset({"null"})
_ANY = _TRUE | _FALSE | _NULL
_INVERSE: dict[Operator, Operator] = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}


class AllOf(msgspec.Struct, frozen=True):
    """All children hold; without children, always."""

    children: tuple[Normal, ...]


class AnyOf(msgspec.Struct, frozen=True):
    """Some child holds; without children, never."""

    children: tuple[Normal, ...]


class OneOf(msgspec.Struct, frozen=True):
    """The column may hold one of these values, none of which is NULL."""

    part: Predicate
    column: ColumnPath
    values: tuple[Literal, ...]
    whole_numbers: bool = False
    """Whether these are the whole numbers of a range, so that only columns of whole numbers can be probed."""
    bounds: tuple[Bound, ...] = ()
    """The bounds that leave these values."""


class HoldsNull(msgspec.Struct, frozen=True):
    """The column may hold NULL."""

    part: Predicate
    column: ColumnPath


class HoldsValue(msgspec.Struct, frozen=True):
    """The column may hold something other than NULL."""

    part: Predicate
    column: ColumnPath


class Never(msgspec.Struct, frozen=True):
    """No row at all."""

    part: Predicate
    column: ColumnPath


class Keep(msgspec.Struct, frozen=True):
    """Any row: an index cannot decide this part."""

    part: Predicate
    column: ColumnPath | None
    reason: Reason


class Bound(msgspec.Struct, frozen=True):
    """The column may hold a value on this side of another one, which is not NULL."""

    part: Predicate
    column: ColumnPath
    op: Operator
    value: Literal


class Beginning(msgspec.Struct, frozen=True):
    """The column may hold a value that begins with another one, which is not NULL."""

    part: Predicate
    column: ColumnPath
    value: Literal


Leaf: TypeAlias = OneOf | Bound | Beginning | HoldsNull | HoldsValue | Never | Keep
Normal: TypeAlias = AllOf | AnyOf | Leaf

_ALWAYS, _NOWHERE = AllOf(()), AnyOf(())


def normalise(predicate: Predicate) -> Normal:
    """Return where a predicate can be TRUE. Each leaf has the part of the predicate that it stands for.

    Raises InvalidArgumentError for a predicate that is too deep.

    >>> from lakebloom.predicate.column import col
    >>> normalise(~(col("a").is_not_null() | (col("b") == None)))  # doctest: +ELLIPSIS
    AllOf(children=(HoldsNull(part=Not(...), column=('a',)), Never(part=Not(...), column=('b',))))
    """
    return _can_be(flat(predicate), _TRUE, 0)


def _can_be(predicate: Predicate, wanted: frozenset[TruthName], doublings: int) -> Normal:
    """Return where the truth of a predicate can be one of those wanted."""
    if doublings > _MAX_DOUBLINGS:
        return Keep(_stated(predicate, wanted), None, Reason.NOT_SUPPORTED)
    match predicate:
        case And():
            return _of_chain(list(operands(predicate)), wanted, _FALSE, doublings)
        case Or():
            return _of_chain(list(operands(predicate)), wanted, _TRUE, doublings)
        case Not(child):
            return _can_be(child, _swapped(wanted), doublings)
        case TruthIs(child, among):
            return _of_test(child, frozenset(among), wanted, doublings)
        case If():
            return _of_branches(predicate, wanted, doublings)
        case Null():
            return _ALWAYS if "null" in wanted else _NOWHERE
        case _:
            return _of_leaf(predicate, wanted)


def _of_chain(
    parts: list[Predicate], wanted: frozenset[TruthName], decisive: frozenset[TruthName], doublings: int
) -> Normal:
    """Handle AND, where one FALSE decides, and OR, where one TRUE decides."""
    neutral = _swapped(decisive)
    if wanted in (_ANY, frozenset()):
        return _ALWAYS if wanted else _NOWHERE
    sought = {_NULL: (neutral | _NULL, _NULL), _TRUE | _FALSE: (neutral, decisive)}.get(wanted, (wanted,))
    found: list[list[Normal]] = []
    for truths in sought:  # loops instead of comprehensions: fewer frames for each level of a deep predicate
        found.append([])
        for part in parts:
            found[-1].append(_can_be(part, truths, doublings + len(sought) - 1))
    if wanted == _NULL:
        return _all_of([*found[0], _any_of(found[1])])
    if wanted == _TRUE | _FALSE:
        return _any_of([_all_of(found[0]), *found[1]])
    return _all_of(found[0]) if neutral <= wanted else _any_of(found[0])


def _of_test(child: Predicate, among: frozenset[TruthName], wanted: frozenset[TruthName], doublings: int) -> Normal:
    """Handle ``child IS TRUE`` and the like, which are TRUE or FALSE, never NULL."""
    sought = (among if "true" in wanted else frozenset()) | (_ANY - among if "false" in wanted else frozenset())
    if sought in (_ANY, frozenset()):
        return _ALWAYS if sought else _NOWHERE
    return _can_be(child, sought, doublings)


def _of_branches(node: If, wanted: frozenset[TruthName], doublings: int) -> Normal:
    found = []
    for truths, branch in ((_TRUE, node.then), (_FALSE | _NULL, node.otherwise)):
        there = _can_be(branch, wanted, doublings)
        if there != _NOWHERE:
            condition = _can_be(node.condition, truths, doublings + 1)
            found.append(condition if there == _ALWAYS else _all_of([condition, there]))
    return _any_of(found)


def _of_leaf(
    predicate: Equals | EqualsNullSafe | IsIn | IsNull | IsNotNull | Compare | StartsWith | Unknown,
    wanted: frozenset[TruthName],
) -> Normal:
    if wanted == _ANY:
        return _ALWAYS
    found: list[Normal] = []
    if "true" in wanted:
        found.append(_leaf_true(predicate))
    if "false" in wanted:
        found.append(_leaf_false(predicate))
    if "null" in wanted:
        found.append(_leaf_null(predicate))
    found = [part for part in found if not isinstance(part, Never)] or found[:1]
    kept = next((part for part in found if isinstance(part, Keep)), None)
    if kept is None or len(found) == 1:
        return _any_of(found)
    return Keep(_stated(predicate, wanted), kept.column, kept.reason)


def _leaf_true(predicate: Predicate) -> Normal:
    match predicate:
        case IsNull(column):
            return HoldsNull(predicate, column)
        case IsNotNull(column):
            return HoldsValue(predicate, column)
        case EqualsNullSafe(column, value) if value.is_null:
            return HoldsNull(predicate, column)
        case Equals(column, value) | EqualsNullSafe(column, value):
            return _one_of(predicate, column, (value,))
        case IsIn(column, values):
            return _one_of(predicate, column, values)
        case Compare(column, op, value):
            return _bound(predicate, column, op, value)
        case StartsWith(column, value):
            return Never(predicate, column) if value.is_null else Beginning(predicate, column, value)
        case _:
            return _unanswered(predicate, predicate)


def _leaf_false(predicate: Predicate) -> Normal:
    match predicate:
        case IsNull(column):
            return HoldsValue(Not(predicate), column)
        case IsNotNull(column):
            return HoldsNull(Not(predicate), column)
        case EqualsNullSafe(column, value) if value.is_null:
            return HoldsValue(Not(predicate), column)
        case Equals(column, value) | StartsWith(column, value) if value.is_null:
            return Never(Not(predicate), column)
        case IsIn(column, values) if any(value.is_null for value in values):
            return Never(Not(predicate), column)
        case Equals(column) | EqualsNullSafe(column) | IsIn(column) | StartsWith(column):
            return Keep(Not(predicate), column, Reason.NEGATED)
        case Compare(column, op, value):
            return _bound(Not(predicate), column, _INVERSE[op], value)
        case _:
            return _unanswered(Not(predicate), predicate)


def _leaf_null(predicate: Predicate) -> Normal:
    part = TruthIs(predicate, ("null",))
    match predicate:
        case IsNull(column) | IsNotNull(column) | EqualsNullSafe(column):
            return Never(part, column)
        case Equals(column, value) | Compare(column, _, value) | StartsWith(column, value):
            return _ALWAYS if value.is_null else HoldsNull(part, column)
        case IsIn(column, ()):
            return Never(part, column)
        case IsIn(column, values) if all(value.is_null for value in values):
            return _ALWAYS
        case IsIn(column, values) if any(value.is_null for value in values):
            return Keep(part, column, Reason.NEGATED)
        case IsIn(column):
            return HoldsNull(part, column)
        case _:
            return _unanswered(part, predicate)


def _stated(predicate: Predicate, wanted: frozenset[TruthName]) -> Predicate:
    """Return a predicate that is TRUE where the truth of another one is among those wanted."""
    if wanted == _TRUE:
        return predicate
    return Not(predicate) if wanted == _FALSE else TruthIs(predicate, tuple(sorted(wanted)))


def _swapped(truths: frozenset[TruthName]) -> frozenset[TruthName]:
    swapped = truths & _NULL
    return swapped | (_FALSE if "true" in truths else frozenset()) | (_TRUE if "false" in truths else frozenset())


def _one_of(part: Predicate, column: ColumnPath, values: tuple[Literal, ...]) -> OneOf | Never:
    values = tuple([value for value in values if value.value is not None])  # of a long list each call counts
    return OneOf(part, column, values) if values else Never(part, column)


def _bound(part: Predicate, column: ColumnPath, op: Operator, value: Literal) -> Bound | Never:
    if value.is_null:  # neither TRUE nor FALSE
        return Never(part, column)
    return Bound(part, column, op, value)


def _unanswered(part: Predicate, predicate: Predicate) -> Keep:
    reason = predicate.reason if isinstance(predicate, Unknown) else ""
    return Keep(part, None, Reason.of_unknown(reason))


def _all_of(children: Iterable[Normal]) -> Normal:
    parts = _narrowed(
        [part for child in children for part in (child.children if isinstance(child, AllOf) else (child,))]
    )
    return parts[0] if len(parts) == 1 else AllOf(tuple(parts))


def _any_of(children: Iterable[Normal]) -> Normal:
    parts = [part for child in children for part in (child.children if isinstance(child, AnyOf) else (child,))]
    return parts[0] if len(parts) == 1 else AnyOf(tuple(parts))


def _narrowed(parts: list[Normal]) -> list[Normal]:
    """Replace bounds that leave few values of a column by these values."""
    bounds: dict[ColumnPath, list[Bound]] = {}
    for part in parts:
        if isinstance(part, Bound):
            bounds.setdefault(part.column, []).append(part)
    for of_column in bounds.values():
        exchanged = _one_value(of_column) or _whole_numbers(of_column)
        if exchanged is not None:
            used, values = exchanged
            parts = [part for part in parts if not any(part is bound for bound in used)] + [values]
    return parts


def _one_value(bounds: list[Bound]) -> tuple[list[Bound], OneOf] | None:
    """``c >= v AND c <= v`` is ``c = v`` for every type that Spark compares."""
    for low in bounds:
        for high in bounds:
            if (low.op, high.op) == (">=", "<=") and low.value == high.value:
                both = And((low.part, high.part))
                return [low, high], OneOf(both, low.column, (low.value,), bounds=(low, high))
    return None


def _whole_numbers(bounds: list[Bound]) -> tuple[list[Bound], OneOf] | None:
    """``c > 2 AND c <= 5`` is 3, 4 and 5, if the column holds whole numbers."""
    for kind in (Kind.INTEGER, Kind.DATE):
        used = [bound for bound in bounds if bound.value.spark_type.kind is kind]
        lows = [int(bound.value.decoded()) + (bound.op == ">") for bound in used if bound.op in (">", ">=")]
        highs = [int(bound.value.decoded()) - (bound.op == "<") for bound in used if bound.op in ("<", "<=")]
        if lows and highs and min(highs) - max(lows) < MAX_WHOLE_NUMBERS:
            name = "date" if kind is Kind.DATE else "bigint"
            values = tuple(Literal(name, number) for number in range(max(lows), min(highs) + 1))
            return used, OneOf(And(tuple(bound.part for bound in used)), used[0].column, values, True, tuple(used))
    return None
