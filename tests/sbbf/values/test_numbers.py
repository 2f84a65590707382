"""Numbers as numbers of another type: by value, at once, NULL where they do not fit."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakebloom.sbbf.values import numbers as numbers_module
from lakebloom.sbbf.values.numbers import as_other_number
from tests.examples import most

INTEGERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
DECIMALS = [pa.decimal128(9, 2), pa.decimal128(38, 0), pa.decimal128(5, -2), pa.decimal128(3, 5), pa.decimal256(76, 70)]
EDGES = [
    sign * 2**bits + step for bits in (7, 8, 24, 31, 32, 53, 60, 62, 63, 64) for sign in (1, -1) for step in (-1, 0, 1)
]
numbers = st.one_of(st.sampled_from(EDGES), st.integers(-(2**64), 2**64), st.integers(-1000, 1000))


def bounds(kind: pa.DataType) -> tuple[int, int]:
    info = np.iinfo(kind.to_pandas_dtype())
    return int(info.min), int(info.max)


def held(value: int | None, kind: pa.DataType) -> Any:
    """What a type makes of an integer, in the plainest way; None if it cannot hold it."""
    if value is None:
        return None
    if kind in INTEGERS:
        return value if bounds(kind)[0] <= value <= bounds(kind)[1] else None
    if pa.types.is_floating(kind):
        near = float(kind.to_pandas_dtype()(float(value)))
        return near if near == value else None
    unscaled = Fraction(value) * Fraction(10) ** kind.scale
    return value if unscaled.denominator == 1 and abs(unscaled) < 10**kind.precision else None


@pytest.mark.slow
@pytest.mark.parametrize("source", INTEGERS, ids=str)
@pytest.mark.parametrize("target", [*INTEGERS, pa.float32(), pa.float64(), *DECIMALS], ids=str)
@settings(max_examples=most(20))
@given(values=st.lists(st.none() | numbers, max_size=30))
def test_integers_become_what_equals_them(source: pa.DataType, target: pa.DataType, values: list[int | None]) -> None:
    fitting = [value for value in values if held(value, source) == value]
    other = as_other_number(pa.array([None, *fitting, None], source).slice(1), target)
    if source == target:
        assert other is None
        return
    assert other is not None
    assert other.type == target
    assert other.to_pylist() == [held(value, target) for value in [*fitting, None]]


def test_integers_are_not_looked_at_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def one_by_one(array: pa.Array, kind: pa.DataType) -> pa.Array:
        raise AssertionError(f"{array.type} to {kind} one by one")

    monkeypatch.setattr(numbers_module, "_one_by_one", one_by_one)
    misfits = pa.array([2**62 + 1, -5, None, 3, 2**40])
    for kind in (pa.int16(), pa.uint64(), pa.float32(), pa.float64(), pa.decimal128(9, 2), pa.decimal128(18, 10)):
        other = as_other_number(misfits, kind)
        assert other is not None
        assert other.to_pylist()[3] == 3


FLOATS = [0.0, 2.0, -2.5, 0.1, float(2**53), float(2**63), -float(2**63), float(2**64), 1e22, 1e300, float("inf")]


@pytest.mark.parametrize("value", FLOATS)
@pytest.mark.parametrize("kind", [pa.int16(), pa.int64(), pa.uint64()], ids=str)
def test_floats_become_integers_if_they_are_whole(value: float, kind: pa.DataType) -> None:
    low, high = bounds(kind)
    expected = int(value) if value == value // 1 and low <= value <= high and abs(value) < 1e100 else None
    other = as_other_number(pa.array([value, float("nan"), None]), kind)
    assert other is not None
    assert other.to_pylist() == [expected, None, None]


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (2.5, pa.decimal128(9, 2), Decimal("2.50")),
        (0.1, pa.decimal128(9, 2), Decimal("0.10")),  # as people write it
        (0.125, pa.decimal128(9, 2), None),
        (float(2**70), pa.decimal128(38, 0), Decimal(2**70)),  # exactly, not 1180591620717411300000
        (2.0**-30, pa.decimal128(38, 30), Decimal(2.0**-30)),
        (1e10, pa.decimal128(9, 2), None),
        (1200.0, pa.decimal128(5, -2), Decimal(1200)),
        (float("nan"), pa.decimal128(9, 2), None),
        (float("-inf"), pa.decimal128(9, 2), None),
        (0.1, pa.float32(), float(np.float32(0.1))),
        (Decimal("0.7"), pa.float64(), 0.7),
        (Decimal("0.1"), pa.float32(), float(np.float32(0.1))),
        (Decimal("123456789012345678.12"), pa.float64(), 123456789012345678.12),
        (Decimal("5.00"), pa.int32(), 5),
        (Decimal("5.01"), pa.int32(), None),
        (Decimal(2**40), pa.int32(), None),
        (Decimal("1.50"), pa.decimal128(2, 1), Decimal("1.5")),
        (Decimal("1.55"), pa.decimal128(2, 1), None),
        (Decimal("1200"), pa.decimal128(5, -2), Decimal(1200)),
        (Decimal("1250"), pa.decimal128(5, -2), None),
    ],
    ids=str,
)
def test_fractions(value: Any, kind: pa.DataType, expected: Any) -> None:
    other = as_other_number(pa.array([value, None]), kind)
    assert other is not None
    assert other.to_pylist() == [expected, None]


def test_numbers_of_a_negative_scale() -> None:
    hundreds = pa.array([Decimal(1200), None], pa.decimal128(5, -2))
    for kind, expected in ((pa.int64(), 1200), (pa.float64(), 1200.0), (pa.decimal128(9, 2), Decimal(1200))):
        other = as_other_number(hundreds, kind)
        assert other is not None
        assert other.to_pylist() == [expected, None]


def test_a_misfit_among_decimals_spares_the_others() -> None:
    other = as_other_number(pa.array([Decimal("1.5"), Decimal("2.0"), None]), pa.int64())
    assert other is not None
    assert other.to_pylist() == [None, 2, None]


def test_dictionaries_keep_their_indices() -> None:
    other = as_other_number(pa.array([5, 2**40, None, 5]).dictionary_encode(), pa.int32())
    assert other is not None
    assert other.to_pylist() == [5, None, None, 5]


@pytest.mark.parametrize(("array", "kind"), [(pa.array(["5"]), pa.int32()), (pa.array([5]), pa.string())])
def test_what_is_no_number_has_no_other_form(array: pa.Array, kind: pa.DataType) -> None:
    assert as_other_number(array, kind) is None
