"""Rows that match, one trap at a time. Laws and outside judges are in test_laws and test_judges."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lakebloom.errors import InvalidArgumentError, LakebloomError, UnsupportedTypeError, ValueConversionError
from lakebloom.predicate.column import col
from lakebloom.predicate.rows.evaluate import row_mask
from lakebloom.predicate.tree import And, Equals, Literal, Or, Predicate, Unknown

a = col("a")
NAN, INF = float("nan"), float("inf")
UTC = dt.timezone.utc


def found(predicate: Predicate, array: pa.Array | pa.ChunkedArray, spark_type: str) -> list[int]:
    mask = row_mask(predicate, pa.table({"a": array}), {("a",): spark_type})
    assert isinstance(mask, pa.ChunkedArray)
    assert mask.null_count == 0
    assert len(mask) == len(array)
    return [i for i, true in enumerate(mask.to_pylist()) if true]


DOUBLES = pa.array([NAN, 0.0, -0.0, 1.5, INF, None])


@pytest.mark.parametrize(
    ("predicate", "rows"),
    [
        (a == NAN, [0]),
        (a.isin([NAN, 1.5]), [0, 3]),
        (a != NAN, [1, 2, 3, 4]),
        (a == 0.0, [1, 2]),
        (a == -0.0, [1, 2]),
        (a == 0, [1, 2]),
        (a.isin([-0.0, None]), [1, 2]),
        (~a.isin([-0.0, None]), []),
        (a.eq_null_safe(None), [5]),
        (~a.eq_null_safe(NAN), [1, 2, 3, 4, 5]),
        (a > INF, [0]),
        (a >= INF, [0, 4]),
        (a < NAN, [1, 2, 3, 4]),
        (a <= NAN, [0, 1, 2, 3, 4]),
        (a > NAN, []),
        (a >= NAN, [0]),
        (a < 0.0, []),
        (a <= -0.0, [1, 2]),
        (~(a < NAN), [0]),
        (a < None, []),
        (~(a < None), []),
        (a == None, []),  # noqa: E711
        (a.isin([]), []),
        (~a.isin([]), [0, 1, 2, 3, 4, 5]),
        (a.isin([None]), []),
        ((a == None) | a.is_null(), [5]),  # noqa: E711
        (~((a == None) & (a == 1.5)), [0, 1, 2, 4]),  # noqa: E711
        (And(()), [0, 1, 2, 3, 4, 5]),
        (Or(()), []),
    ],
)
def test_doubles_and_nulls(predicate: Predicate, rows: list[int]) -> None:
    assert found(predicate, DOUBLES, "double") == rows


@pytest.mark.parametrize(
    ("predicate", "array", "spark_type", "rows"),
    [
        # by value, whatever the scale
        (a == Decimal("1.5"), pa.array([Decimal("1.50"), Decimal("1.51")]), "decimal(3,2)", [0]),
        (a > Decimal("1.505"), pa.array([Decimal("1.50"), Decimal("1.51")]), "decimal(3,2)", [1]),
        (a == Decimal("5.00"), pa.array([5, 6]), "bigint", [0]),
        (a == 5, pa.array([Decimal("5.00"), Decimal("5.01")]), "decimal(3,2)", [0]),
        (a == 2**63, pa.array([2**63, 1], pa.uint64()), "decimal(20,0)", [0]),
        (a < 2**64, pa.array([5, None]), "bigint", [0]),
        # as doubles, where one side is one
        (a == float(2**53), pa.array([2**53, 2**53 + 1, 2**53 + 2]), "bigint", [0, 1]),
        (a == 2**53 + 1, pa.array([float(2**53), float(2**53 + 2)]), "double", [0]),
        (a.isin([2**53, 0.5]), pa.array([2**53, 2**53 + 1]), "bigint", [0, 1]),
        (a == 0.1, pa.array([0.1, 0.5], pa.float32()), "float", []),
        (a == 9.99, pa.array([Decimal("9.99"), Decimal("9.98")]), "decimal(3,2)", [0]),
        (a == Decimal("0.1"), pa.array([0.1, 0.2]), "double", [0]),
        # strings by their bytes
        (a == "a", pa.array(["a", "A", "a "]), "string", [0]),
        (a > "z", pa.array(["ä", "a", "\U0001f600"]), "string", [0, 2]),
        (a < "\U0001f600", pa.array(["\uffff", "x"]), "string", [0, 1]),
        (a == b"\xff", pa.array([b"\xff", b""]), "binary", [0]),
        (a == b"ab", pa.array([b"ab", b"cd"], pa.binary(2)), "binary", [0]),
        (a == True, pa.array([True, False, None]), "boolean", [0]),  # noqa: E712
        (a < True, pa.array([True, False, None]), "boolean", [1]),
        # stored in other ways
        (a == "a", pa.array(["a", "b", None]).dictionary_encode(), "string", [0]),
        (a.is_null(), pa.DictionaryArray.from_arrays([0, 1, None], ["x", None]), "string", [1, 2]),
        (a == "a", pa.array(["a", None], pa.string_view()), "string", [0]),
        (a == "a", pa.array([b"a", b"b"]), "string", [0]),
        (a == "a", pa.chunked_array([["b"], [], ["a", "a"]]), "string", [1, 2]),
        (a == 5, pa.array([5, None], pa.int32()), "bigint", [0]),
        (a == 5, pa.array([5, None], pa.int32()), "double", [0]),
        (a == 5, pa.nulls(2), "int", []),
        (a.is_null(), pa.nulls(2), "int", [0, 1]),
        (a == 5, pa.array([], pa.int32()), "int", []),
    ],
)
def test_types(predicate: Predicate, array: Any, spark_type: str, rows: list[int]) -> None:
    assert found(predicate, array, spark_type) == rows


MOMENT = dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)


@pytest.mark.parametrize(
    ("array", "value", "rows"),
    [
        (pa.array([-1, 0], pa.timestamp("us", "UTC")), MOMENT, [0]),
        (pa.array([-1, 0], pa.timestamp("us", "America/New_York")), MOMENT, [0]),
        (pa.array([-1, 0], pa.timestamp("us")), MOMENT, [0]),
        (pa.array([-1, -1000, -1001, 0], pa.timestamp("ns")), MOMENT, [0, 1]),
        (pa.array([-1, 1], pa.timestamp("s", "UTC")), dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), [1]),
        (pa.array([-1, 1], pa.timestamp("ms", "UTC")), dt.datetime(1970, 1, 1, 0, 0, 0, 1000, tzinfo=UTC), [1]),
    ],
)
def test_timestamps_in_any_unit(array: pa.Array, value: dt.datetime, rows: list[int]) -> None:
    assert found(a == value, array, "timestamp") == rows


def test_nans_of_any_bits() -> None:
    nans = np.array([0x7FF8000000000000, 0xFFF8000000000001, 0x7FF0000000000001], np.uint64).view(np.float64)
    for value in (NAN, *nans):
        assert found(a.isin([value, 1.5]), pa.array([*nans, 2.0]), "double") == [0, 1, 2]


def test_dates() -> None:
    for kind in (pa.date32(), pa.date64()):
        assert found(a >= dt.date(1970, 1, 2), pa.array([dt.date(1970, 1, 1), dt.date(1970, 1, 2)], kind), "date") == [
            1
        ]


def test_struct_leaves_are_null_where_the_struct_is() -> None:
    inner = pa.StructArray.from_arrays([pa.array([1, 1, 1])], ["k"], mask=pa.array([False, True, False]))
    outer = pa.StructArray.from_arrays([inner], ["t"], mask=pa.array([False, False, True]))
    table = pa.table({"s": outer, "s.t.k": [9, 9, 9]})
    types = {("s", "t", "k"): "bigint", ("s.t.k",): "bigint", ("s",): "struct<t:struct<k:bigint>>"}
    assert row_mask(col("s.t.k") == 1, table, types).to_pylist() == [True, False, False]
    assert row_mask(col("s.t.k").is_null(), table, types).to_pylist() == [False, True, True]
    assert row_mask(col("`s.t.k`") == 9, table, types).to_pylist() == [True, True, True]
    assert row_mask(col("s").is_null(), table, types).to_pylist() == [False, False, True]


def test_a_column_that_an_old_file_lacks_is_null() -> None:
    table = pa.table({"s": pa.array([{"x": 1}, None])})
    types = {("new",): "string", ("s", "new"): "bigint"}
    for predicate in (col("new").is_null(), col("s.new").is_null()):
        assert row_mask(predicate, table, types).to_pylist() == [True, True]
    for predicate in (col("new") == "x", col("new") != "x", col("s.new").isin([1]), col("s.new") < 1):
        assert row_mask(predicate, table, types).to_pylist() == [False, False]


@pytest.mark.parametrize(
    ("predicate", "spark_type", "error"),
    [
        (a == "5", "bigint", UnsupportedTypeError),
        (a == b"x", "string", UnsupportedTypeError),
        (a == dt.date(2024, 1, 1), "timestamp", UnsupportedTypeError),
        (a == dt.datetime(2024, 1, 1), "timestamp", UnsupportedTypeError),
        (a == MOMENT, "timestamp_ntz", UnsupportedTypeError),
        (a.isin([1, "x"]), "bigint", UnsupportedTypeError),
        (a < True, "bigint", UnsupportedTypeError),
        (a == "x", "string collate UTF8_LCASE", UnsupportedTypeError),
        (a == "x", "char(3)", UnsupportedTypeError),
        (Equals(("a",), Literal("interval day", 1)), "interval day", UnsupportedTypeError),
        (a == "x", "string", UnsupportedTypeError),  # the column below holds integers
        (Unknown("NOT_SUPPORTED", "f(a)"), "bigint", InvalidArgumentError),
        ((a == 9) & ~Unknown("NOT_SUPPORTED", "f(a)"), "bigint", InvalidArgumentError),
        (col("other") == 1, "bigint", InvalidArgumentError),
        (col("other") == None, "bigint", InvalidArgumentError),  # noqa: E711
        (col("other").is_null(), "bigint", InvalidArgumentError),
        (col("other") < None, "bigint", InvalidArgumentError),
    ],
)
def test_what_cannot_be_told_is_an_error(predicate: Predicate, spark_type: str, error: type[LakebloomError]) -> None:
    for rows in ([1, 2], []):
        with pytest.raises(error):
            found(predicate, pa.array(rows, pa.int64()), spark_type)


def test_names_that_lead_to_two_columns_or_through_a_number() -> None:
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"])
    with pytest.raises(InvalidArgumentError, match="match exactly one column"):
        row_mask(a == 1, twice, {("a",): "bigint"})
    with pytest.raises(InvalidArgumentError, match="match exactly one column"):
        row_mask(col("a.k") == 1, pa.table({"a": [1]}), {("a", "k"): "bigint"})


def test_stored_values_beyond_the_type() -> None:
    with pytest.raises(ValueConversionError):
        found(a == MOMENT, pa.array([2**62], pa.timestamp("s", "UTC")), "timestamp")
    with pytest.raises(ValueConversionError):
        found(a == 1, pa.array([2**63], pa.uint64()), "bigint")
