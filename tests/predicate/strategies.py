"""Random rows and predicates over one small schema. Few distinct values, so that things meet."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from lakebloom.predicate.python_literals import literal
from lakebloom.predicate.tree import (
    NULL,
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
    Unknown,
)
from lakebloom.tables.columns import ColumnPath

NAN, INF = float("nan"), float("inf")
INTS = [0, 1, 2, -1, 127]
WIDE = [0, 1, 2, -1, 2**31, 2**53, 2**53 + 1, -(2**63)]
DOUBLES = [0.0, -0.0, 1.0, 1.5, 0.1, float(2**53), NAN, INF, -INF]
FLOATS = [0.0, -0.0, 1.0, 1.5, float(np.float32(0.1)), NAN, -INF]
CENTS = [Decimal("0.00"), Decimal("1.00"), Decimal("1.50"), Decimal("-1.50"), Decimal("0.10")]
TEXTS = ["", "a", "A", "ä", "x" * 20, "x" * 31 + "ä", "x" * 40]
BYTES = [b"", b"a", b"\x00", b"\xff", b"a\x00", b"\xff" * 40]
DAYS = [0, -1, 19_000]
MICROS = [0, -1, 1_700_000_000_123_456]

# Column: Spark type, values it holds.
SCHEMA: dict[ColumnPath, tuple[str, list[Any]]] = {
    ("small",): ("smallint", INTS),
    ("i",): ("int", [*INTS, 2**31 - 1]),
    ("big",): ("bigint", WIDE),
    ("f",): ("float", FLOATS),
    ("d",): ("double", DOUBLES),
    ("cents",): ("decimal(5,2)", CENTS),
    ("wide",): ("decimal(30,3)", CENTS),
    ("t",): ("string", TEXTS),
    ("y",): ("binary", BYTES),
    ("day",): ("date", DAYS),
    ("at",): ("timestamp", MICROS),
    ("wall",): ("timestamp_ntz", MICROS),
    ("s", "k"): ("bigint", WIDE),
    ("s", "t"): ("string", TEXTS),
    ("flag",): ("boolean", [True, False]),
    ("tiny",): ("tinyint", INTS),
    ("bare",): ("bigint", WIDE),
}
TYPES: dict[ColumnPath, str] = {column: name for column, (name, _) in SCHEMA.items()}
INDEXED = {column: name for column, name in TYPES.items() if column not in {("flag",), ("tiny",), ("bare",)}}

ARROW = {
    "smallint": pa.int16(), "int": pa.int32(), "bigint": pa.int64(), "float": pa.float32(), "double": pa.float64(),
    "decimal(5,2)": pa.decimal128(5, 2), "decimal(30,3)": pa.decimal128(30, 3), "string": pa.string(),
    "binary": pa.binary(), "date": pa.date32(), "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"), "boolean": pa.bool_(), "tinyint": pa.int8(),
}  # fmt: skip

NUMBERS = [
    *map(literal, [*WIDE, *DOUBLES, *CENTS, Decimal("1.0"), Decimal("0.1000"), Decimal("1.23456"), 2**64]),
    *(Literal("float", repr(value)) for value in FLOATS),
    *(Literal(name, 1) for name in ("tinyint", "smallint", "int")),
]
LITERALS: dict[str, list[Literal]] = {
    "string": [literal(value) for value in [*TEXTS, "absent"]],
    "binary": [literal(value) for value in [*BYTES, b"absent"]],
    "date": [Literal("date", value) for value in [*DAYS, 5]],
    "timestamp": [Literal("timestamp", value) for value in [*MICROS, 5]],
    "timestamp_ntz": [Literal("timestamp_ntz", value) for value in [*MICROS, 5]],
    "boolean": [literal(True), literal(False)],
}


def rows(min_size: int = 0, max_size: int = 6) -> st.SearchStrategy[list[dict[ColumnPath, Any]]]:
    """Rows in which each leaf may be NULL. Where both leaves of the struct are, so is the struct at times."""
    row = st.fixed_dictionaries({column: st.none() | st.sampled_from(values) for column, (_, values) in SCHEMA.items()})
    return st.lists(row, min_size=min_size, max_size=max_size)


def judged(row: dict[ColumnPath, Any]) -> dict[ColumnPath, Any]:
    """The row as the evaluator wants it."""
    return {column: Fraction(value) if isinstance(value, Decimal) else value for column, value in row.items()}


def table_of(rows: list[dict[ColumnPath, Any]]) -> pa.Table:
    """The rows as Arrow, with structs for nested names."""
    arrays: dict[str, pa.Array] = {}
    for column, name in TYPES.items():
        if len(column) == 1:
            arrays[column[0]] = array_of([row[column] for row in rows], name)
    keys, texts = ([row["s", name] for row in rows] for name in ("k", "t"))
    # A NULL struct over children that hold something: what is under it must not count.
    absent = pa.array([key is None and text is None for key, text in zip(keys, texts, strict=True)], pa.bool_())
    hidden = array_of([1 if gone else key for gone, key in zip(absent.to_pylist(), keys, strict=True)], "bigint")
    arrays["s"] = pa.StructArray.from_arrays([hidden, array_of(texts, "string")], ["k", "t"], mask=absent)
    return pa.table(arrays)


def array_of(values: list[Any], type: str) -> pa.Array:
    if type in ("date", "timestamp", "timestamp_ntz"):
        return pa.array(values, pa.int32() if type == "date" else pa.int64()).view(ARROW[type])
    return pa.array(values, ARROW[type])


def literals_for(type: str) -> list[Literal]:
    """All literals that a column of this type may meet."""
    return LITERALS.get(type, NUMBERS)


def literals_of(type: str) -> list[Literal]:
    """Those of its own type."""
    return [literal for literal in literals_for(type) if literal.type == type]


def leaves(
    columns: list[ColumnPath], literals: Callable[[str], list[Literal]] = literals_for
) -> st.SearchStrategy[Predicate]:
    def of(column: ColumnPath) -> st.SearchStrategy[Predicate]:
        here, values = st.just(column), st.sampled_from([NULL, *literals(TYPES[column])])
        return st.one_of(
            st.builds(Equals, here, values),
            st.builds(EqualsNullSafe, here, values),
            st.builds(IsIn, here, st.lists(values, max_size=3).map(tuple)),
            st.builds(IsNull, here),
            st.builds(IsNotNull, here),
            st.builds(Compare, here, st.sampled_from(["<", "<=", ">", ">="]), values),
            st.builds(StartsWith, here, values) if TYPES[column] in ("string", "binary") else st.nothing(),
        )

    def between(column: ColumnPath) -> st.SearchStrategy[Predicate]:
        here, values = st.just(column), st.sampled_from(literals(TYPES[column]) or [NULL])
        low = st.builds(Compare, here, st.sampled_from([">", ">="]), values)
        high = st.builds(Compare, here, st.sampled_from(["<", "<="]), values)
        return st.tuples(low, high).map(And) | values.map(
            lambda value: Compare(column, ">=", value) & Compare(column, "<=", value)
        )

    some = st.sampled_from(columns)
    return st.one_of(some.flatmap(of), some.flatmap(of), some.flatmap(of), some.flatmap(between))


def trees(leaf: st.SearchStrategy[Predicate], max_leaves: int = 6) -> st.SearchStrategy[Predicate]:
    def grow(inner: st.SearchStrategy[Predicate]) -> st.SearchStrategy[Predicate]:
        children = st.lists(inner, max_size=3).map(tuple)
        return st.one_of(
            st.builds(And, children),
            st.builds(Or, children),
            st.builds(Not, inner),
            st.builds(TruthIs, inner, st.lists(st.sampled_from(["true", "false", "null"]), unique=True).map(tuple)),
            st.builds(If, inner, inner, inner),
        )

    return st.recursive(leaf | st.just(Null()), grow, max_leaves=max_leaves)


UNKNOWNS = st.builds(Unknown, st.sampled_from(["NOT_SUPPORTED", "COLLATION", "of some sort"]), st.sampled_from("pqr"))
PREDICATES = trees(leaves(list(SCHEMA)))
PREDICATES_WITH_UNKNOWNS = trees(leaves(list(SCHEMA)) | UNKNOWNS)
