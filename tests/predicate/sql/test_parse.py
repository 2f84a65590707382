"""Conditions as text: what they mean, and where they are wrong."""

from __future__ import annotations

import datetime
import pickle
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np
import pytest

from lakebloom import col
from lakebloom.errors import PredicateSyntaxError
from lakebloom.predicate.sql.parse import parse
from lakebloom.predicate.sql.text import to_text
from lakebloom.predicate.tree import NULL, StartsWith, TruthIs

if TYPE_CHECKING:
    from lakebloom.predicate.tree import Predicate

COLUMNS = [
    (("k",), "bigint"),
    (("d",), "decimal(10,2)"),
    (("f",), "float"),
    (("x",), "double"),
    (("s",), "string"),
    (("b",), "binary"),
    (("day",), "date"),
    (("at",), "timestamp"),
    (("wall",), "timestamp_ntz"),
    (("ok",), "boolean"),
    (("s2", "leaf"), "string"),
    (("odd.name",), "int"),
    (("c",), "char(3)"),
    (("Aa",), "int"),
    (("aA",), "int"),
]
UTC = datetime.timezone.utc
NOON = datetime.datetime(2024, 2, 29, 12, 30)

MEANINGS: dict[str, Predicate] = {
    "k = 42": col("k") == 42,
    "K == -42": col("k") == -42,
    "k='42'": col("k") == 42,
    "k = 1e3": col("k") == 1000,
    "k <> 1": col("k") != 1,
    "k != 1": col("k") != 1,
    "k <=> NULL": col("k").eq_null_safe(None),
    "k = null": col("k") == None,  # noqa: E711
    "k in (1,2 , 3)": col("k").isin([1, 2, 3]),
    "k NOT IN (1)": ~col("k").isin([1]),
    "k between 1 and 3": (col("k") >= 1) & (col("k") <= 3),
    "k between 1 and 3000": col("k").between(1, 3000),
    "s like 'ab%'": col("s").startswith("ab"),
    "s NOT LIKE 'ab%'": ~col("s").startswith("ab"),
    "s like 'ab'": col("s") == "ab",
    "s like '%'": col("s").startswith(""),
    r"s like '10\%\_\\%'": col("s").startswith("10%_\\"),
    r"s like 'it''s 10\%'": col("s") == "it's 10%",
    "s LIKE NULL": StartsWith(("s",), NULL),
    "k is null": col("k").is_null(),
    "k IS NOT NULL": col("k").is_not_null(),
    "d = 1.50": col("d") == Decimal("1.50"),
    "f = 0.1": col("f") == np.float32(0.1),
    "x = 0.1": col("x") == 0.1,
    "x = 'NaN'": col("x") == float("nan"),
    "s = 'it''s'": col("s") == "it's",
    "s = ''": col("s") == "",
    "b = X'00fF'": col("b") == b"\x00\xff",
    "b = 'é'": col("b") == "é".encode(),
    "day = '2024-02-29'": col("day") == NOON.date(),
    "day = date '2024-02-29'": col("day") == NOON.date(),
    "at = '2024-02-29 12:30:00'": col("at") == NOON.replace(tzinfo=UTC),
    "at = '2024-02-29T12:30:00Z'": col("at") == NOON.replace(tzinfo=UTC),
    "at = TIMESTAMP '2024-02-29 13:30:00+01:00'": col("at") == NOON.replace(tzinfo=UTC),
    "wall = '2024-02-29 12:30:00'": col("wall") == NOON,
    "ok = true": col("ok") == True,  # noqa: E712
    "s2.leaf = 'a'": col("s2.leaf") == "a",
    "`odd.name` = 1": col("`odd.name`") == 1,
    "k = 1 is true": TruthIs(col("k") == 1, ("true",)),
    "(k = 1 or s = 'a') IS NOT TRUE": TruthIs((col("k") == 1) | (col("s") == "a"), ("false", "null")),
    "not k in (1, null) is unknown": ~TruthIs(col("k").isin([1, None]), ("null",)),
    "(k > 1) IS NOT NULL IS FALSE": TruthIs(TruthIs(col("k") > 1, ("true", "false")), ("false",)),
    "ok is true": col("ok").eq_null_safe(True),
    "ok IS NOT FALSE": ~col("ok").eq_null_safe(False),
    "not k = 1 and s = 'a' or k = 2": (~(col("k") == 1) & (col("s") == "a")) | (col("k") == 2),
    "not (k = 1 and (s = 'a' or k = 2))": ~((col("k") == 1) & ((col("s") == "a") | (col("k") == 2))),
}


@pytest.mark.parametrize("text", MEANINGS)
def test_meanings(text: str) -> None:
    assert parse(text, COLUMNS) == MEANINGS[text]


@pytest.mark.parametrize("text", [text for text in MEANINGS if "NaN" not in text and "X'" not in text])
def test_what_is_printed_can_be_read(text: str) -> None:
    predicate = parse(text, COLUMNS)
    assert parse(to_text(predicate), COLUMNS) == predicate


@pytest.mark.parametrize(
    ("text", "position", "said"),
    [
        ("", 0, "a column's name"),
        ("k", 1, "a comparison"),
        ("k =", 3, "a value"),
        ("k = (1)", 4, "a value"),
        ("k = 1 2", 6, "AND, OR or the end"),
        ("k = 1 AND", 9, "a column's name"),
        ("(k = 1", 6, "a closing bracket"),
        ("k IN 1", 5, "a bracket"),
        ("k IN (1 2)", 8, "a comma or a closing bracket"),
        ("k NOT 1", 6, "IN, BETWEEN or LIKE"),
        ("k LIKE 'a%'", 7, "a string column before LIKE"),
        ("s LIKE 'a%b'", 7, "one % at its end"),
        ("s LIKE '%a'", 7, "one % at its end"),
        ("s LIKE 'a_'", 7, "one % at its end"),
        (r"s LIKE 'a\b%'", 7, "a backslash before"),
        ("s LIKE b", 7, "a value"),
        ("k IS 1", 5, "NULL or NOT NULL"),
        ("k IS TRUE", 5, "NULL or NOT NULL"),
        ("k = 1 IS 1", 9, "TRUE, FALSE, UNKNOWN or NULL"),
        ("k = 1 IS 'TRUE'", 9, "TRUE, FALSE, UNKNOWN or NULL"),
        ("s = 'a", 4, "a quote that is not closed"),
        ("k ~ 1", 2, "'~'"),
        ("s = a", 4, "put text in single quotes"),
        ("nope = 1", 0, "no column nope"),
        ("AA = 1", 0, "several columns AA"),
        ("k = 1 OR k = 'x'", 13, "'x' is not a valid bigint for column k"),
        ("k = 1x", 4, "'1'"),
        ("k = 1e99999999999", 4, "at most 38 digits"),
        ("k = DATE '2024-01-01'", 4, "DATE values have another type"),
        ("s = 5", 4, "write '5'"),
        ("b = X'0'", 4, "is not a valid"),
        ("day = '2024-02-30'", 6, "is not a valid"),
        ("day = 5", 6, "is not a valid"),
        ("wall = '2024-02-29 12:30:00Z'", 7, "no time zone"),
        ("ok = 'maybe'", 5, "TRUE or FALSE"),
        ("(" * 200 + "k = 1" + ")" * 200, 100, "brackets and NOTs"),
    ],
)
def test_errors_point_at_the_place(text: str, position: int, said: str) -> None:
    with pytest.raises(PredicateSyntaxError) as caught:
        parse(text, COLUMNS)
    assert caught.value.position == position
    assert said in str(caught.value)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (str(copy), copy.position, copy.text) == (str(caught.value), position, text)


def test_names_are_found_as_the_table_finds_them() -> None:
    assert parse("Aa = 1", COLUMNS, case_sensitive=True) == (col("Aa") == 1)
    for text, case_sensitive in (("Aa = 1", False), ("AA = 1", True), ("K = 1", True)):
        with pytest.raises(PredicateSyntaxError, match="column"):
            parse(text, COLUMNS, case_sensitive=case_sensitive)


def test_types_without_filters_are_carried() -> None:
    assert parse("c = 'ab'", COLUMNS).value.type == "char(3)"  # type: ignore[union-attr]
