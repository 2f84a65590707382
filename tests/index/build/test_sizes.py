"""How large filters are and how often they are wrong: measured, with enough probes to know."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebloom import BloomIndexConfig, Sbbf, hash_values
from lakebloom.index.build import sizes
from lakebloom.sbbf import sizing
from lakebloom.sbbf.layers import mix
from lakebloom.store.tiles import read_tile
from tests.index.lake import NAME, Lake

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lakebloom.sbbf.kernels import HashArray
    from lakebloom.store.records import TileRecord

UNIT_ROWS = 25_000
UNITS = 40
ROWS = UNITS * UNIT_ROWS
ALLOWED = 1.15


@pytest.fixture(scope="module")
def unique(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """A million unique keys, to be indexed in units of 25,000."""
    lake = Lake(tmp_path_factory.mktemp("unique"), {"k": "bigint"})
    lake.write("f", {"k": pa.array(np.arange(ROWS))}, row_group_size=200_000)
    return lake


def absent_keys(part: int) -> np.ndarray:
    """The hashes of four million keys that no file has."""
    return hash_values(np.arange(10**9 + part * 4_000_000, 10**9 + (part + 1) * 4_000_000))


@pytest.fixture(scope="module")
def absent() -> np.ndarray:
    return absent_keys(0)


def tiles_of(lake: Lake, name: str) -> list[TileRecord]:
    entry = lake.catalog().index(name).log.newest()
    return [tile for segment in entry.segments for tile in segment.tiles]


def filter_bytes(lake: Lake, name: str) -> int:
    return sum(32 * tile.num_blocks * tile.num_units for tile in tiles_of(lake, name))


def filters(lake: Lake, name: str) -> Iterator[list[Sbbf]]:
    """The layers of each unit's filter."""
    storage = lake.catalog().index(name).storage
    entry = lake.catalog().index(name).log.newest()
    for segment in entry.segments:
        for number in sorted({tile.number for tile in segment.tiles}):
            layers = [read_tile(storage, tile) for tile in segment.tiles if tile.number == number]
            for slot in range(layers[0].shape[1]):
                yield [Sbbf.from_words(np.ascontiguousarray(layer[:, slot])) for layer in layers]


def false_positives(layers: list[Sbbf], hashes: np.ndarray) -> int:
    for number, f in enumerate(layers):
        hashes = hashes[f.might_contain_hashes(hashes if number == 0 else mix(hashes))]
    return len(hashes)


def exact_bytes(count: int, fpp: float, units: int) -> float:
    """What filters of exactly the needed size take, one or two for each unit."""
    return sum(32 * sizing.num_blocks(count, rate) * units for rate in sizing.layer_fpps(fpp))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fpp", "bits", "parts"),
    [(0.01, 10.5, 1), (1e-5, 27.0, 3)],  # what a value needs in one filter and in two; half a billion probes
)
def test_size_and_rate_over_unique_keys(unique: Lake, fpp: float, bits: float, parts: int) -> None:
    name = f"at_{fpp}"
    unique.create(BloomIndexConfig(name, ["k"], fpp=fpp, granularity=UNIT_ROWS))
    total = filter_bytes(unique, name)
    assert total <= ALLOWED * exact_bytes(UNIT_ROWS, fpp, UNITS)
    assert 8 * total / ROWS <= ALLOWED * bits
    made = list(filters(unique, name))
    assert len(made) == UNITS
    assert {len(layers) for layers in made} == {len(sizing.layer_fpps(fpp))}
    wrong = sum(false_positives(layers, hashes) for hashes in map(absent_keys, range(parts)) for layers in made)
    probes = UNITS * 4_000_000 * parts
    measured, noise = wrong / probes, 4 / math.sqrt(fpp * probes)
    predicted = math.prod(sizing.fpp(f.num_blocks, UNIT_ROWS) for f in made[0])
    assert measured == pytest.approx(predicted, rel=noise + 0.02), "the filters themselves vary a little"
    assert measured <= fpp * (1 + noise)
    if len(made[0]) == 1:
        assert measured == pytest.approx(fpp, rel=0.10)


@pytest.mark.slow
def test_no_key_is_missed(unique: Lake) -> None:
    unique.create(BloomIndexConfig("all", ["k"], fpp=1e-5, granularity=UNIT_ROWS))
    hashes = hash_values(np.arange(ROWS)).reshape(UNITS, UNIT_ROWS)
    for layers, inside in zip(filters(unique, "all"), hashes, strict=True):
        assert false_positives(layers, inside) == UNIT_ROWS


@pytest.mark.slow
def test_the_rate_follows_the_number_of_units(unique: Lake) -> None:
    for rows, fpp in ((ROWS, 0.01), (UNIT_ROWS, 0.25 / 40), (1000, 0.25 / 1000)):
        unique.create(BloomIndexConfig(f"auto_{rows}", ["k"], granularity=rows))
        (segment,) = unique.catalog().index(f"auto_{rows}").log.newest().segments
        assert segment.fpp == pytest.approx(fpp)
        assert len({tile.layer for tile in segment.tiles}) == len(sizing.layer_fpps(fpp))


def test_expected_items_fix_the_size(unique: Lake) -> None:
    unique.create(BloomIndexConfig("fixed", ["k"], fpp=0.01, expected_items=1234, granularity=70_000))
    assert {tile.num_blocks for tile in tiles_of(unique, "fixed")} == {sizing.num_blocks(1234, 0.01)}
    assert sum(tile.num_units for tile in tiles_of(unique, "fixed")) == math.ceil(ROWS / 70_000)


# Repeated values


def made_of(tmp_path: Path, keys: np.ndarray, **config: object) -> tuple[Lake, float]:
    """An index over these keys in one unit, and the bits it has for each of their distinct values."""
    lake = Lake(tmp_path, {"k": "bigint"})
    lake.write("f", {"k": pa.array(keys)})
    lake.create(BloomIndexConfig(NAME, ["k"], granularity="file", fpp=0.01, **config))  # type: ignore[arg-type]
    return lake, 8 * filter_bytes(lake, NAME) / len(np.unique(keys))


@pytest.mark.parametrize("distinct", [1, 10, 1000, 30_000, 100_000])
def test_few_distinct_values(tmp_path: Path, distinct: int) -> None:
    _, bits = made_of(tmp_path, np.random.default_rng(1).integers(0, distinct, 200_000))
    assert bits <= max(ALLOWED * 10.5, 2 * 256 / distinct)


def test_skewed_values(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    keys = np.where(rng.random(200_000) < 0.9, 7, rng.integers(0, 2**60, 200_000))
    _, bits = made_of(tmp_path, keys)
    assert bits <= ALLOWED * 10.5


def test_zipfian_values_keep_the_rate(tmp_path: Path, absent: np.ndarray) -> None:
    keys = np.random.default_rng(3).zipf(1.3, 200_000).astype(np.int64) % 10**9
    lake, bits = made_of(tmp_path, keys)
    assert bits <= ALLOWED * 10.5
    (layers,) = filters(lake, NAME)
    assert 0.008 <= false_positives(layers, absent) / len(absent) <= 0.011


@pytest.mark.slow
def test_a_unit_too_large_to_hold_its_hashes(
    tmp_path: Path, absent: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It becomes a filter sized by its rows, folded when its values are known."""
    monkeypatch.setattr("lakebloom.index.build.tile_builder.PENDING_HASHES", 20_000)
    lake, bits = made_of(tmp_path / "unique", np.arange(300_000))
    assert bits <= ALLOWED * 10.5
    (layers,) = filters(lake, NAME)
    assert false_positives(layers, absent) / len(absent) == pytest.approx(0.01, rel=0.1)
    lake, _ = made_of(tmp_path / "few", np.arange(300_000) % 50)
    assert filter_bytes(lake, NAME) <= 32 * 60
    assert lake.open().verify_index(NAME).ok
    lake, _ = made_of(tmp_path / "fixed", np.arange(300_000), expected_items=5000)
    assert [tile.num_blocks for tile in tiles_of(lake, NAME)] == [sizing.num_blocks(5000, 0.01)]


@given(st.lists(st.integers(0, 4000), min_size=1, max_size=300))
def test_units_that_share_a_size_waste_little(counts: list[int]) -> None:
    needed = [sizes.blocks_for(count, 0.01) for count in counts]
    groups = sizes.classes([sizes.on_grid(blocks) for blocks in needed])
    assert sorted(unit for _, members in groups for unit in members) == list(range(len(counts)))
    assert all(needed[unit] <= blocks for blocks, members in groups for unit in members)
    assert sum(blocks * len(members) for blocks, members in groups) <= ALLOWED * sum(needed)


@given(st.integers(1, 2**31 - 1))
def test_the_grid(blocks: int) -> None:
    on_grid = sizes.on_grid(blocks)
    assert blocks <= on_grid <= blocks * (1 + 1 / 64)
    assert sizes.on_grid(on_grid) == on_grid


@pytest.mark.parametrize("distinct", [0, 1, 2, 10, 999, 50_000])
def test_counting_distinct_values(distinct: int) -> None:
    """Never fewer than there are by more than a percent, which is what keeps the rate."""
    hashes = hash_values(np.arange(distinct))
    repeated = np.concatenate([hashes, hashes[: distinct // 2], hashes[: distinct // 3]])
    assert 0.99 * distinct <= sizes.distinct(repeated) <= 1.02 * distinct + 2
    assert sizes.distinct(hashes) == distinct, "of unique values all"


@pytest.mark.parametrize(("distinct", "fpp"), [(10, 0.01), (50, 0.01), (50, 1e-3), (333, 1e-4), (1000, 0.01)])
def test_few_values_get_no_more_blocks_than_they_need(distinct: int, fpp: float) -> None:
    """Filters of so many values keep the rate on average, and those with a block less do not."""
    rate = sizing.layer_fpps(fpp)[0]
    hashes = hash_values(np.arange(2000 * distinct)).reshape(2000, distinct)
    blocks = sizes.blocks_for(distinct, fpp)
    assert _mean_rate(blocks, hashes) <= 1.03 * rate
    assert blocks == 1 or _mean_rate(blocks - 1, hashes) > rate


def _mean_rate(blocks: int, contents: HashArray) -> float:
    rates = []
    for hashes in contents:
        f = Sbbf(blocks)
        f.insert_hashes(hashes)
        rates.append(f.fpp)
    return float(np.mean(rates))
