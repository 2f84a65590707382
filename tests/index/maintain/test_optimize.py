"""Optimize merges segments without reading a data file, and keeps every answer."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from lakebloom import BloomIndexConfig, col, errors
from lakebloom.index.maintain.optimize import optimize_index
from tests.index.lake import NAME, Lake, assert_answers, columns_of, kept, questions
from tests.index.meddling import Meanwhile

if TYPE_CHECKING:
    from collections.abc import Iterator

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
