"""Optimize merges segments without reading a data file, and keeps every answer."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from lakebloom import BloomIndexConfig, col, errors
from lakebloom.index.maintain import optimize
from lakebloom.index.maintain.optimize import optimize_index
from lakebloom.index.snapshot import Snapshot
from lakebloom.store import merge
from lakebloom.tuning import MANY_SEGMENTS, TASKS_PER_CORE
from tests.index.lake import NAME, Lake, assert_answers, columns_of, kept, questions
from tests.index.meddling import Meanwhile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakebloom.sbbf.filter import Sbbf

QUESTIONS = questions([5, 25, 45, 65, 85, 999])


@pytest.fixture(params=["file", "row_group", 7])
def scattered(lake: Lake, request: pytest.FixtureRequest) -> Iterator[Lake]:
    """An index in many segments, some units of which do not count any more."""
    lake.fill(range(3))
    lake.create(BloomIndexConfig(NAME, ["k", "s", "n"], fpp=1e-4, granularity=request.param))
    for number in range(3, 7):
        lake.fill([number])
        lake.refresh()
    lake.write("f1", columns_of(range(200, 230)))
    lake.refresh()
    return lake


@pytest.mark.slow
def test_no_data_file_is_read_and_every_answer_stays(scattered: Lake) -> None:
    asked = [*(col("k") == key for key in range(0, 240, 23)), *(question.predicate for question in QUESTIONS)]
    before = [kept(scattered.open(), predicate) for predicate in asked]
    units = [scattered.open().candidates(NAME, col("k").is_not_null()).sort_by([("path", "ascending")])]
    aside = scattered.table.rename(scattered.table.with_name("aside"))
    report = optimize_index(scattered.catalog(), NAME)
    assert (report.committed, report.segments, report.operation) == (True, 1, "optimize")
    assert [kept(scattered.open(), predicate) for predicate in asked] == before
    units.append(scattered.open().candidates(NAME, col("k").is_not_null()).sort_by([("path", "ascending")]))
    assert units[0].to_pylist() == units[1].to_pylist()
    aside.rename(scattered.table)
    assert scattered.open().verify_index(NAME).ok
    assert_answers(scattered, QUESTIONS)


@pytest.mark.slow
def test_units_that_do_not_count_are_left_out(scattered: Lake) -> None:
    before = scattered.entry()
    optimize_index(scattered.catalog(), NAME)
    entry = scattered.entry()
    assert entry.segments[0].num_files == 7
    assert before.segments != entry.segments
    assert sum(segment.num_files for segment in before.segments) == 8
    assert entry.segments[0].num_rows == 6 * 20 + 30
    assert entry.summary == {"segments_before": len(before.segments), "segments_after": 1}


def test_a_second_time_there_is_nothing_to_gain(scattered: Lake) -> None:
    optimize_index(scattered.catalog(), NAME)
    files, version = scattered.stored(), scattered.entry().version
    report = optimize_index(scattered.catalog(), NAME)
    assert (report.committed, report.version) == (False, version)
    assert scattered.stored() == files


@pytest.mark.slow
def test_what_was_refreshed_meanwhile_stays(lake: Lake) -> None:
    lake.fill(range(4))
    lake.create()

    def refresh() -> None:
        lake.fill([4])
        lake.refresh()

    report = optimize_index(lake.catalog(Meanwhile(refresh)), NAME)
    assert (report.version, report.segments) == (3, 2)
    assert lake.indexed() == lake.uris()
    assert_answers(lake, QUESTIONS)


def test_two_at_once_one_of_them_loses_and_leaves_nothing(lake: Lake) -> None:
    lake.fill(range(4))
    lake.create()

    def optimize() -> None:
        optimize_index(lake.catalog(), NAME)
        lake.vacuum()

    with pytest.raises(errors.CommitConflictError, match="replaced its segments meanwhile"):
        optimize_index(lake.catalog(Meanwhile(optimize)), NAME)
    assert not lake.orphans()
    assert_answers(lake, QUESTIONS)


def test_filters_of_nearly_equal_units_end_in_one_tile(lake: Lake) -> None:
    """Files of one table have about the same number of rows; each segment by itself would have a size of its own."""
    lake.types = {"k": "bigint"}
    for number, rows in enumerate((20_000, 19_990, 20_010, 19_985)):
        keys = range(100_000 * number, 100_000 * number + rows)
        lake.write(f"f{number}", {"k": columns_of(keys)["k"]})
    lake.create(BloomIndexConfig(NAME, ["k"], fpp=0.01))
    assert len(lake.entry().segments) == 4
    optimize_index(lake.catalog(), NAME)
    (segment,) = lake.entry().segments
    assert [tile.num_units for tile in segment.tiles] == [4]


def test_a_table_that_is_gone_can_still_be_optimized(lake: Lake) -> None:
    lake.fill(range(4))
    lake.create()
    shutil.rmtree(lake.table)
    assert optimize_index(lake.catalog(), NAME).segments == 1


# Wide segments


def filters_of(lake: Lake, column: str) -> dict[str, list[Sbbf]]:
    """The filters of each file, layer by layer."""
    index = lake.catalog().index(NAME)
    found: dict[str, list[Sbbf]] = {}
    for segment in Snapshot(index.storage, index.active()).segments:
        for unit, record in enumerate(segment.units.units()):
            found[record.file.uri] = segment.filters((column,), unit)
    return found


@pytest.mark.slow
def test_segments_are_merged_range_by_range_whatever_their_size(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merge, "MERGED_BYTES", 8 * 32 * 30 * 7)  # seven rows of thirty units
    monkeypatch.setattr(optimize, "MERGED_BYTES", 1)
    for number in range(30):
        lake.write(f"f{number}", {"k": range(1000 * number, 1000 * number + 900), "s": ["x"] * 900, "n": [1] * 900})
    lake.create(BloomIndexConfig(NAME, ["k"], fpp=1e-8), tasks=6)
    before, answers = filters_of(lake, "k"), [kept(lake.open(), col("k") == key) for key in range(0, 30_000, 977)]
    assert len(lake.entry().segments) > 10
    optimize_index(lake.catalog(), NAME)
    (segment,) = lake.entry().segments
    assert [tile.layer for tile in segment.tiles] == [0, 1, 2]
    assert all(len(tile.parts) == -(-tile.num_blocks // 7) > 1 for tile in segment.tiles)
    assert filters_of(lake, "k") == before
    assert [kept(lake.open(), col("k") == key) for key in range(0, 30_000, 977)] == answers
    assert lake.open().verify_index(NAME).ok
    assert not optimize_index(lake.catalog(), NAME).committed


@pytest.mark.slow
def test_a_build_of_many_segments_ends_with_few(lake: Lake) -> None:
    lake.fill(range(40))
    report = lake.create(BloomIndexConfig(NAME, ["k", "s"], global_filter=True), tasks=20)
    assert report.files == 40
    assert len(lake.entry().segments) == 1
    assert lake.entry().version == 1
    assert not lake.orphans()
    assert lake.open().verify_index(NAME).ok
    assert {record.segments for record in lake.entry().global_filters} == {(lake.entry().segments[0].id,)}
    assert_answers(lake, QUESTIONS)


def test_a_build_of_some_segments_keeps_them(lake: Lake) -> None:
    lake.fill(range(40))
    lake.create(BloomIndexConfig(NAME, ["k"]), tasks=MANY_SEGMENTS // TASKS_PER_CORE)
    assert len(lake.entry().segments) == MANY_SEGMENTS


@pytest.mark.slow
def test_a_large_segment_is_not_written_again_for_a_small_one(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optimize, "MERGED_BYTES", 1)
    lake.write("large", {"k": range(500_000), "s": ["x"] * 500_000, "n": [1] * 500_000})
    lake.create(BloomIndexConfig(NAME, ["k"]))
    (large,) = lake.entry().segments
    for number in range(3):
        lake.fill([number])
        lake.refresh()
    optimize_index(lake.catalog(), NAME)
    assert [segment.id == large.id for segment in lake.entry().segments] == [True, False]
    assert not optimize_index(lake.catalog(), NAME).committed
    lake.write("medium", {"k": range(10**6, 10**6 + 100_000), "s": ["x"] * 100_000, "n": [1] * 100_000})
    lake.refresh()
    optimize_index(lake.catalog(), NAME)
    assert len(lake.entry().segments) == 1, "now it is worth it"


@pytest.mark.slow
def test_segments_have_a_most_of_units(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optimize, "MOST_WIDE_UNITS", 5)
    lake.fill(range(12))
    lake.create(BloomIndexConfig(NAME, ["k"]), tasks=6)
    optimize_index(lake.catalog(), NAME)
    assert sorted(segment.num_units for segment in lake.entry().segments) == [2, 5, 5]
    assert_answers(lake, QUESTIONS)


def test_a_damaged_tile_stops_a_merge_and_nothing_is_committed(lake: Lake) -> None:
    lake.fill(range(4))
    lake.create(BloomIndexConfig(NAME, ["k"]))
    storage = lake.catalog().index(NAME).storage
    path = lake.entry().segments[1].tiles[0].parts[0].file.path
    data = bytearray(storage.read(path))
    data[20] ^= 1
    storage.write(path, bytes(data))
    version = lake.entry().version
    with pytest.raises(errors.CorruptIndexError, match="checksum"):
        optimize_index(lake.catalog(), NAME)
    assert lake.entry().version == version
    assert not lake.orphans()
