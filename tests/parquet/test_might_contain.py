"""Which answers may be "no": values of every kind against columns of every kind."""

from __future__ import annotations

import datetime as dt
import io
import uuid
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lakebloom.parquet
from lakebloom.errors import ValueConversionError
from lakebloom.sbbf.values.fitting import fitted

NAN, INF = float("nan"), float("inf")
UTC = dt.timezone.utc
NOON, NOON_UTC = dt.datetime(2024, 5, 6, 12), dt.datetime(2024, 5, 6, 12, tzinfo=UTC)
KEY = uuid.UUID("12345678-1234-5678-1234-567812345678")
ABSENT = uuid.UUID(int=5)


def write(column: pa.Array, **options: Any) -> io.BytesIO:
    file = io.BytesIO()
    pq.write_table(pa.table({"c": column}), file, bloom_filter_options={"c": {"ndv": 1000, "fpp": 1e-6}}, **options)
    return file


def ask(column: pa.Array, values: object, **options: Any) -> list[bool]:
    (answer,) = lakebloom.parquet.might_contain(write(column, **options), "c", values).tolist()
    return answer  # type: ignore[no-any-return]


# Column, values that it holds in whatever form, values that it certainly does not, values that cannot be asked for.
CASES: dict[str, tuple[pa.Array, list[Any], list[Any], list[Any]]] = {
    "int8": (pa.array([5], pa.int8()), [5, 5.0, Decimal("5.00")], [6, -5, 6.0], [300, 5.5, True, "5", NAN, 10**30]),
    "int32": (pa.array([5], pa.int32()), [5, np.int64(5)], [6], [2**31, INF]),
    "int64": (pa.array([2**53 + 1]), [2**53 + 1], [2**53 + 3], [2.0**54]),
    "uint32": (pa.array([2**32 - 1], pa.uint32()), [2**32 - 1], [5], [-1, 2**32]),
    "uint64": (pa.array([2**64 - 1], pa.uint64()), [2**64 - 1, Decimal(2**64 - 1)], [2**63], [-1, 2**64]),
    "float": (pa.array([0.1], pa.float32()), [0.1, np.float32(0.1), Decimal("0.1")], [0.2, 5], [NAN, 2**24 + 1]),
    "double": (pa.array([0.1, 2.0**53]), [0.1, 2**53], [0.2, 5, 0], [NAN, 2**53 + 1, "0.1"]),
    "float16": (pa.array([np.float16(0.5)]), [0.5, Decimal("0.5")], [0.25, 5], [NAN, 2049]),
    "decimal9": (pa.array([Decimal("1.50")], pa.decimal128(9, 2)), [Decimal("1.5"), 1.5], [2, 2.5], [Decimal("1.555")]),
    "decimal38": (pa.array([Decimal("1.50")], pa.decimal128(38, 2)), [Decimal("1.5")], [2], [1.5, 2.5]),
    "string": (pa.array(["ab"]), ["ab", b"ab"], ["a", b""], [5, KEY.int]),
    "fixed": (pa.array([b"abcd"], pa.binary(4)), [b"abcd", "abcd"], ["abce"], ["ab", b""]),
    "uuid": (
        pa.array([KEY.bytes], pa.uuid()),
        [KEY, str(KEY), KEY.bytes],
        [ABSENT, str(ABSENT)],
        ["no uuid", b"short"],
    ),
    "date": (
        pa.array([dt.date(2024, 5, 6)]),
        [dt.date(2024, 5, 6), pa.scalar(dt.date(2024, 5, 6), pa.date64())],
        [dt.date(2024, 5, 7)],
        [NOON, 19849, "2024-05-06", dt.date(1500, 1, 1)],
    ),
    "millis": (
        pa.array([NOON], pa.timestamp("ms")),
        [NOON, pa.scalar(NOON, pa.timestamp("s")), np.datetime64(NOON, "ns")],
        [NOON.replace(hour=13)],
        [NOON_UTC, NOON.date(), NOON.replace(microsecond=1)],
    ),
    "nanos": (pa.array([NOON], pa.timestamp("ns")), [NOON], [NOON.replace(hour=13)], [dt.datetime(9999, 1, 1)]),
    "UTC": (
        pa.array([NOON_UTC], pa.timestamp("us", "UTC")),
        [NOON_UTC, NOON_UTC.astimezone(dt.timezone(dt.timedelta(hours=5)))],
        [NOON_UTC.replace(hour=13)],
        [NOON, dt.datetime(1800, 1, 1, tzinfo=UTC)],
    ),
    "time": (pa.array([dt.time(12)], pa.time32("ms")), [dt.time(12)], [dt.time(13)], [dt.time(12, 0, 0, 1), 5]),
}


@pytest.mark.parametrize("name", CASES)
def test_values_of_other_forms(name: str) -> None:
    column, present, absent, unknown = CASES[name]
    for value in present:
        assert ask(column, value) == [True], f"{value!r} is there"
    for value in absent:
        assert ask(column, value) == [False], f"{value!r} is not there"
    for value in unknown:
        assert ask(column, value) == [True], f"nobody can tell whether {value!r} is there"


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64()])
@pytest.mark.parametrize("stored", [0.0, -0.0])
def test_both_zeros(kind: pa.DataType, stored: float) -> None:
    column = pa.array(np.array([stored, 1.0], kind.to_pandas_dtype()))
    assert ask(column, [0.0, -0.0, 1.0, 2.0, None]) == [True, True, True, False, False]
    assert ask(column, [0, 2]) == [True, False]
    assert ask(column, [Decimal(0), Decimal(2)]) == [True, False]


def test_nan_is_never_refused() -> None:
    assert ask(pa.array([1.0]), [NAN, -NAN, 1.0, 2.0]) == [True, True, True, False]


def test_null_is_nowhere() -> None:
    assert ask(pa.array([1, None]), [None, 1, None]) == [False, True, False]
    assert ask(pa.array([1, None]), None) == [False]
    assert ask(pa.array([1, None]), pa.nulls(2)) == [False, False]


def test_values_in_several_chunks_and_wrappings() -> None:
    column = pa.array(["a", "b"])
    chunked = pa.chunked_array([["a"], ["x"], []], pa.string())
    assert ask(column, chunked) == [True, False]
    assert ask(column, pa.array(["a", "x", None]).dictionary_encode()) == [True, False, False]
    assert ask(column, pa.array(["a", "x"], pa.string_view())) == [True, False]
    assert ask(pa.array([5]), [5, 2**63, 10**30, 6]) == [True, True, True, False]  # three types


def test_values_without_a_common_type() -> None:
    with pytest.raises(ValueConversionError):
        ask(pa.array([5]), [5, "five"])
    with pytest.raises(ValueConversionError, match="with and without time zone"):
        ask(pa.array([NOON]), [NOON, NOON_UTC])


def test_a_timestamp_in_int96() -> None:
    column = pa.array([NOON_UTC, dt.datetime(2024, 1, 1, tzinfo=UTC)], pa.timestamp("us", "UTC"))
    values = [NOON_UTC, NOON_UTC.replace(hour=13)]
    assert ask(column, values, use_deprecated_int96_timestamps=True) == [True, False]
    assert ask(column, [value.replace(tzinfo=None) for value in values], use_deprecated_int96_timestamps=True) == [
        True,
        False,
    ]
    nanos = pa.array(values, pa.timestamp("ns", "UTC"))
    assert ask(column, nanos, use_deprecated_int96_timestamps=True) == [True, False]
    old = dt.datetime(1800, 1, 1, tzinfo=UTC)
    assert ask(column, [old], use_deprecated_int96_timestamps=True) == [True]  # the calendar is not known


def test_a_boolean_is_never_refused() -> None:
    """parquet-java's filters of BOOLEAN columns are empty, whatever the column holds."""
    from arro3.io import write_parquet

    file = io.BytesIO()
    write_parquet(pa.table({"c": [True, True]}), file, bloom_filter_enabled=True)
    assert len(lakebloom.parquet.filters(file)) == 1
    assert lakebloom.parquet.might_contain(file, "c", [True, False, None]).tolist() == [[True, True, False]]


NUMBERS = [pa.int8(), pa.int32(), pa.int64(), pa.uint16(), pa.uint64(), pa.float32(), pa.float64(), pa.decimal128(9, 2)]
numbers = st.integers(-(2**64), 2**64) | st.floats() | st.decimals(-(10**7), 10**7, places=3)


@given(numbers, st.sampled_from(NUMBERS))
def test_a_number_is_asked_for_as_itself_or_not_at_all(number: int | float | Decimal, kind: pa.DataType) -> None:
    """What a number is fitted to equals it, up to the nearest float; and a number that a column holds is never lost."""
    try:
        array = pa.array([number])
    except (pa.ArrowException, OverflowError):
        return
    result = fitted(array, kind)
    assert result is not None
    (found,) = result.to_pylist()
    if found is None or number != number:
        return
    if pa.types.is_floating(kind):
        with np.errstate(over="ignore"):
            assert found == kind.to_pandas_dtype()(float(number))
    elif isinstance(number, float):
        assert float(found) == number
    else:
        assert found == number


@given(st.lists(st.datetimes(dt.datetime(1900, 1, 2), dt.datetime(2200, 1, 1)), min_size=1))
def test_a_timestamp_is_found_in_every_unit_that_holds_it(times: list[dt.datetime]) -> None:
    given = pa.array(times, pa.timestamp("us"))
    for unit, step in (("ms", 1000), ("us", 1), ("ns", 1)):
        result = fitted(given, pa.timestamp(unit))
        assert result is not None
        assert result.null_count == sum(t.microsecond % step != 0 for t in times)
        back = [t for t in times if t.microsecond % step == 0]
        assert result.drop_null().cast(pa.timestamp("us")).to_pylist() == back


def test_a_filter_without_any_bit_is_believed_only_where_all_is_null() -> None:
    """parquet-java's BOOLEAN filters are not the only ones that somebody forgot to fill."""
    assert ask(pa.array([None, None], pa.int64()), [5]) == [False]
    file = write(pa.array([5]))
    (found,) = lakebloom.parquet.filters(file)
    assert found.length is not None
    start = found.offset + found.length - found.filter.num_bytes
    data = file.getvalue()
    file = io.BytesIO(data[:start] + bytes(found.filter.num_bytes) + data[start + found.filter.num_bytes :])
    assert lakebloom.parquet.might_contain(file, "c", [5, 6]).tolist() == [[True, True]]
