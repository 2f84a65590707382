"""Sets of units in their three forms against Python's own sets."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lakebloom.predicate.prune.units import Units

SIZE = 9
SETS = st.tuples(st.sets(st.integers(0, SIZE - 1)), st.sampled_from(["truths", "numbers", "all"]))


def units(chosen: tuple[set[int], str]) -> tuple[Units, set[int]]:
    members, form = chosen
    if form == "all":
        return Units(SIZE), set(range(SIZE))
    if form == "numbers":
        return Units.numbered(SIZE, np.array(sorted(members), dtype=np.int64)), members
    return Units.where(np.isin(np.arange(SIZE), list(members))), members


@given(first=SETS, second=SETS)
def test_units_are_sets(first: tuple[set[int], str], second: tuple[set[int], str]) -> None:
    (a, in_a), (b, in_b) = units(first), units(second)
    for found, expected in ((a, in_a), (a & b, in_a & in_b), (a | b, in_a | in_b), (a - b, in_a - in_b)):
        assert found.numbers.tolist() == sorted(expected)
        assert np.flatnonzero(found.truths).tolist() == sorted(expected)
        assert (len(found), bool(found), len(found.truths)) == (len(expected), bool(expected), SIZE)


def test_no_units() -> None:
    assert not Units.none(3)
    assert not Units(0)
    assert Units.none(3).truths.tolist() == [False] * 3
