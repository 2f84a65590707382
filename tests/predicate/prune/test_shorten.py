"""A list that was shortened for a unit matches the same rows of it, whatever the tiles are like."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from lakebloom import hash_values
from lakebloom.predicate.column import col
from lakebloom.predicate.prune import shorten
from lakebloom.predicate.prune.prune import exact_name
from lakebloom.predicate.prune.shorten import Narrowing
from lakebloom.sbbf.filter import Sbbf
from lakebloom.storage import open_storage
from lakebloom.store.segments import Segment, SegmentWriter
from lakebloom.store.unit_table import ColumnFacts, Unit
from tests.store.examples import CONFIG, table_file

if TYPE_CHECKING:
    from pathlib import Path

UNITS, ROWS = 130, 20


@pytest.fixture
def segment(tmp_path: Path) -> Segment:
    """Unit u holds the keys from 20 u on; every third in a tile of another size, and the last without a filter."""
    storage = open_storage(tmp_path)
    writer = SegmentWriter(storage, "s", [("k",)])
    for blocks, members in ((3, range(0, UNITS - 1, 3)), (5, [u for u in range(UNITS - 1) if u % 3])):
        filters = [Sbbf(blocks) for _ in members]
        for f, unit in zip(filters, members, strict=True):
            f.insert_hashes(hash_values(np.arange(ROWS * unit, ROWS * (unit + 1))))
        writer.add_tile(0, list(members), [np.stack([f.words for f in filters], axis=1)])
    units = [Unit(table_file(u), 0, ROWS, 0, 1, (ColumnFacts(0),)) for u in range(UNITS)]
    return Segment(storage, writer.finish(units, ["bigint"], 1e-3), CONFIG)


def values_of(shortened: object) -> set[int]:
    return {literal.value for literal in shortened.values}  # type: ignore[attr-defined]


@pytest.mark.parametrize("count", [10, 300, 3000])
def test_each_unit_keeps_the_values_that_it_holds_and_few_others(segment: Segment, count: int) -> None:
    wanted = np.random.default_rng(count).integers(0, 2 * UNITS * ROWS, count).tolist()
    units = np.arange(0, UNITS, 2)
    narrowing = Narrowing(exact_name, col("k").isin([*wanted, None]))
    cut = dict(zip(units.tolist(), narrowing.of_units(segment, units), strict=True))
    for unit, shortened in cut.items():
        inside = {key for key in wanted if key // ROWS == unit}
        assert inside <= values_of(shortened) <= set(wanted)
    assert sum(len(values_of(shortened)) for shortened in cut.values()) < 20 * count
    last = narrowing.of_units(segment, np.array([UNITS - 1]))
    assert values_of(last[0]) >= set(wanted), "a unit without a filter may hold everything"


def test_lists_that_stay_long_are_left_as_they_are(segment: Segment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shorten, "SHORTENED_PAIRS", 5)
    everything = col("k").isin(range(UNITS * ROWS))
    assert Narrowing(exact_name, everything).of_units(segment, np.arange(UNITS)) == [everything] * UNITS


def test_values_of_several_types(segment: Segment) -> None:
    predicate = col("k").isin([20, 21, np.int16(22), 2000, 2001, np.int16(2002), 10**9, 10**9 + 1])
    (cut,) = Narrowing(exact_name, predicate).of_units(segment, np.array([1]))
    assert {20, 21, 22} <= values_of(cut)
