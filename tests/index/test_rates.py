"""Sizes and rates of a real segment: what was asked for is what is measured, at the size that the mathematics gives."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from lakebloom import Sbbf, sizing
from lakebloom.index.build_segment import build_segment
from lakebloom.index.plan import BuildPlan, FileGroup
from lakebloom.sbbf.kernels import load_compiled
from lakebloom.sbbf.layers import mix
from lakebloom.storage import open_storage
from lakebloom.store.tiles import read_tile
from lakebloom.tables.listing import list_files
from lakebloom.tables.parquet_columns import ColumnSpec
from tests.index.local_builder import write_parquet

if TYPE_CHECKING:
    from pathlib import Path

    from lakebloom.storage import Storage
    from lakebloom.store.records import SegmentRecord

FILES, ROWS = 8, 25_000


def build(
    home: Path, keys: list[pa.Array], fpp: float, expected_items: int | None = None
) -> tuple[Storage, SegmentRecord]:
    for number, values in enumerate(keys):
        write_parquet(home / "t" / f"{number}.parquet", {"k": values}, compression="none")
    storage = open_storage(home / "index")
    plan = BuildPlan("unused", (ColumnSpec(("k",), "bigint"),), "file", fpp, expected_items)
    result, _ = build_segment(plan, FileGroup(0, tuple(list_files([str(home / "t")]))), storage)
    assert result.segment is not None
    return storage, result.segment


def filter_bytes(segment: SegmentRecord) -> int:
    return sum(tile.num_blocks * tile.num_units * 32 for tile in segment.tiles)


def false_positives(storage: Storage, segment: SegmentRecord, probes: int) -> int:
    """Count (unit, absent value) pairs that pass all layers."""
    load_compiled()
    absent = np.random.default_rng(1).integers(0, 2**64, probes, dtype=np.uint64)
    layers = sorted(segment.tiles, key=lambda tile: tile.layer)
    words = [read_tile(storage, tile) for tile in layers]
    count = 0
    for slot in range(layers[0].num_units):
        alive = absent
        for layer, tile in enumerate(words):
            f = Sbbf.from_words(np.ascontiguousarray(tile[:, slot]))
            alive = alive[f.might_contain_hashes(alive if layer == 0 else mix(alive))]
        count += len(alive)
    return count


def unique_keys() -> list[pa.Array]:
    rng = np.random.default_rng(0)
    return [pa.array(rng.integers(-(2**62), 2**62, ROWS)) for _ in range(FILES)]


@pytest.mark.parametrize(("fpp", "bits"), [(0.01, 10.53), (1e-5, 27.0)])
def test_unique_keys_take_the_bits_they_need_and_give_the_rate_asked_for(
    tmp_path: Path, fpp: float, bits: float
) -> None:
    storage, segment = build(tmp_path, unique_keys(), fpp)
    needed = sum(sizing.num_blocks(ROWS, layer) * 32 for layer in sizing.layer_fpps(fpp)) * FILES
    assert filter_bytes(segment) <= 1.15 * needed
    assert filter_bytes(segment) * 8 <= 1.15 * bits * ROWS * FILES
    probes = 1_000_000 if fpp > 1e-3 else 20_000_000
    expected = fpp * probes * FILES
    measured = false_positives(storage, segment, probes)
    assert abs(measured - expected) <= 0.1 * expected + 5 * math.sqrt(expected)


def test_filters_are_sized_by_distinct_values_not_by_rows(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    few = [pa.array(rng.integers(0, 50, ROWS)) for _ in range(FILES)]
    _, segment = build(tmp_path, few, 0.01)
    assert filter_bytes(segment) <= FILES * 4 * 32

    skewed = [pa.array((rng.pareto(1.0, ROWS) * 10).astype(np.int64)) for _ in range(FILES)]
    _, segment = build(tmp_path / "skewed", skewed, 0.01)
    distinct = sum(len(values.unique()) for values in skewed)
    assert filter_bytes(segment) * 8 <= 1.15 * 10.53 * distinct


def test_expected_items_fix_the_size(tmp_path: Path) -> None:
    keys = [pa.array(range(10)), pa.array(range(5000))]
    _, segment = build(tmp_path, keys, 0.01, expected_items=1000)
    assert {tile.num_blocks for tile in segment.tiles} == {sizing.num_blocks(1000, 0.01)}


def test_uneven_files_waste_little(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    counts = [10, 100, 1000, 5000, 5100, 20_000, 21_000, 3]
    keys = [pa.array(rng.integers(-(2**62), 2**62, count)) for count in counts]
    _, segment = build(tmp_path, keys, 0.01)
    needed = sum(sizing.num_blocks(count, 0.01) * 32 for count in counts)
    assert filter_bytes(segment) <= 1.15 * needed
