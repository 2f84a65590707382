"""Predicates as people read them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest

from lakebloom.predicate.column import col
from lakebloom.predicate.sql.text import to_text
from lakebloom.predicate.tree import And, Equals, Literal, Or, Predicate, Unknown

a, b = col("a"), col("b")

PAIRS: list[tuple[Predicate, str]] = [
    (a == 1, "a = 1"),
    (a != 1, "a <> 1"),
    (a.eq_null_safe(None), "a <=> NULL"),
    (~a.eq_null_safe(1), "NOT a <=> 1"),
    (a.isin([1, None]), "a IN (1, NULL)"),
    (~a.isin([]), "a NOT IN ()"),
    (a.isin(range(4)), "a IN (0, 1, 2, 3)"),
    (a.isin(range(1000)), "a IN (0, 1, 2, … 997 more)"),
    (~a.isin(range(1000)), "a NOT IN (0, 1, 2, … 997 more)"),
    (col("s.k").is_null(), "s.k IS NULL"),
    (col("`s.k`").is_not_null(), "`s.k` IS NOT NULL"),
    (a >= 1.5, "a >= 1.5"),
    ((a == 1) & (b == 2) & (a == 3), "a = 1 AND b = 2 AND a = 3"),
    ((a == 1) & ((b == 2) | (a == 3)), "a = 1 AND (b = 2 OR a = 3)"),
    (~((a == 1) | (b == 2)), "NOT (a = 1 OR b = 2)"),
    (~~a.is_null(), "NOT NOT a IS NULL"),
    (Or(tuple(a == i for i in range(50))), " OR ".join(f"a = {i}" for i in range(10)) + " OR … 40 more"),
    (And(()), "TRUE"),
    (And((And(()),)), "TRUE"),
    (Or(()), "FALSE"),
    (Unknown("NOT_SUPPORTED", "upper(a) = 'X'"), "upper(a) = 'X'"),
    (Unknown("NOT_SUPPORTED", "f(" + "x" * 100 + ")"), "f(" + "x" * 57 + "…"),
]


@pytest.mark.parametrize(("predicate", "text"), PAIRS)
def test_pairs(predicate: Predicate, text: str) -> None:
    assert to_text(predicate) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "TRUE"),
        (-5, "-5"),
        (float("nan"), "nan"),
        (Decimal("1.50"), "1.50"),
        (Decimal("-0.0000000001"), "-0.0000000001"),
        (Decimal("1." + "123456789" * 4), "1." + "123456789" * 4),
        ("it's", "'it''s'"),
        ("a\nb\x00", r"'a\u000ab\u0000'"),
        ("x" * 100, "'" + "x" * 59 + "…'"),
        (b"\x00\xff", "X'00FF'"),
        (b"x" * 100, "X'" + "78" * 29 + "7…'"),
        (dt.date(2024, 1, 2), "DATE '2024-01-02'"),
        (dt.datetime(2024, 1, 2, 3, tzinfo=dt.timezone.utc), "TIMESTAMP '2024-01-02 03:00:00 UTC'"),
        (dt.datetime(999, 1, 2, 3, 4, 5, 6), "TIMESTAMP_NTZ '0999-01-02 03:04:05.000006'"),
    ],
)
def test_values(value: Any, text: str) -> None:
    assert to_text(a == value) == f"a = {text}"


@pytest.mark.parametrize(
    ("predicate", "text"),
    [
        (a.startswith("x"), "a LIKE 'x%'"),
        (~a.startswith("it's 10%_\\"), r"a NOT LIKE 'it''s 10\%\_\\%'"),
        (a.startswith(b"\x00"), "a LIKE X'00' || '%'"),
        (a.between(1, 2), "a >= 1 AND a <= 2"),
    ],
)
def test_ranges(predicate: Predicate, text: str) -> None:
    assert to_text(predicate) == text


@pytest.mark.parametrize(
    ("literal", "text"),
    [
        (Literal("date", 2**31 - 1), "DATE 2147483647"),
        (Literal("timestamp", -(2**63)), "TIMESTAMP -9223372036854775808"),
        (Literal("string collate UTF8_LCASE", "x"), "'x' (string collate UTF8_LCASE)"),
        (Literal("interval day", 5), "'5' (interval day)"),
    ],
)
def test_values_beyond_python(literal: Literal, text: str) -> None:
    assert to_text(Equals(("a",), literal)) == f"a = {text}"
