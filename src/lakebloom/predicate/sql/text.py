"""A predicate as a line of SQL, for messages. Long lists, chains and strings are shortened."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable
from decimal import Context, Decimal
from typing import TypeVar

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
    Or,
    Predicate,
    StartsWith,
    TruthIs,
    TruthName,
    Unknown,
    operands,
)
from lakebloom.tables.columns import format_name

__all__ = ["to_text"]

_MAX_CHARACTERS = 60
_MAX_VALUES = 3
_MAX_OPERANDS = 10
_MAX_LEVELS = 8
_EXACT = Context(prec=38)
_EPOCH = datetime.datetime(1970, 1, 1)
_DAY = datetime.timedelta(days=1)
_MICROSECOND = datetime.timedelta(microseconds=1)

_Item = TypeVar("_Item")


def to_text(predicate: Predicate) -> str:
    """Return a predicate as text.

    >>> from lakebloom.predicate.column import col
    >>> print(to_text((col("user_id") == "x") & (col("a").isin(range(1000)) | col("b").is_null())))
    user_id = 'x' AND (a IN (0, 1, 2, … 997 more) OR b IS NULL)
    """
    return _text(predicate, _MAX_LEVELS)


def _text(predicate: Predicate, levels: int) -> str:
    """Return a predicate as text; parts below this many levels are left out."""
    match predicate:
        case And() | Or() | TruthIs() | If() | Not(And() | Or() | Not() | TruthIs() | If()) if not levels:
            return "…"
        case And():
            return _shortened(" AND ", operands(predicate), lambda part: _inside(part, levels), _MAX_OPERANDS) or "TRUE"
        case Or():
            return _shortened(" OR ", operands(predicate), lambda part: _inside(part, levels), _MAX_OPERANDS) or "FALSE"
        case Not(Equals(column, value)):
            return f"{format_name(column)} <> {_literal(value)}"
        case Not(IsIn(column, values)):
            return f"{format_name(column)} NOT IN ({_shortened(', ', values, _literal, _MAX_VALUES)})"
        case Not(StartsWith(column, value)):
            return f"{format_name(column)} NOT LIKE {_pattern(value)}"
        case Not(child):
            return f"NOT {_inside(child, levels)}"
        case Equals(column, value):
            return f"{format_name(column)} = {_literal(value)}"
        case EqualsNullSafe(column, value):
            return f"{format_name(column)} <=> {_literal(value)}"
        case IsIn(column, values):
            return f"{format_name(column)} IN ({_shortened(', ', values, _literal, _MAX_VALUES)})"
        case IsNull(column):
            return f"{format_name(column)} IS NULL"
        case IsNotNull(column):
            return f"{format_name(column)} IS NOT NULL"
        case Compare(column, op, value):
            return f"{format_name(column)} {op} {_literal(value)}"
        case StartsWith(column, value):
            return f"{format_name(column)} LIKE {_pattern(value)}"
        case TruthIs(child, among):
            return f"({_text(child, levels - 1)}) {_truth(among)}"
        case If(condition, then, otherwise):
            when, so, other = (_text(part, levels - 1) for part in (condition, then, otherwise))
            return f"CASE WHEN {when} THEN {so} ELSE {other} END"
        case Null():
            return "NULL"
        case Unknown(_, text):
            return _cut(text)


def _truth(among: tuple[TruthName, ...]) -> str:
    missing = [name for name in ("true", "false", "null") if name not in among]
    if len(among) == 1:
        return f"IS {among[0].upper()}"
    return f"IS NOT {missing[0].upper()}" if len(missing) == 1 else f"IS AMONG ({', '.join(among).upper()})"


def _inside(predicate: Predicate, levels: int) -> str:
    text = _text(predicate, levels - 1)
    return f"({text})" if isinstance(predicate, And | Or) else text


def _shortened(joint: str, items: Iterable[_Item], text: Callable[[_Item], str], most: int) -> str:
    items = list(items)
    left_out = len(items) - most
    # Leaving out one item would save nothing.
    shown = items if left_out <= 1 else items[:most]
    texts = [*map(text, shown), *([] if left_out <= 1 else [f"… {left_out} more"])]
    return joint.join(texts)


def _literal(literal: Literal) -> str:
    if literal.value is None:
        return "NULL"
    spark_type, value = literal.spark_type, literal.decoded()
    match spark_type.kind, value:
        case Kind.STRING, str():
            return _quoted(value)
        case Kind.BINARY, bytes():
            return f"X'{_cut(value.hex().upper())}'"
        case Kind.BOOLEAN, bool():
            return str(value).upper()
        case Kind.DECIMAL, int():
            return f"{Decimal(value).scaleb(-spark_type.scale, _EXACT):f}"
        case (Kind.DATE, int()):
            return f"DATE {_moment(value, _DAY, lambda moment: moment.date().isoformat())}"
        case ((Kind.TIMESTAMP | Kind.TIMESTAMP_NTZ), int()):
            zone = "" if spark_type.kind is Kind.TIMESTAMP_NTZ else " UTC"
            return f"{literal.type.upper()} {_moment(value, _MICROSECOND, lambda moment: f'{moment}{zone}')}"
        case ((Kind.INTEGER | Kind.FLOATING), _):
            return str(value)
        case _:
            return f"{_quoted(str(value))} ({literal.type})"


def _pattern(prefix: Literal) -> str:
    """Return the pattern of LIKE for a prefix. One of bytes, which have no LIKE, is shown as bytes."""
    value = prefix.value
    if value is None:
        return "NULL"
    if prefix.spark_type.kind is not Kind.STRING or not isinstance(value, str):
        return f"{_literal(prefix)} || '%'"
    escaped = "".join(f"\\{letter}" if letter in "%_\\" else letter for letter in value)
    return _quoted(f"{escaped}%")


def _moment(count: int, unit: datetime.timedelta, text: Callable[[datetime.datetime], str]) -> str:
    try:
        return f"'{text(_EPOCH + count * unit)}'"
    except OverflowError:  # Spark's years go beyond Python's
        return str(count)


def _quoted(text: str) -> str:
    return "'" + _cut(text.replace("'", "''")) + "'"


def _cut(text: str) -> str:
    """Return a text on one line, shortened."""
    line = "".join(character if character.isprintable() else f"\\u{ord(character):04x}" for character in text)
    return line if len(line) <= _MAX_CHARACTERS else line[: _MAX_CHARACTERS - 1] + "…"
