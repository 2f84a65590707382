"""A single key that is said to be nowhere is in no unit that `prune` keeps, and what is not certain is not said."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from lakebloom import BloomIndexConfig, col
from lakebloom.index.maintain.optimize import optimize_index
from lakebloom.index.query.single_keys import SingleKeys
from tests.index.lake import NAME, Lake
from tests.index.query.test_candidates import TYPES

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("kind", TYPES)
def test_what_is_nowhere_is_not_kept(tmp_path: Path, kind: str) -> None:
    arrow, first, second, asked = TYPES[kind]
    lake = Lake(tmp_path, {"c": kind})
    lake.write("a", {"c": pa.array(first, arrow)})
    lake.write("b", {"c": pa.array(second, arrow)})
    lake.create(BloomIndexConfig(NAME, ["c"], fpp=1e-7))
    keys = SingleKeys(lake.snapshot(), None)
    for predicate, files in asked:
        assert not (keys.is_nowhere(predicate) and files), predicate
    values = {repr(value) for value in first + second}
    for predicate, _ in TYPES["bigint"][3] + asked:  # also values of another type
        if keys.is_nowhere(predicate):
            assert not lake.kept(predicate), (predicate, values)


@pytest.mark.parametrize("tasks", [1, 3])
def test_each_key_of_several_segments(tmp_path: Path, tasks: int) -> None:
    lake = Lake(tmp_path, {"k": "bigint", "s": "string", "n": "int"})
    lake.fill(range(6))
    lake.create(BloomIndexConfig(NAME, ["k", "s"], fpp=1e-7), tasks=tasks)
    lake.fill([7])
    lake.refresh()
    for _ in range(2):
        keys, reader = SingleKeys(lake.snapshot(), None), lake.open()
        for number in range(0, 200, 7):
            for predicate in (col("k") == number, col("S") == f"s{number}"):
                is_there = number < 120 or 140 <= number < 160
                assert keys.is_nowhere(predicate) is not is_there
                assert reader.lookup(NAME, predicate).num_rows == is_there
        for unknown in (col("n") == 77, col("k") == None, col("k").isin([777]), col("k") == 0.5):  # noqa: E711
            assert not keys.is_nowhere(unknown)
        optimize_index(lake.catalog(), NAME)


def test_a_unit_without_a_filter_may_hold_anything(tmp_path: Path) -> None:
    lake = Lake(tmp_path, {"k": "bigint"})
    lake.write("full", {"k": pa.array([1, 2])})
    lake.write("null", {"k": pa.array([None], pa.int64())})
    lake.create(BloomIndexConfig(NAME, ["k"], fpp=1e-7), tasks=1)
    snapshot = lake.snapshot()
    is_complete = all(segment.tile_set(("k",)).is_complete for segment in snapshot.segments)
    assert SingleKeys(snapshot, None).is_nowhere(col("k") == 9) is is_complete
    assert not lake.open().lookup(NAME, col("k") == 9).num_rows


def test_a_file_that_came_since_is_read(tmp_path: Path) -> None:
    lake = Lake(tmp_path, {"k": "bigint"})
    lake.write("a", {"k": pa.array([1, 2])})
    lake.create(BloomIndexConfig(NAME, ["k"], fpp=1e-7))
    reader = lake.open()
    assert not reader.lookup(NAME, col("k") == 9).num_rows
    lake.write("b", {"k": pa.array([9])})
    assert reader.lookup(NAME, col("k") == 9)["k"].to_pylist() == [9]
    assert not reader.lookup(NAME, col("k") == 9, unindexed="skip").num_rows
