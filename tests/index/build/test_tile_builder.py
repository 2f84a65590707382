"""Hashes on their way into tiles: how many are held, and that none is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from lakebloom.index.build import tile_builder
from lakebloom.index.build.tile_builder import TileBuilder
from lakebloom.sbbf.filter import Sbbf

if TYPE_CHECKING:
    from lakebloom.sbbf.kernels import HashArray, WordArray

LIMIT = 4096


class Tiles:
    """Takes tiles in the place of a segment on disk."""

    def __init__(self) -> None:
        self.filters: dict[tuple[int, int], WordArray] = {}

    def add_tile(self, column: int, units: list[int], layers: list[WordArray]) -> None:
        for slot, unit in enumerate(units):
            self.filters[unit, column] = np.ascontiguousarray(layers[0][:, slot])

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
