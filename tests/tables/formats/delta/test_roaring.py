"""Roaring bitmaps: every number that was written is found and no other, and bad bytes are an error."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebloom.tables.formats.delta.roaring import Roaring
from tests.tables.formats.delta.roaring_writer import Form, roaring64

_NUMBERS = st.one_of(st.integers(0, 70_000), st.integers(0, 1 << 20), st.integers((1 << 32) - 5, (1 << 32) + 70_000))
_RUNS = st.tuples(_NUMBERS, st.integers(1, 9000)).map(lambda run: range(run[0], run[0] + run[1]))
_SETS = st.lists(st.one_of(_NUMBERS.map(lambda number: range(number, number + 1)), _RUNS), max_size=12).map(
    lambda runs: {number for run in runs for number in run}
)


def _any_form(seed: int) -> object:
    chosen = random.Random(seed)

    def form(values: list[int]) -> Form:
        return chosen.choice(["runs", "sorted" if len(values) <= 4096 else "bits"])

    return form


@given(_SETS, st.integers(0, 1000))
def test_every_number_is_found_and_no_other(numbers: set[int], seed: int) -> None:
    found = Roaring(memoryview(roaring64(numbers, _any_form(seed))))  # type: ignore[arg-type]
    assert len(found) == len(numbers)
    asked = sorted(numbers | {number + 1 for number in numbers} | {0, 65_535, 65_536, 1 << 32, 1 << 40})
    assert found.contains(np.array(asked, dtype=np.int64)).tolist() == [number in numbers for number in asked]


@pytest.mark.parametrize("seed", range(3))
def test_bytes_that_are_cut_or_too_many_are_refused(seed: int) -> None:
    whole = roaring64({1, 2, 3, 70_000, *range(200_000, 210_000), 1 << 33}, _any_form(seed))  # type: ignore[arg-type]
    for size in range(0, len(whole), 7):
        with pytest.raises(ValueError, match="bytes"):
            Roaring(memoryview(whole[:size]))
    with pytest.raises(ValueError, match="behind"):
        Roaring(memoryview(whole + b"\0"))


@given(st.data())
def test_changed_bytes_are_refused_or_a_set_of_the_size_it_says(data: st.DataObject) -> None:
    whole = bytearray(roaring64({*range(5), *range(90_000, 95_000)}, _any_form(data.draw(st.integers(0, 9)))))  # type: ignore[arg-type]
    place = data.draw(st.integers(0, min(len(whole) - 1, 200)))
    whole[place] ^= data.draw(st.integers(1, 255))
    try:
        found = Roaring(memoryview(bytes(whole)))
    except ValueError:
        return
    assert int(found.contains(np.arange(1 << 20, dtype=np.int64)).sum()) <= len(found)


def test_what_claims_to_be_large_costs_nothing() -> None:
    claims = (2**63 - 1).to_bytes(8, "little") + bytes(4) + b"\x3a\x30\0\0" + b"\xff\xff\xff\x7f"
    with pytest.raises(ValueError, match="containers"):
        Roaring(memoryview(claims))
