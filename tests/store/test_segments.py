"""Segments and tiles: probing block by block equals probing each filter, and damage is noticed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lakebloom import errors
from lakebloom.sbbf.filter import Sbbf
from lakebloom.sbbf.layers import mix
from lakebloom.storage import open_storage
from lakebloom.store.global_filters import read_global, write_global
from lakebloom.store.merge import merge_segments
from lakebloom.store.segments import Segment
from lakebloom.store.tiles import read_tile
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
            inside = hashes_of(unit)
            f.insert_hashes(inside if layer == 0 else mix(inside))
            passed &= f.might_contain_hashes(hashes if layer == 0 else mix(hashes))
        answers.append(bool(passed.any()))
    return answers


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(
    sizes=st.dictionaries(st.integers(1, 40), st.integers(1, 6), min_size=1, max_size=3),
    layers=st.integers(1, 2),
    asked=st.lists(st.integers(0, 20), max_size=4),
    seed=st.integers(0, 100),
)
def test_probing_block_major_equals_probing_each_filter(
    storage: Storage, sizes: dict[int, int], layers: int, asked: list[int], seed: int
) -> None:
    record = write_segment(storage, f"s{seed}", sizes, layers=layers)
    segment = Segment(storage, record, CONFIG)
    hashes = np.concatenate([np.empty(0, np.uint64), *(hashes_of(unit, 2) for unit in asked)])
    units = range(sum(sizes.values()))
    assert segment.might_contain_any(COLUMN, hashes).tolist() == expected(units, sizes, layers, hashes)


def test_many_values_at_once(storage: Storage) -> None:
    sizes = {7: 5, 30: 3}
    segment = Segment(storage, write_segment(storage, "s", sizes), CONFIG)
    hashes = np.random.default_rng(99).integers(0, 2**64, 3000, dtype=np.uint64)
    assert segment.might_contain_any(COLUMN, hashes).tolist() == expected(range(8), sizes, 2, hashes)


def test_a_question_reads_each_tile_once_and_lists_nothing(storage: Storage) -> None:
    record = write_segment(storage, "s", {7: 5, 30: 3})
    watched = FaultyStorage(storage)
    segment = Segment(watched, record, CONFIG)
    _ = segment.units
    before = len(watched.log)
    segment.might_contain_any(COLUMN, hashes_of(0, 1))
    reads = [operation.path for operation in watched.log[before:]]
    assert sorted(reads) == sorted(set(reads)), "no tile is read twice"
    assert set(reads) <= {tile.file.path for tile in record.tiles}
    assert watched.count("list") == 0
    sizes = {tile.file.path: tile for tile in record.tiles}
    for operation in watched.log[before:]:
        assert operation.size_bytes == 32 * sizes[operation.path].num_units + 4


def test_a_tile_is_an_arrow_file_that_anyone_can_read(storage: Storage) -> None:
    record = write_segment(storage, "s", {7: 5})
    tile = record.tiles[0]
    table = pa.ipc.open_file(pa.py_buffer(storage.read(tile.file.path))).read_all()
    assert table.schema.field("block").type == pa.binary(32 * 5)
    assert table.num_rows == 7
    row = table["block"][3].as_py()
    assert row == read_tile(storage, tile)[3].tobytes()


@pytest.mark.parametrize("keep", [None, [0, 2, 3, 7]])
def test_merging_keeps_every_answer(storage: Storage, keep: list[int] | None) -> None:
    sizes = [{7: 2, 30: 2}, {30: 3, 5: 1}]
    records = [write_segment(storage, f"s{number}", size, first_unit=4 * number) for number, size in enumerate(sizes)]
    kept = list(range(8)) if keep is None else keep
    segments = [Segment(storage, record, CONFIG) for record in records]
    masks = [np.array([4 * number + i in kept for i in range(4)]) for number in range(2)]
    merged = Segment(
        storage, merge_segments(storage, "merged", [COLUMN], list(zip(segments, masks, strict=True))), CONFIG
    )
    assert merged.units.files == [table_file(unit) for unit in kept]
    assert len({tile.number for tile in merged.record.tiles}) <= 3
    for unit in range(8):
        hashes = hashes_of(unit, 1)
        separately = np.concatenate([segment.might_contain_any(COLUMN, hashes) for segment in segments])
        assert merged.might_contain_any(COLUMN, hashes).tolist() == separately[kept].tolist()


def test_damage_to_a_tile_is_noticed(storage: Storage) -> None:
    record = write_segment(storage, "s", {7: 5}, layers=1)
    (tile,) = record.tiles
    whole = bytes(storage.read(tile.file.path))
    probe = hashes_of(0, 1)
    for at in range(0, 7 * 160, 13):
        position = tile.blocks_offset + at
        storage.write(tile.file.path, whole[:position] + bytes([whole[position] ^ 4]) + whole[position + 1 :])
        segment = Segment(storage, record, CONFIG)
        block = int(((int(probe[0]) >> 32) * 7) >> 32)
        if at // 160 == block:
            with pytest.raises(errors.CorruptIndexError, match="checksum"):
                segment.might_contain_any(COLUMN, probe)
        else:
            assert segment.might_contain_any(COLUMN, probe)[0]
        with pytest.raises(errors.CorruptIndexError):
            read_tile(storage, tile)
    storage.write(tile.file.path, whole[: tile.blocks_offset + 10])
    with pytest.raises(errors.CorruptIndexError):
        Segment(storage, record, CONFIG).might_contain_any(COLUMN, probe)
    storage.delete(tile.file.path)
    with pytest.raises(errors.CorruptIndexError, match="no such file"):
        Segment(storage, record, CONFIG).might_contain_any(COLUMN, probe)


def test_damage_to_a_unit_table_is_noticed(storage: Storage) -> None:
    record = write_segment(storage, "s", {7: 5})
    whole = bytes(storage.read(record.units.path))
    for data in (b"", whole[:100], whole[:-1], whole[:200] + b"\xff" + whole[201:]):
        storage.write(record.units.path, data)
        with pytest.raises(errors.CorruptIndexError):
            _ = Segment(storage, record, CONFIG).units


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
