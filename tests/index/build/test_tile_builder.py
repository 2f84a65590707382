"""Hashes on their way into tiles: how many are held, and that none is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from lakebloom.index.build import tile_builder
from lakebloom.index.build.tile_builder import TileBuilder
from lakebloom.sbbf.filter import Sbbf

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lakebloom.sbbf.kernels import HashArray, WordArray

LIMIT = 4096


class Tiles:
    """Takes tiles in the place of a segment on disk."""

    def __init__(self) -> None:
        self.filters: dict[tuple[int, int], WordArray] = {}
        self.members: list[list[int]] = []

    def add_tile(self, column: int, units: list[int], layers: Iterable[WordArray]) -> None:
        self.members.append(units)
        first, *_ = layers
        for slot, unit in enumerate(units):
            self.filters[unit, column] = np.ascontiguousarray(first[:, slot])

    def holds(self, unit: int, column: int, hashes: HashArray) -> bool:
        return bool(Sbbf.from_bytes(self.filters[unit, column].tobytes()).might_contain_hashes(hashes).all())


@pytest.fixture
def tiles(monkeypatch: pytest.MonkeyPatch) -> Tiles:
    monkeypatch.setattr(tile_builder, "PENDING_HASHES", LIMIT)
    return Tiles()


@pytest.mark.parametrize(("columns", "units", "rows"), [(1, 1, 9000), (8, 1, 2000), (8, 1, 9000), (3, 40, 300)])
def test_what_is_held_does_not_grow(tiles: Any, columns: int, units: int, rows: int) -> None:
    rng = np.random.default_rng(1)
    builder = TileBuilder(tiles, columns, 0.01, None)
    expected = {}
    for unit in range(units):
        for column in range(columns):
            builder.begin(unit, column)
            expected[unit, column] = rng.integers(0, 1 << 64, rows, dtype=np.uint64)
        for start in range(0, rows, 100):
            for column in range(columns):
                builder.add(column, expected[unit, column][start : start + 100], rows)
                assert builder.pending <= LIMIT
        for column in range(columns):
            builder.end(column)
    builder.flush()
    assert builder.pending == 0
    assert tiles.filters.keys() == expected.keys()
    for (unit, column), hashes in expected.items():
        assert tiles.holds(unit, column, hashes)


def built(tiles: Any, rows: list[int]) -> list[HashArray]:
    """Build a unit of so many rows each, and return their hashes. The builder makes filters every few units."""
    rng = np.random.default_rng(2)
    builder = TileBuilder(tiles, 1, 1e-5, None)
    added = [rng.integers(0, 1 << 64, count, dtype=np.uint64) for count in rows]
    for unit, hashes in enumerate(added):
        builder.begin(unit, 0)
        builder.add(0, hashes, len(hashes))
        builder.end(0)
    builder.flush()
    for unit, hashes in enumerate(added):
        assert tiles.holds(unit, 0, hashes)
    return added


def test_filters_of_one_size_become_one_tile(tiles: Any) -> None:
    built(tiles, [1000] * 30)
    assert tiles.members == [list(range(30))]


def test_filters_of_several_sizes_keep_the_order_of_their_units(tiles: Any) -> None:
    built(tiles, [1000, 100] * 15)
    assert sorted(tiles.members) == [list(range(0, 30, 2)), list(range(1, 30, 2))]


def test_waiting_filters_take_a_limited_amount_of_memory(tiles: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tile_builder, "PENDING_FILTER_BYTES", 40_000)
    built(tiles, [1000] * 30)
    assert 1 < len(tiles.members) < 30
    assert [unit for members in tiles.members for unit in members] == list(range(30))


def test_a_tile_takes_a_limited_amount_of_memory(tiles: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tile_builder, "TILE_BYTES", 20_000)
    built(tiles, [1000] * 30)
    assert 1 < len(tiles.members) < 30
    assert [unit for members in tiles.members for unit in members] == list(range(30))
