"""Bounds of units answer like a comparison of each unit's bounds, for every type and any number of units."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebloom.store import unit_bounds as module
from lakebloom.store.few_bounds import FewBounds
from lakebloom.store.min_max import bound_type
from lakebloom.store.unit_bounds import unit_bounds

BYTES = st.lists(st.sampled_from([b"", b"\x00", b"\xff", b"user-", b"0", b"12345678", b"~"]), max_size=5).map(b"".join)
FLOATS = st.sampled_from([math.nan, math.inf, -math.inf, -1.5, 0.0, 5e-324, 1e300]) | st.floats(allow_nan=False)
KINDS: dict[str, st.SearchStrategy[Any]] = {
    "bigint": st.integers(-5, 5) | st.sampled_from([-(2**63), 2**63 - 1, 2**62]),
    "double": FLOATS.map(lambda value: value + 0.0),
    "decimal(38,2)": st.integers(-5, 5) | st.sampled_from([10**38 - 1, -(10**38) + 1, 2**64]),
    "string": BYTES | st.binary(max_size=40),
}


def order(value: Any) -> tuple[bool, Any]:
    return (True, 0) if value != value else (False, value)


def stored(kind: str, values: list[Any]) -> pa.Array:
    """Values in the type of bounds; decimals are given unscaled."""
    if kind.startswith("decimal"):
        values = [None if value is None else Decimal(f"{value}e-2") for value in values]
    return pa.array(values, bound_type(kind))


@st.composite
def units(draw: st.DrawFn, kind: str) -> list[tuple[Any, Any]]:
    """Pairs of bounds, either of which may be unknown. Many are made of few, so that blocks are full."""
    some = draw(st.lists(st.tuples(KINDS[kind], KINDS[kind], st.integers(0, 5)), max_size=8))
    pairs = []
    for a, b, known in some:
        low, high = sorted((a, b), key=order)
        pairs.append((None if known == 0 else low, None if known == 1 else high))
    return [pair for pair in pairs for _ in range(draw(st.integers(1, 3)))]


@pytest.fixture(params=[1024, 2], autouse=True)
def _small_blocks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BOUNDS_BLOCK", request.param)


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_limits(kind: str, data: st.DataObject) -> None:
    pairs = data.draw(units(kind))
    bounds = unit_bounds(stored(kind, [low for low, _ in pairs]), stored(kind, [high for _, high in pairs]))
    limits = KINDS[kind] if kind in ("double", "string") else KINDS[kind] | st.sampled_from([10**40, -(10**40)])
    limit = data.draw(limits | st.sampled_from([end for pair in pairs for end in pair if end is not None] or [None]))
    if limit is None:
        return
    at = order(limit)
    lows, highs = ([pair[end] for pair in pairs] for end in range(2))
    if kind == "bigint":  # what is unknown is still a bigint
        lows = [-(2**63) if low is None else low for low in lows]
        highs = [2**63 - 1 if high is None else high for high in highs]
    unknown = not kind.startswith("decimal") or abs(limit) < 10**38
    less, more = unknown or limit > 0, unknown or limit < 0
    assert bounds.below(limit, itself=True).tolist() == [less if low is None else order(low) <= at for low in lows]
    assert bounds.below(limit, itself=False).tolist() == [less if low is None else order(low) < at for low in lows]
    assert bounds.above(limit, itself=True).tolist() == [more if high is None else order(high) >= at for high in highs]
    assert bounds.above(limit, itself=False).tolist() == [more if high is None else order(high) > at for high in highs]


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_lists(kind: str, data: st.DataObject) -> None:
    pairs = data.draw(units(kind))
    bounds = unit_bounds(stored(kind, [low for low, _ in pairs]), stored(kind, [high for _, high in pairs]))
    values = data.draw(st.lists(KINDS[kind], min_size=1, max_size=6, unique_by=order))

    def inside(pair: tuple[Any, Any], value: Any) -> bool:
        low, high = pair
        return (low is None or order(low) <= order(value)) and (high is None or order(value) <= order(high))

    among = np.array(data.draw(st.lists(st.booleans(), min_size=len(pairs), max_size=len(pairs))), dtype=np.bool_)
    found, covered = bounds.holding(stored(kind, values), among)
    expected = [any(inside(pair, value) for value in values) for pair in pairs]
    in_some = [any(inside(pair, value) for pair in itertools.compress(pairs, among)) for value in values]
    if kind == "string" and len(values) > 1:  # compared by some bytes only
        assert all(kept for kept, right in zip(found.tolist(), expected, strict=True) if right)
        assert all(kept for kept, right in zip(covered.tolist(), in_some, strict=True) if right)
    else:
        assert found.tolist() == expected
        assert covered.tolist() == in_some
    each = [[inside(pair, value) for pair in pairs] for value in values]
    assert [bounds.enclosing(value).tolist() for value in values] == each
    assert not bounds.all_enclose(stored(kind, values)) or all(map(all, each))
    if kind in ("bigint", "string"):
        few = FewBounds([low for low, _ in pairs], [high for _, high in pairs])
        assert [few.enclosing(value).tolist() for value in values] == each
        found, covered = few.holding(stored(kind, values), among)
        assert (found.tolist(), covered.tolist()) == (expected, in_some)


@given(pairs=units("string"), prefix=BYTES)
def test_prefixes(pairs: list[tuple[bytes | None, bytes | None]], prefix: bytes) -> None:
    bounds = unit_bounds(stored("string", [low for low, _ in pairs]), stored("string", [high for _, high in pairs]))
    expected = [
        (low is None or low[: len(prefix)] <= prefix) and (high is None or high >= prefix) for low, high in pairs
    ]
    assert bounds.starting_with(prefix).tolist() == expected


def test_many_units_leave_values_outside_all_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SORTED_BOUNDS", 1)
    monkeypatch.setattr(module, "BOUNDS_BLOCK", 2)
    bounds = unit_bounds(stored("bigint", [0, 10, 20, 30]), stored("bigint", [5, 15, 25, 35]))
    found, covered = bounds.holding(stored("bigint", [-1, 7, 12, 36]), np.ones(4, dtype=np.bool_))
    assert (found.tolist(), covered.tolist()) == ([True, True, False, False], [False, True, True, False])


@pytest.mark.parametrize("kind", ["bigint", "string", "double"])
def test_values_that_all_units_enclose(kind: str) -> None:
    make = {"bigint": int, "string": lambda value: b"%04d" % value, "double": float}[kind]
    lows, highs = ([make(end + unit) for unit in range(5)] for end in (100, 200))
    bounds = unit_bounds(stored(kind, [*lows, None]), stored(kind, [*highs, None]))
    assert bounds.all_enclose(stored(kind, [make(105), make(150), make(199)]))
    assert not bounds.all_enclose(stored(kind, [make(150), make(103)]))
    assert not bounds.all_enclose(stored(kind, [make(150), make(201)]))
    assert not bounds.all_enclose(stored(kind, []))
    assert bounds.enclosing(make(150)).all()
    assert bounds.enclosing(make(103)).tolist() == [True] * 4 + [False, True]
