"""Segments and tiles: probing block by block equals probing each filter, and damage is noticed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lakebloom import errors
from lakebloom.sbbf.filter import Sbbf
from lakebloom.sbbf.layers import in_layer
from lakebloom.storage import open_storage
from lakebloom.store import merge, probing
from lakebloom.store.global_filters import read_global, write_global
from lakebloom.store.merge import merge_segments
from lakebloom.store.segments import Segment
from lakebloom.store.tile_layout import MAGIC, WIDE_UNITS, layout_of
from lakebloom.store.tiles import TileReader, read_tile
from lakebloom.tuning import MERGED_BYTES, PROBED_BYTES
from tests.examples import most
from tests.storage.faults import FaultyStorage
from tests.store.examples import CONFIG, hashes_of, table_file, write_segment

if TYPE_CHECKING:
    from pathlib import Path

    from lakebloom.storage import Storage

COLUMN = ("k",)


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return open_storage(tmp_path / "index")


def expected(units: range, sizes: dict[int, int], layers: int, hashes: np.ndarray) -> list[bool]:
    """Ask each unit's own filters, one after the other."""
    blocks_of = [blocks for blocks, count in sizes.items() for _ in range(count)]
    answers = []
    for unit, blocks in zip(units, blocks_of, strict=True):
        passed = np.ones(len(hashes), dtype=np.bool_)
        for layer in range(layers):
            f = Sbbf(blocks)
            f.insert_hashes(in_layer(hashes_of(unit), layer))
            passed &= f.might_contain_hashes(in_layer(hashes, layer))
        answers.append(bool(passed.any()))
    return answers


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=most(25))
@given(
    sizes=st.dictionaries(st.integers(1, 40), st.integers(1, 70), min_size=1, max_size=3),
    layers=st.integers(1, 3),
    asked=st.lists(st.integers(0, 20), max_size=4),
    seed=st.integers(0, 100),
)
def test_probing_planes_equals_probing_each_filter(
    storage: Storage, sizes: dict[int, int], layers: int, asked: list[int], seed: int
) -> None:
    record = write_segment(storage, f"s{seed}", sizes, layers=layers)
    segment = Segment(storage, record, CONFIG)
    hashes = np.concatenate([np.empty(0, np.uint64), *(hashes_of(unit, 2) for unit in asked)])
    units = range(sum(sizes.values()))
    assert segment.might_contain_any(COLUMN, hashes).tolist() == expected(units, sizes, layers, hashes)


@pytest.mark.slow
@pytest.mark.parametrize("probed_bytes", [PROBED_BYTES, 2000])
@pytest.mark.parametrize("sizes", [{7: 5, 30: 3}, {3: 20, 40: 100}, {3: WIDE_UNITS + 70}])
@pytest.mark.parametrize("count", [5, 100, 3000])
def test_many_values_at_once(
    storage: Storage, sizes: dict[int, int], count: int, probed_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probing, "PROBED_BYTES", probed_bytes)
    if probed_bytes < PROBED_BYTES and count * sum(sizes.values()) > 100_000:
        pytest.skip("thousands of windows")
    segment = Segment(storage, write_segment(storage, "s", sizes), CONFIG)
    num_units = segment.num_units
    hashes = np.random.default_rng(99).integers(0, 2**64, count, dtype=np.uint64)
    hashes[:3] = [hashes_of(unit)[7] for unit in (0, num_units // 2, num_units - 1)]
    assert segment.might_contain_any(COLUMN, hashes).tolist() == expected(range(num_units), sizes, 2, hashes)
    units = np.unique(np.linspace(0, num_units - 1, 9).astype(np.int64))
    each = segment.which(COLUMN, hashes[:40], units)
    for row, h in zip(each.tolist(), hashes[:40], strict=True):
        alone = segment.might_contain_any(COLUMN, np.array([h], dtype=np.uint64))
        assert row == alone[units].tolist()


def test_a_question_reads_each_tile_once_and_lists_nothing(storage: Storage) -> None:
    record = write_segment(storage, "s", {7: 5, 30: 3})
    watched = FaultyStorage(storage)
    segment = Segment(watched, record, CONFIG)
    segment.tile_numbers(COLUMN)
    before = len(watched.log)
    segment.might_contain_any(COLUMN, hashes_of(0, 1))
    reads = [operation.path for operation in watched.log[before:]]
    assert sorted(reads) == sorted(set(reads)), "no tile is read twice"
    assert set(reads) <= {tile.parts[0].file.path for tile in record.tiles}
    assert watched.count("list") == 0
    sizes = {tile.parts[0].file.path: tile for tile in record.tiles}
    for operation in watched.log[before:]:
        assert operation.size_bytes == 32 * sizes[operation.path].num_units + 4


def test_a_question_reads_eight_planes_of_a_wide_tile_and_nothing_else(storage: Storage) -> None:
    record = write_segment(storage, "s", {3: WIDE_UNITS + 1}, layers=1)
    watched = FaultyStorage(storage)
    segment = Segment(watched, record, CONFIG)
    _ = segment.units
    before = len(watched.log)
    segment.might_contain_any(COLUMN, hashes_of(0, 1))
    (operation,) = watched.log[before:]
    plane_bytes = layout_of(WIDE_UNITS + 1).stored_bytes
    assert plane_bytes == 8 * 33 + 4
    assert 8 * plane_bytes <= operation.size_bytes < 256 * plane_bytes


def test_a_filter_comes_back_bit_for_bit(storage: Storage) -> None:
    record = write_segment(storage, "s", {7: 5, 30: 70, 2: 3}, layers=3)
    segment = Segment(storage, record, CONFIG)
    for unit, blocks in ((0, 7), (4, 7), (5, 30), (74, 30), (77, 2)):
        for layer, found in enumerate(segment.filters(COLUMN, unit)):
            f = Sbbf(blocks)
            f.insert_hashes(in_layer(hashes_of(unit), layer))
            assert found == f
            assert found.to_parquet() == f.to_parquet()


@pytest.mark.parametrize("merged_bytes", [MERGED_BYTES, 6000])
@pytest.mark.parametrize("keep", [None, [0, 2, 3, 7]])
def test_merging_keeps_every_answer(
    storage: Storage, keep: list[int] | None, merged_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merge, "MERGED_BYTES", merged_bytes)
    sizes = [{7: 2, 30: 2}, {30: 3, 5: 1}]
    records = [write_segment(storage, f"s{number}", size, first_unit=4 * number) for number, size in enumerate(sizes)]
    kept = list(range(8)) if keep is None else keep
    segments = [Segment(storage, record, CONFIG) for record in records]
    masks = [np.array([4 * number + i in kept for i in range(4)]) for number in range(2)]
    merged = Segment(
        storage, merge_segments(storage, "merged", [COLUMN], list(zip(segments, masks, strict=True))), CONFIG
    )
    assert merged.units.files.rows(np.arange(len(kept))) == [table_file(unit) for unit in kept]
    assert len({tile.number for tile in merged.record.tiles}) <= 3
    assert any(len(tile.parts) > 1 for tile in merged.record.tiles) == (merged_bytes < MERGED_BYTES)
    assert [merged.filters(COLUMN, place) for place in range(len(kept))] == [
        segments[unit // 4].filters(COLUMN, unit % 4) for unit in kept
    ]
    for unit in range(8):
        hashes = hashes_of(unit, 1)
        separately = np.concatenate([segment.might_contain_any(COLUMN, hashes) for segment in segments])
        assert merged.might_contain_any(COLUMN, hashes).tolist() == separately[kept].tolist()


@pytest.mark.slow
def test_damage_to_a_tile_is_noticed(storage: Storage) -> None:
    record = write_segment(storage, "s", {7: 5}, layers=1)
    (tile,) = record.tiles
    path = tile.parts[0].file.path
    whole = bytes(storage.read(path))
    probe = hashes_of(0, 1)
    block = int(((int(probe[0]) >> 32) * 7) >> 32)
    for at in range(len(whole)):
        storage.write(path, whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
        segment = Segment(storage, record, CONFIG)
        if (at - len(MAGIC)) // 164 == block:
            with pytest.raises(errors.CorruptIndexError, match="checksum"):
                segment.might_contain_any(COLUMN, probe)
        else:
            assert segment.might_contain_any(COLUMN, probe)[0]
        with pytest.raises(errors.CorruptIndexError):
            TileReader(storage, tile).parts[0].check()
        if at >= len(MAGIC):
            with pytest.raises(errors.CorruptIndexError):
                read_tile(storage, tile)
    storage.write(path, whole + b"x")
    with pytest.raises(errors.CorruptIndexError, match="more than"):
        TileReader(storage, tile).parts[0].check()
    storage.write(path, whole[:10])
    with pytest.raises(errors.CorruptIndexError):
        Segment(storage, record, CONFIG).might_contain_any(COLUMN, probe)
    storage.delete(path)
    with pytest.raises(errors.CorruptIndexError, match="no such file"):
        Segment(storage, record, CONFIG).might_contain_any(COLUMN, probe)


def test_no_units_have_no_rows(storage: Storage) -> None:
    """A scan asks each segment for the units of its files, and some segments have none of them."""
    segment = Segment(storage, write_segment(storage, "s", {7: 5}), CONFIG)
    nothing = np.empty(0, dtype=np.int64)
    assert [column.tolist() for column in segment.units.rows(["row_start", "row_group_count"], nothing)] == [[], []]


def test_damage_to_a_unit_table_is_noticed(storage: Storage) -> None:
    record = write_segment(storage, "s", {7: 5})
    for table in record.tables:
        whole = bytes(storage.read(table.path))
        for data in (b"", whole[:100], whole[:-1], whole[:200] + b"\xff" + whole[201:]):
            storage.write(table.path, data)
            with pytest.raises(errors.CorruptIndexError):
                Segment(storage, record, CONFIG).units.examine()
        storage.write(table.path, whole)


def test_global_filters_round_trip_and_notice_damage(storage: Storage) -> None:
    f = Sbbf(100)
    f.insert(range(1000))
    record = write_global(storage, 0, "k", f, ["b", "a"])
    assert read_global(storage, record) == f
    assert record.segments == ("a", "b")
    assert record.ndv == pytest.approx(1000, rel=0.1)
    whole = bytes(storage.read(record.file.path))
    storage.write(record.file.path, whole[:50] + bytes([whole[50] ^ 1]) + whole[51:])
    with pytest.raises(errors.CorruptIndexError):
        read_global(storage, record)
