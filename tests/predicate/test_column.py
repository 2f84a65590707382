"""How a person writes predicates: columns, operators, and every type of value."""

from __future__ import annotations

import datetime as dt
import enum
import uuid
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lakebloom.errors import InvalidArgumentError, LakebloomError, UnsupportedTypeError, ValueConversionError
from lakebloom.predicate.column import col
from lakebloom.predicate.python_literals import literal
from lakebloom.predicate.tree import (
    NULL,
    Compare,
    Equals,
    EqualsNullSafe,
    IsIn,
    IsNotNull,
    IsNull,
    Literal,
    Not,
    Predicate,
)

ONE, TWO = Literal("bigint", 1), Literal("bigint", 2)
TOKYO = dt.timezone(dt.timedelta(hours=9))


class Colour(str, enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    LOW = 1


@pytest.mark.parametrize(
    ("written", "tree"),
    [
        (col("a") == 1, Equals(("a",), ONE)),
        (1 == col("a"), Equals(("a",), ONE)),  # noqa: SIM300
        (np.int64(1) == col("a"), Equals(("a",), ONE)),
        (pa.scalar(1) == col("a"), Equals(("a",), ONE)),
        (col("a") != 1, Not(Equals(("a",), ONE))),
        (col("a") == None, Equals(("a",), NULL)),  # noqa: E711
        (col("a").eq_null_safe(None), EqualsNullSafe(("a",), NULL)),
        (col("s.k").is_null(), IsNull(("s", "k"))),
        (col("`s.k`").is_not_null(), IsNotNull(("s.k",))),
        (col("a") < 1, Compare(("a",), "<", ONE)),
        (col("a") <= 1, Compare(("a",), "<=", ONE)),
        (col("a") > 1, Compare(("a",), ">", ONE)),
        (1 <= col("a"), Compare(("a",), ">=", ONE)),  # noqa: SIM300
        (col("a").isin([1, 2]), IsIn(("a",), (ONE, TWO))),
        (col("a").isin((1, 2)), IsIn(("a",), (ONE, TWO))),
        (col("a").isin({1}), IsIn(("a",), (ONE,))),
        (col("a").isin(value for value in (1, None)), IsIn(("a",), (ONE, NULL))),
        (col("a").isin(np.array([1, 2])), IsIn(("a",), (ONE, TWO))),
        (col("a").isin(np.array([1, "x", None], object)), IsIn(("a",), (ONE, Literal("string", "x"), NULL))),
        (col("a").isin(np.array(["x"])), IsIn(("a",), (Literal("string", "x"),))),
        (col("a").isin(pa.array([1, None])), IsIn(("a",), (ONE, Literal("bigint", None)))),
        (col("a").isin(pa.chunked_array([[1], [2]])), IsIn(("a",), (ONE, TWO))),
        (col("a").isin(pa.array([1, 2]).dictionary_encode()), IsIn(("a",), (ONE, TWO))),
        (col("a").isin([]), IsIn(("a",), ())),
    ],
)
def test_what_is_written_is_what_the_tree_says(written: Predicate, tree: Predicate) -> None:
    assert written == tree


@pytest.mark.parametrize(
    ("value", "name", "form"),
    [
        (None, "void", None),
        (True, "boolean", True),
        (np.bool_(False), "boolean", False),
        (5, "bigint", 5),
        (Level.LOW, "bigint", 1),
        (-(2**63), "bigint", -(2**63)),
        (2**63, "decimal(38,0)", str(2**63)),
        (1.5, "double", "1.5"),
        (-0.0, "double", "-0.0"),
        (float("nan"), "double", "nan"),
        (float("-inf"), "double", "-inf"),
        ("ä", "string", "ä"),
        (Colour.RED, "string", "red"),
        (np.str_("x"), "string", "x"),
        (uuid.UUID("550E8400-E29B-41D4-A716-446655440000"), "string", "550e8400-e29b-41d4-a716-446655440000"),
        (b"\x00\xff", "binary", "AP8="),
        (bytearray(b"a"), "binary", "YQ=="),
        (memoryview(b"a"), "binary", "YQ=="),
        (np.bytes_(b"a\x00"), "binary", "YQA="),
        (dt.date(1969, 12, 31), "date", -1),
        (dt.datetime(1970, 1, 1, 9, tzinfo=TOKYO), "timestamp", 0),
        (dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=dt.timezone.utc), "timestamp", -1),
        (dt.datetime(1970, 1, 1, 9), "timestamp_ntz", 9 * 3_600_000_000),
        (Decimal("1.50"), "decimal(3,2)", "150"),
        (Decimal("-0.001"), "decimal(3,3)", "-1"),
        (Decimal("1E+3"), "decimal(4,0)", "1000"),
        (Decimal("-0"), "decimal(1,0)", "0"),
        (np.int8(-5), "tinyint", -5),
        (np.int16(5), "smallint", 5),
        (np.int32(5), "int", 5),
        (np.uint8(200), "smallint", 200),
        (np.uint16(5), "int", 5),
        (np.uint32(2**32 - 1), "bigint", 2**32 - 1),
        (np.uint64(2**64 - 1), "decimal(20,0)", str(2**64 - 1)),
        (np.float16(0.1), "float", "0.0999755859375"),
        (np.float32(0.1), "float", "0.10000000149011612"),
        (np.float64(0.1), "double", "0.1"),
        (np.datetime64("1970-01-02"), "date", 1),
        (np.datetime64("1970-01-01T00:00:01"), "timestamp_ntz", 1_000_000),
        (np.datetime64("NaT", "us"), "timestamp_ntz", None),
        (np.array(7), "bigint", 7),
        (pa.scalar(None), "void", None),
        (pa.scalar(None, pa.int32()), "int", None),
        (pa.scalar(Decimal("1.5"), pa.decimal128(10, 2)), "decimal(10,2)", "150"),
        (pa.scalar(Decimal("-1.5"), pa.decimal256(70, 2)), "decimal(3,2)", "-150"),
        (pa.scalar(Decimal("1E+3"), pa.decimal128(5, -2)), "decimal(4,0)", "1000"),
        (pa.scalar(1, pa.timestamp("ms", "Asia/Tokyo")), "timestamp", 1000),
        (pa.scalar(5000, pa.timestamp("ns")), "timestamp_ntz", 5),
        (pa.scalar(86_400_000, pa.date64()), "date", 1),
        (pa.scalar("x", pa.large_string()), "string", "x"),
        (pa.scalar(b"x", pa.binary(1)), "binary", "eA=="),
    ],
)
def test_values_become_literals_by_their_type(value: object, name: str, form: Any) -> None:
    made = literal(value)
    assert (made.type, made.value) == (name, form)
    assert type(made.value) is type(form)


def test_a_uuid_of_arrow_is_text_too() -> None:
    key = uuid.uuid4()
    text = Literal("string", str(key))
    assert literal(pa.scalar(key.bytes, pa.uuid())) == literal(key) == text
    assert col("a").isin(pa.array([key.bytes, None], pa.uuid())) == IsIn(("a",), (text, NULL))


class Nanoseconds(dt.datetime):
    """As pandas' Timestamp."""

    nanosecond = 1


class NotATime(dt.datetime):
    """As pandas' NaT, which is a datetime and differs from itself."""

    def __ne__(self, other: object) -> bool:
        return True


def test_pandas_times() -> None:
    assert literal(NotATime(2000, 1, 1)) == NULL
    with pytest.raises(ValueConversionError, match="finer than microseconds"):
        literal(Nanoseconds(2000, 1, 1))


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (10**38, ValueConversionError),
        (Decimal("NaN"), ValueConversionError),
        (Decimal("Infinity"), ValueConversionError),
        (Decimal("1E-39"), ValueConversionError),
        (Decimal(10) ** 38, ValueConversionError),
        ("\ud800", InvalidArgumentError),
        (dt.time(1), UnsupportedTypeError),
        (dt.timedelta(1), UnsupportedTypeError),
        (1j, UnsupportedTypeError),
        ([1], UnsupportedTypeError),
        (np.array([1]), UnsupportedTypeError),
        (object(), UnsupportedTypeError),
        (np.timedelta64(1, "s"), UnsupportedTypeError),
        (pa.scalar([1]), UnsupportedTypeError),
        (pa.scalar(1, pa.timestamp("ns")), ValueConversionError),
        (col("b"), InvalidArgumentError),
    ],
)
def test_other_values_are_refused(value: object, error: type[LakebloomError]) -> None:
    for compare in (lambda: col("a") == value, lambda: col("a") < value, lambda: col("a").eq_null_safe(value)):
        with pytest.raises(error):
            compare()


@pytest.mark.parametrize("values", ["abc", b"abc", 5, None, col("b"), np.array(5), np.zeros((2, 2))])
def test_isin_takes_a_collection(values: object) -> None:
    with pytest.raises(InvalidArgumentError):
        col("a").isin(values)


@pytest.mark.parametrize(
    "use",
    [
        lambda: col("a") == 1 & col("b") == 2,
        lambda: col("a") | (col("b") == 2),
        lambda: ~col("a"),
        lambda: bool(col("a")),
    ],
)
def test_a_column_is_no_predicate(use: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="put each comparison in parentheses"):
        use()


def test_names() -> None:
    assert repr(col("s.`odd.name`")) == "col('s.`odd.name`')"
    for name in ("", "a..b", 5):
        with pytest.raises(InvalidArgumentError):
            col(name)  # type: ignore[arg-type]
