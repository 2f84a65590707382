"""Bugs of other systems, one test each: where skipping lost rows, or did nothing and said nothing."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lakebloom.predicate.column import col
from lakebloom.predicate.prune.prune import can_match
from lakebloom.predicate.reasons import Reason
from lakebloom.predicate.tree import Equals, IsIn, Literal, Predicate, Unknown
from lakebloom.tables.columns import arrow_type
from tests.predicate.memory import ExactFilters, units_of

a = col("a")
NAN = float("nan")
INTS = units_of("a", [[1, 2], [3, None], [None, None]], pa.int32())


def kept(predicate: Predicate, units: list[pa.Table], spark_type: str, **facts: Any) -> list[int]:
    return np.flatnonzero(can_match(predicate, ExactFilters(units, {("a",): spark_type}, **facts)).keep).tolist()


def reasons(predicate: Predicate, units: list[pa.Table], spark_type: str) -> list[Reason]:
    return [fact.reason for fact in can_match(predicate, ExactFilters(units, {("a",): spark_type})).unused]


def test_is_not_null_drops_only_units_that_are_entirely_null() -> None:  # lance#5171
    assert kept(a.is_not_null(), INTS, "int") == [0, 1]
    assert kept(~a.is_null(), INTS, "int") == [0, 1]


def test_null_in_a_list_and_beside_an_or() -> None:  # lance#4814, #5895
    assert kept(a.isin([1, None]), INTS, "int") == [0]
    assert kept((a == 3) | (a == None), INTS, "int") == [1]  # noqa: E711
    assert kept((a == 3) | a.is_null(), INTS, "int") == [1, 2]
    assert kept(a == None, INTS, "int") == kept(a.isin([]), INTS, "int") == kept(a.isin([None]), INTS, "int") == []  # noqa: E711
    assert kept(~a.isin([1, None]), INTS, "int") == kept(a != None, INTS, "int") == []  # noqa: E711


def test_unknown_null_counts_are_not_zero() -> None:  # lance PR #7372
    assert kept(a.is_null(), INTS, "int", unknown_null_counts={0, 1}) == [0, 1, 2]
    assert kept(a.is_not_null(), INTS, "int", unknown_null_counts={0, 2}) == [0, 1, 2]


@pytest.mark.parametrize("predicate", [a != 1, ~a.isin([1, 2]), ~(a == 1), ~~~a.eq_null_safe(1)])
def test_negations_keep_everything_and_read_no_filter(predicate: Predicate) -> None:  # Xskipper, ClickHouse#116470
    index = ExactFilters(INTS, {("a",): "int"})
    pruned = can_match(predicate, index)
    assert pruned.keep.all()
    assert index.probes == []
    assert [fact.reason for fact in pruned.unused] == [Reason.NEGATED]


def test_a_unit_is_dropped_only_if_every_listed_value_is_absent() -> None:  # OAP#764
    assert kept(a.isin([1, 99]), INTS, "int") == [0]
    assert kept(a.isin([2, 3]), INTS, "int") == [0, 1]
    assert kept(a.isin([98, 99]), INTS, "int") == []


def test_or_with_a_column_that_has_no_index() -> None:  # StarRocks#69898
    assert kept((a == 99) | (col("b") == 1), INTS, "int") == [0, 1, 2]
    assert kept((a == 99) & (col("b") == 1), INTS, "int") == []


def test_a_function_of_the_column_is_not_the_column() -> None:  # ClickHouse#81255
    cast = Unknown("NOT_SUPPORTED", "CAST(a AS STRING) = '1'")
    assert kept(cast, INTS, "int") == kept(~cast, INTS, "int") == kept(cast | (a == 1), INTS, "int") == [0, 1, 2]
    assert kept(cast & (a == 1), INTS, "int") == [0]


@pytest.mark.parametrize("value", [3_000_000_000, 1.5, 1.0, "1", True, b"1", Decimal("1.5"), dt.date(1970, 1, 2)])
def test_a_value_of_another_type_is_not_guessed_at(value: object) -> None:
    assert kept(a == value, INTS, "int") == kept(a.isin([99, value]), INTS, "int") == [0, 1, 2]
    assert reasons(a == value, INTS, "int") == [Reason.TYPE_MISMATCH]


def test_text_against_numbers() -> None:
    texts = units_of("a", [["1"], ["x"]], pa.string())
    assert kept(a == 1, texts, "string") == kept(a == b"1", texts, "string") == [0, 1]


def test_collations() -> None:  # timescaledb#10263
    texts = units_of("a", [["alice"], ["ALICE"]], pa.string())
    collated = "string collate UTF8_LCASE"
    assert kept(a == "alice", texts, collated) == [0, 1]
    assert kept(Equals(("a",), Literal(collated, "alice")), texts, "string") == [0, 1]
    assert reasons(a == "alice", texts, collated) == [Reason.COLLATION]
    assert kept(a == "alice", texts, "string") == [0]


@pytest.mark.parametrize("spark_type", ["char(5)", "varchar(5)"])
def test_char_padding(spark_type: str) -> None:  # doris
    texts = units_of("a", [["a    "], ["b"]], pa.string())
    assert kept(a == "a", texts, spark_type) == [0, 1]
    assert reasons(a == "a", texts, spark_type) == [Reason.CHAR_PADDING]


@pytest.mark.parametrize(("kind", "name"), [(pa.float32(), "float"), (pa.float64(), "double")])
def test_zeros_and_nans(kind: pa.DataType, name: str) -> None:  # DataFusion, Spark, duckdb#24005
    other_nan = np.array([0xFFF8000000000001], np.uint64).view(np.float64)[0]
    units = units_of("a", [[0.0], [-0.0], [NAN], [other_nan], [1.5]], kind)
    assert kept(a == 0.0, units, name) == kept(a == -0.0, units, name) == kept(a == 0, units, name) == [0, 1]
    assert kept(a == NAN, units, name) == kept(a.isin([float(other_nan)]), units, name) == [2, 3]


def test_numbers_narrower_than_int() -> None:  # datafusion#9779
    units = units_of("a", [[-5], [5]], pa.int16())
    for value in (5, np.int8(5), np.int16(5), np.int32(5), np.uint64(5), Decimal("5.0")):
        assert kept(a == value, units, "smallint") == [1]


@pytest.mark.parametrize("precision", [5, 9, 10, 18, 19, 38])
def test_decimals_of_every_width(precision: int) -> None:  # iceberg-rust PR #2398, duckdb#23919
    units = units_of("a", [[Decimal("-1.50")], [Decimal("1.50")], [Decimal("3.00")]], pa.decimal128(precision, 2))
    name = f"decimal({precision},2)"
    for digits in ("1.5", "1.50", "1.5000000000"):
        assert kept(a == Decimal(digits), units, name) == [1]
    assert kept(a == 3, units, name) == [2]
    assert kept(a == Decimal("1.505"), units, name) == [0, 1, 2]


def test_half_floats() -> None:  # DuckDB 2.0
    units = units_of("a", [[0.0999755859375], [0.1]], pa.float32())
    assert kept(a == np.float16(0.1), units, "float") == [0]


def test_binaries_are_their_bytes() -> None:  # duckdb#23053
    units = units_of("a", [[b"\xaa"], [b"\\xAA"]], pa.binary())
    assert kept(a == b"\xaa", units, "binary") == [0]


def test_moments_are_microseconds_of_utc() -> None:  # Impala, Hyperspace
    berlin = dt.timezone(dt.timedelta(hours=2)), dt.timezone(dt.timedelta(hours=1))
    # 02:30 happened twice that night; these are the two.
    first, second = (dt.datetime(2024, 10, 27, 2, 30, tzinfo=zone) for zone in berlin)
    units = units_of(
        "a", [[first.astimezone(dt.timezone.utc)], [second.astimezone(dt.timezone.utc)]], pa.timestamp("us", "UTC")
    )
    assert kept(a == first, units, "timestamp") == [0]
    assert kept(a == second, units, "timestamp") == [1]


@pytest.mark.parametrize("spark_type", ["date", "timestamp", "timestamp_ntz"])
def test_dates_and_the_two_timestamps_never_mix(spark_type: str) -> None:
    units = units_of("a", [[1], [2]], arrow_type(spark_type))
    for name in {"date", "timestamp", "timestamp_ntz"} - {spark_type}:
        predicate = Equals(("a",), Literal(name, 99))
        assert kept(predicate, units, spark_type) == [0, 1]
        assert reasons(predicate, units, spark_type) == [Reason.TYPE_MISMATCH]


def test_a_column_widened_since_the_index_was_built() -> None:  # hudi RFC-37
    assert kept(a == 3, INTS, "int") == [1]  # the query's bigint 3, the segment's int
    assert kept(a == 2**40, INTS, "int") == [0, 1, 2]
    floats = units_of("a", [[0.5], [0.1]], pa.float32())
    assert kept(a == 0.5, floats, "float") == [0]
    assert kept(a == 0.1, floats, "float") == [0, 1]
    assert kept(a == "3", INTS, "int") == [0, 1, 2]  # dropped and added again as a string


def test_a_column_missing_in_a_file_is_null_there() -> None:
    assert kept(a == 1, INTS[2:], "int") == []
    assert kept(a.is_null(), INTS[2:], "int") == [0]


def test_names_are_matched_by_the_caller_s_rule() -> None:  # Xskipper
    index = ExactFilters(INTS, {("a",): "int"})
    assert can_match(col("A") == 1, index).keep.all()
    lower = can_match(col("A") == 1, index, resolve=lambda column: tuple(part.lower() for part in column))
    assert lower.keep.tolist() == [True, False, False]


def test_a_dot_in_a_name_is_not_a_leaf() -> None:  # Hyperspace
    units = [pa.table({"a.b": [1], "a": [{"b": 2}]}), pa.table({"a.b": [2], "a": [{"b": 1}]})]
    index = ExactFilters(units, {("a.b",): "bigint", ("a", "b"): "bigint"})
    assert can_match(col("`a.b`") == 1, index).keep.tolist() == [True, False]
    assert can_match(col("a.b") == 1, index).keep.tolist() == [False, True]


def test_an_index_never_does_nothing_in_silence() -> None:  # iceberg#11918, hudi#5808, ClickHouse#40456
    predicate = (a == 1.5) | ((col("b") == 1) & (a > 1)) | ~IsIn(("a",), (Literal("int", 1),))
    pruned = can_match(predicate, ExactFilters(INTS, {("a",): "int"}))
    assert pruned.keep.all()
    assert [(fact.text, fact.reason.value) for fact in pruned.unused] == [
        ("a = 1.5", "TYPE_MISMATCH"),
        ("a NOT IN (1)", "NEGATED"),
        ("b = 1", "NO_INDEX"),
        ("a > 1", "OR_NOT_ANSWERED"),
    ]
