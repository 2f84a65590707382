"""A predicate as SQL that an engine can run, whole and exact (``lakebloom.predicate.sql.text`` is for people)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

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
)
from lakebloom.tables.columns import ColumnPath


def spark_literal(literal: Literal) -> str:
    if literal.is_null:
        return "NULL"
    value, kind = literal.decoded(), literal.spark_type.kind
    match kind, value:
        case Kind.DATE, int():
            return f"date_from_unix_date({value})"
        case Kind.TIMESTAMP, int():
            return f"timestamp_micros({value})"
        case Kind.TIMESTAMP_NTZ, int():
            return f"TIMESTAMP_NTZ'{dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=value)}'"
        case Kind.STRING, str():
            return f"'{value}'"
        case Kind.BINARY, bytes():
            return f"X'{value.hex()}'"
        case Kind.DECIMAL, int():
            scale = literal.spark_type.scale
            digits = f"{abs(value):0{scale + 1}d}"
            sign = "-" if value < 0 else ""
            return f"{sign}{digits[: len(digits) - scale]}.{digits[len(digits) - scale :]}BD"
        case _:
            return f"CAST('{literal.value}' AS {literal.type})"


def duckdb_literal(literal: Literal) -> str:
    if literal.is_null:
        return "NULL"
    if literal.spark_type.kind is Kind.STRING:
        return f"'{literal.value}'"
    return f"CAST('{literal.value}' AS {literal.type})"


def to_sql(predicate: Predicate, quote: str, null_safe: str, literal: Callable[[Literal], str]) -> str:
    def name(column: ColumnPath) -> str:
        return ".".join(f"{quote}{part}{quote}" for part in column)

    def sql(predicate: Predicate) -> str:
        match predicate:
            case And(children):
                return "(" + " AND ".join(["TRUE", *map(sql, children)]) + ")"
            case Or(children):
                return "(" + " OR ".join(["FALSE", *map(sql, children)]) + ")"
            case Not(child):
                return f"(NOT {sql(child)})"
            case Equals(column, value):
                return f"({name(column)} = {literal(value)})"
            case EqualsNullSafe(column, value):
                return f"({name(column)} {null_safe} {literal(value)})"
            case IsIn(column, values):  # neither parser accepts an empty list
                return f"({name(column)} IN ({', '.join(map(literal, values))}))" if values else "FALSE"
            case IsNull(column):
                return f"({name(column)} IS NULL)"
            case IsNotNull(column):
                return f"({name(column)} IS NOT NULL)"
            case Compare(column, op, value):
                return f"({name(column)} {op} {literal(value)})"
            case StartsWith(column, Literal("binary", str()) as value):
                return f"startswith({name(column)}, {literal(value)})"
            case StartsWith(column, value):  # no text of the strategies has a wildcard
                pattern = Literal("string", f"{value.value}%") if isinstance(value.value, str) else value
                return f"({name(column)} LIKE {literal(pattern)})"
            case TruthIs(child, among):
                tests = {"true": "IS TRUE", "false": "IS FALSE", "null": "IS NULL"}
                return "(" + " OR ".join(["FALSE", *(f"({sql(child)} {tests[name]})" for name in among)]) + ")"
            case If(condition, then, otherwise):
                return f"(CASE WHEN {sql(condition)} THEN {sql(then)} ELSE {sql(otherwise)} END)"
            case Null():
                return "CAST(NULL AS BOOLEAN)"
            case _:
                raise AssertionError(predicate)

    return sql(predicate)
