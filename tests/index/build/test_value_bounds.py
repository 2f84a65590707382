"""Bounds of values: for every type they enclose what was read, and are as close as their form allows."""

from __future__ import annotations

import math
import sys
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lakebloom.index.build import value_bounds
from lakebloom.index.build.value_bounds import UNKNOWN, Bounds, batch_values, bounds_of, joined, raised
from lakebloom.sbbf.hashing.buffers import validity
from lakebloom.sbbf.kernels.choose import load_compiled
from lakebloom.store.min_max import BOUND_BYTES, bound_type
from lakebloom.tables.columns import arrow_type

PARTS = [b"", b"a", b"\x00", b"\xff", b"abcdefgh", b"https://example.com/", b"\xc3\xa9", 8 * b"\xff", 31 * b"z"]
STRINGS = st.lists(st.sampled_from(PARTS), max_size=4).map(b"".join) | st.binary(max_size=50)


@pytest.fixture(params=["compiled", "arrow"], autouse=True)
def kernels(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways to compare strings."""
    load_compiled()
    if request.param == "arrow":
        monkeypatch.setattr(value_bounds, "_KERNELS", "not loaded")
    else:
        assert value_bounds._KERNELS in sys.modules


def enclosing(values: list[bytes]) -> Bounds:
    return Bounds(min(values)[:BOUND_BYTES], raised(max(values)))


@given(values=st.lists(STRINGS | st.none(), max_size=30), start=st.integers(0, 5), spare=st.integers(0, 3))
@example(values=[b"a", b"a\x00", b"a\x00\x00"], start=0, spare=0)
@example(values=[40 * b"\xff", 32 * b"\xff"], start=0, spare=0)
@example(values=[32 * b"x", 33 * b"x", 34 * b"x"], start=0, spare=0)
def test_strings(values: list[bytes | None], start: int, spare: int) -> None:
    array = pa.array([b"~" * 9] * spare + values, pa.binary()).slice(spare)
    rows = slice(min(start, len(values)), len(values))
    known = [value for value in values[rows] if value is not None]
    expected = enclosing(known) if known else None
    for form in (array, array.view(pa.string())):
        assert batch_values(form, validity(form)).of(rows) == expected
    coded = array.dictionary_encode()
    assert batch_values(coded, validity(coded.indices)).of(rows) == expected


@given(st.lists(STRINGS, min_size=1, max_size=20))
def test_no_string_lies_outside_its_bounds(values: list[bytes]) -> None:
    found = bounds_of(pa.array(values, pa.binary()))
    assert found is not None
    assert isinstance(found.low, bytes)
    assert len(found.low) <= BOUND_BYTES
    assert all(found.low <= value for value in values)
    if found.high is None:
        assert max(values).startswith(BOUND_BYTES * b"\xff")
    else:
        assert isinstance(found.high, bytes)
        assert len(found.high) <= BOUND_BYTES
        assert all(value <= found.high for value in values)


def test_unused_entries_of_a_dictionary_do_not_count() -> None:
    codes = pa.array([2, None, 1], pa.int32())
    array = pa.DictionaryArray.from_arrays(codes, pa.array(["a", "m", "n", "z", None]))
    assert bounds_of(array) == Bounds(b"m", b"n")
    assert batch_values(array, validity(array)).of(slice(1, 2)) is None


NUMBERS: dict[str, st.SearchStrategy[Any]] = {
    "smallint": st.integers(-(2**15), 2**15 - 1),
    "int": st.integers(-(2**31), 2**31 - 1),
    "bigint": st.integers(-(2**63), 2**63 - 1),
    "decimal(9,2)": st.decimals(-9999999, 9999999, places=2),
    "decimal(18,0)": st.integers(-(10**18) + 1, 10**18 - 1).map(Decimal),
    "decimal(38,10)": st.integers(-(10**38) + 1, 10**38 - 1).map(lambda n: Decimal(f"{n}e-10")),
}


@pytest.mark.parametrize("kind", NUMBERS)
@given(data=st.data())
def test_numbers(kind: str, data: st.DataObject) -> None:
    values = data.draw(st.lists(NUMBERS[kind] | st.none(), max_size=20))
    found = bounds_of(pa.array(values, arrow_type(kind)))
    known = [value for value in values if value is not None]
    if not known:
        assert found is None
        return
    assert found is not None
    scale = arrow_type(kind).scale if kind.startswith("decimal") and bound_type(kind) == pa.int64() else 0
    assert found == Bounds(*(value if not scale else int(value * 10**scale) for value in (min(known), max(known))))
    assert pa.array([found.low, found.high], bound_type(kind)).null_count == 0


@pytest.mark.parametrize("kind", ["date", "timestamp", "timestamp_ntz"])
def test_moments_are_counted(kind: str) -> None:
    width = pa.int32() if kind == "date" else pa.int64()
    array = pa.array([5, None, -7], width).view(arrow_type(kind))
    assert bounds_of(array) == Bounds(-7, 5)


@pytest.mark.parametrize("kind", ["float", "double"])
@given(st.lists(st.sampled_from([math.nan, -0.0, 0.0, 1.5, -math.inf, math.inf]), min_size=1, max_size=5))
def test_floats_have_sparks_order(kind: str, values: list[float]) -> None:
    found = bounds_of(pa.array(values, arrow_type(kind)))
    plain = [value for value in values if not math.isnan(value)]
    low = min(plain) + 0.0 if plain else math.nan
    high = max(plain) + 0.0 if len(plain) == len(values) else math.nan
    assert repr(found) == repr(Bounds(low, high))


def test_joined() -> None:
    assert joined([]) is None
    assert joined([Bounds(3, 5), Bounds(-1, 4)]) == Bounds(-1, 5)
    assert joined([Bounds(3, 5), UNKNOWN]) == UNKNOWN
    assert joined([Bounds(b"a", b"b"), Bounds(b"c", None)]) == Bounds(b"a", None)
    assert repr(joined([Bounds(math.nan, math.nan), Bounds(1.0, 2.0)])) == repr(Bounds(1.0, math.nan))


def test_many_long_strings() -> None:
    values = [f"https://www.example.com/a/rather/long/path/{i:06d}".encode() for i in np.random.permutation(5000)]
    assert bounds_of(pa.array(values, pa.binary())) == enclosing(values)
