"""A predicate as a question to an index: no NOT, no NULL, and every leaf either asked, kept or impossible.

SQL has three truth values, and a row is wanted only where the predicate is TRUE. Whether it can be is answered by two
functions that call each other, so that NOT disappears by De Morgan:

    p            can be TRUE where               can be FALSE where
    NOT a        a can be FALSE                  a can be TRUE
    a AND b      both can be TRUE                either can be FALSE
    a OR b       either can be TRUE              both can be FALSE
    c = v        c may be v                      unknown: keep
    c = NULL     never, it is NULL               never, it is NULL
    c <=> v      c may be v                      unknown: keep
    c <=> NULL   c may be NULL                   c may be something else
    c IN (v..)   c may be one of them            unknown: keep; never where the list holds a NULL, because
                 (NULLs do not count; never      then what is not found is NULL
                 where nothing else is left)
    c IS NULL    c may be NULL                   c may be something else
    anything     unknown: keep                   unknown: keep

That is sound: wherever the predicate is TRUE for a row, its normal form says so of that row. It may say so of more
rows, never of fewer.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from lakebloom.predicate.reasons import Reason
from lakebloom.predicate.tree import (
    And,
    Compare,
    Equals,
    EqualsNullSafe,
    IsIn,
    IsNotNull,
    IsNull,
    Literal,
    Not,
    Or,
    Predicate,
    Unknown,
    flat,
    operands,
)
from lakebloom.tables.columns import ColumnPath

__all__ = ["AllOf", "AnyOf", "HoldsNull", "HoldsValue", "Keep", "Leaf", "Never", "Normal", "OneOf", "normalise"]


class AllOf(msgspec.Struct, frozen=True):
    """All children hold; without children, always."""

    children: tuple[Normal, ...]


class AnyOf(msgspec.Struct, frozen=True):
    """Some child holds; without children, never."""

    children: tuple[Normal, ...]


class OneOf(msgspec.Struct, frozen=True):
    """The column may hold one of these values, none of which is NULL."""

    source: Predicate
    column: ColumnPath
    values: tuple[Literal, ...]


class HoldsNull(msgspec.Struct, frozen=True):
    """The column may hold NULL."""

    source: Predicate
    column: ColumnPath


class HoldsValue(msgspec.Struct, frozen=True):
    """The column may hold something other than NULL."""

    source: Predicate
    column: ColumnPath


class Never(msgspec.Struct, frozen=True):
    """No row at all."""

    source: Predicate
    column: ColumnPath


class Keep(msgspec.Struct, frozen=True):
    """Any row, as far as an index knows."""

    source: Predicate
    column: ColumnPath | None
    reason: Reason


Leaf: TypeAlias = OneOf | HoldsNull | HoldsValue | Never | Keep
Normal: TypeAlias = AllOf | AnyOf | Leaf


def normalise(predicate: Predicate) -> Normal:
    """Return where a predicate can be TRUE. ``source`` in a leaf is the part of the predicate it stands for.

    Raises InvalidArgumentError for a predicate that is too deep.

    >>> from lakebloom.predicate.build import col
    >>> normalise(~(col("a").is_not_null() | (col("b") == None)))  # doctest: +ELLIPSIS
    AllOf(children=(HoldsNull(source=Not(...), column=('a',)), Never(source=Not(...), column=('b',))))
    """
    return _can_be_true(flat(predicate))


def _can_be_true(predicate: Predicate) -> Normal:
    match predicate:
        case And():
            return _all_of([_can_be_true(part) for part in operands(predicate)])
        case Or():
            return _any_of([_can_be_true(part) for part in operands(predicate)])
        case Not(child):
            return _can_be_false(child)
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
        case _:
            return _unanswered(predicate, predicate)


def _can_be_false(predicate: Predicate) -> Normal:
    match predicate:
        case And():
            return _any_of([_can_be_false(part) for part in operands(predicate)])
        case Or():
            return _all_of([_can_be_false(part) for part in operands(predicate)])
        case Not(child):
            return _can_be_true(child)
        case IsNull(column):
            return HoldsValue(Not(predicate), column)
        case IsNotNull(column):
            return HoldsNull(Not(predicate), column)
        case EqualsNullSafe(column, value) if value.is_null:
            return HoldsValue(Not(predicate), column)
        case Equals(column, value) if value.is_null:
            return Never(Not(predicate), column)
        case IsIn(column, values) if any(value.is_null for value in values):
            return Never(Not(predicate), column)
        case Equals(column) | EqualsNullSafe(column) | IsIn(column):
            return Keep(Not(predicate), column, Reason.NEGATED)
        case _:
            return _unanswered(Not(predicate), predicate)


def _one_of(source: Predicate, column: ColumnPath, values: tuple[Literal, ...]) -> OneOf | Never:
    values = tuple(value for value in values if not value.is_null)
    return OneOf(source, column, values) if values else Never(source, column)


def _unanswered(source: Predicate, predicate: Compare | Unknown) -> Keep | Never:
    if isinstance(predicate, Unknown):
        return Keep(source, None, Reason.of_unknown(predicate.reason))
    if predicate.value.is_null:  # neither TRUE nor FALSE
        return Never(source, predicate.column)
    return Keep(source, predicate.column, Reason.NOT_SUPPORTED)


def _all_of(children: list[Normal]) -> Normal:
    flat = [part for child in children for part in (child.children if isinstance(child, AllOf) else (child,))]
    return flat[0] if len(flat) == 1 else AllOf(tuple(flat))


def _any_of(children: list[Normal]) -> Normal:
    flat = [part for child in children for part in (child.children if isinstance(child, AnyOf) else (child,))]
    return flat[0] if len(flat) == 1 else AnyOf(tuple(flat))
