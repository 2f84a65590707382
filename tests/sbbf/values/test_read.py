"""What callers pass as values: masks, wrapping types, dates and times, integers of any size."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from lakebloom import Sbbf, errors, hash_values
from lakebloom.sbbf.hashing.encoding import PARQUET
from lakebloom.sbbf.values.read import read_values, to_chunks
from tests.sbbf.wrapped import Wrapped


def hashes(values: object, **options: Any) -> list[int]:
    made: list[int] = hash_values(values, **options).tolist()
    return made


def extension(array: pa.Array) -> pa.Array:
    return pa.ExtensionArray.from_storage(Wrapped(array.type), array)


def dictionary(array: pa.Array) -> pa.Array:
    """Every value once more, through a dictionary."""
    indices = pa.array([*range(len(array)), None, 0], pa.int16())
    return pa.DictionaryArray.from_arrays(indices, array)


def runs(array: pa.Array) -> pa.Array:
    """Every value twice, as a run."""
    ends = pa.array(range(2, 2 * len(array) + 2, 2), pa.int32())
    return pa.RunEndEncodedArray.from_arrays(ends, array)


WRAPPINGS = [
    [extension],
    [dictionary, extension],
    [extension, dictionary],
    [dictionary, dictionary],
    [dictionary, runs],
    [runs, dictionary],
    [extension, runs],
    [runs, extension],
    [extension, dictionary, runs, extension],
]


@pytest.mark.parametrize("wrappings", WRAPPINGS, ids=lambda steps: " in ".join(step.__name__ for step in steps))
@pytest.mark.parametrize("values", [["a", None, "bb"], [1, 2, None]], ids=["text", "numbers"])
def test_wrapping_types_change_nothing(wrappings: list[Any], values: list[Any]) -> None:
    array = pa.array(values)
    for wrap in wrappings:
        array = wrap(array)
    plain = pa.array(array.to_pylist(), type=pa.array(values).type)
    assert hashes(array) == hashes(plain)
    assert hashes(array.slice(1, 3)) == hashes(plain.slice(1, 3))
    assert hashes(pa.chunked_array([array, array.slice(2)])) == hashes(plain) + hashes(plain)[2:]
    f = Sbbf(64)
    f.insert(array)
    assert values[0] in f
    assert f.might_contain(array).tolist() == [value is not None for value in plain.to_pylist()]


def test_empty_and_scalar_wrappings() -> None:
    for kind in (pa.uuid(), pa.dictionary(pa.int8(), pa.string()), pa.run_end_encoded(pa.int32(), pa.string())):
        assert hashes(pa.chunked_array([], type=kind)) == []
    array = pa.array(["a", None])
    for wrapped in (runs(array), dictionary(array), extension(array)):
        assert hash_values(wrapped[0]) == hash_values("a")
    assert not Sbbf.from_bytes(b"\xff" * 32).might_contain(runs(array)[2])


def test_an_extension_type_around_everything_is_kept_for_those_who_ask() -> None:
    uuids = pa.array([b"0123456789abcdef"], pa.uuid())
    assert to_chunks(uuids)[0].type == pa.uuid()
    assert to_chunks(uuids[0])[0].type == pa.uuid()


def test_what_arrow_cannot_take_over_is_a_typed_error() -> None:
    with pytest.raises(errors.UnsupportedTypeError, match="_pli128"):
        hash_values(pl.Series([1, 2], dtype=pl.Int128))
    assert hashes(pl.Series(["a", None])) == [hash_values("a"), 0]
    assert hashes(pl.Series(["a", "b"], dtype=pl.Categorical)) == hashes(["a", "b"])


# Masks and numpy scalars


def test_masked_values_are_null() -> None:
    numbers = np.ma.array([1, 2, 3], mask=[False, True, False])
    assert hashes(numbers) == hashes([1, None, 3])
    assert hashes(numbers.astype(">i4")) == hashes(pa.array([1, None, 3], pa.int32()))
    assert hashes(list(numbers)) == hashes([1, None, 3])
    assert hashes(np.ma.array(["a", "b"], mask=[True, False])) == hashes([None, "b"])
    assert hashes(np.ma.array(np.array([1, 2], object), mask=[True, False])) == hashes([None, 2])
    full = Sbbf.from_bytes(b"\xff" * 32)
    assert full.might_contain(numbers).tolist() == [True, False, True]
    for nothing in (np.ma.masked, np.ma.array(5, mask=True)):
        assert hash_values(nothing) == 0
        assert nothing not in full
        f = Sbbf(1)
        f.insert(nothing, type=pa.string())
        assert f == Sbbf(1)


def test_zeros_at_the_end_of_numpy_scalars_count() -> None:
    assert hash_values(np.bytes_(b"a\0")) == hash_values(b"a\0") != hash_values(b"a")
    assert hash_values(np.str_("a\0")) == hash_values("a\0") != hash_values("a")


# Dates and times

NOON = dt.datetime(2024, 2, 29, 12, 30, 15, 7)
DAY = dt.date(2024, 2, 29)


class FinerDatetime(dt.datetime):
    """A datetime with nanoseconds, as pandas has them."""

    nanosecond = 1


TOKYO = dt.timezone(dt.timedelta(hours=9))


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (NOON, pa.timestamp("s")),
        (NOON, pa.timestamp("ms")),
        (NOON, pa.date32()),
        (NOON, pa.date64()),
        (NOON, pa.time64("us")),
        ([None, NOON], pa.date32()),
        (np.array([NOON], "M8[us]"), pa.timestamp("s")),
        (np.array([NOON], "M8[us]"), pa.date32()),
        (pa.array([NOON]), pa.timestamp("ms", "UTC")),
        (pa.array([NOON]), pa.date32()),
        (dt.time(1, 2, 3, 4), pa.time32("s")),
        (dt.timedelta(microseconds=5), pa.duration("s")),
        (np.datetime64("2024-02-29T00:00:00.000000001"), pa.timestamp("us")),
        (1.5, pa.timestamp("s")),
        (1.5, pa.int64()),
        (Decimal("1.5"), pa.int32()),
        ([DAY, NOON], pa.timestamp("us")),
        ([DAY, NOON], None),
        ([NOON, DAY], None),
        (FinerDatetime(2024, 2, 29), None),
        (FinerDatetime(2024, 2, 29), pa.timestamp("us")),
    ],
    ids=lambda value: re.sub(" object at 0x[0-9a-f]+", "", repr(value)),
)
def test_nothing_is_cut_off_silently(values: object, kind: pa.DataType | None) -> None:
    f = Sbbf(1)
    with pytest.raises(errors.ValueConversionError):
        f.insert(values, type=kind, encoding=PARQUET)
    assert f == Sbbf(1)


@pytest.mark.parametrize(
    ("value", "kind", "same_as"),
    [
        (NOON.replace(microsecond=0), pa.timestamp("s"), NOON.replace(microsecond=0)),
        (NOON.replace(microsecond=0), pa.timestamp("s", "Asia/Tokyo"), NOON.replace(microsecond=0)),
        (NOON.replace(tzinfo=TOKYO), pa.timestamp("us"), NOON.replace(tzinfo=TOKYO)),
        (dt.datetime(2024, 2, 29), pa.date32(), DAY),
        (DAY, pa.timestamp("us"), dt.datetime(2024, 2, 29)),
        (pa.array([NOON])[0], pa.timestamp("us", "UTC"), NOON),
        (np.datetime64(NOON), pa.timestamp("us"), NOON),
        (2.0, pa.int64(), 2),
        (19_782, pa.date32(), DAY),
    ],
    ids=repr,
)
def test_conversions_that_lose_nothing(value: object, kind: pa.DataType | None, same_as: object) -> None:
    assert hash_values(value, type=kind) == hash_values(same_as)


# Integers


def test_integers_beyond_int64_are_uint64_then_decimals() -> None:
    assert hash_values(2**63) == hash_values(np.uint64(2**63))
    assert hash_values(-(2**63) - 1) == hash_values(Decimal(-(2**63) - 1), type=pa.decimal128(38, 0))
    assert hash_values(2**64) == hash_values(Decimal(2**64), type=pa.decimal128(38, 0))
    mixed = [5, 2**63, None, 2**100, 7, -(2**100)]
    assert hashes(mixed) == [0 if value is None else hash_values(value) for value in mixed]
    f = Sbbf(64)
    assert 2**63 not in f
    f.insert(mixed)
    assert f.might_contain(mixed).tolist() == [value is not None for value in mixed]
    assert 2**63 + 1 not in f
    with pytest.raises(errors.ValueConversionError):
        f.insert(10**38)


def test_python_values_are_told_from_typed_ones() -> None:
    untyped: list[object] = [5, [5], (5,), range(3), np.array([5], object), iter([5])]
    assert [read_values(values).typed for values in untyped] == [False] * len(untyped)
    typed: list[object] = [np.int32(5), np.array([5]), pa.array([5]), pa.scalar(5), pl.Series([5])]
    assert [read_values(values).typed for values in typed] == [True] * len(typed)
    assert read_values(5, pa.int32()).typed
