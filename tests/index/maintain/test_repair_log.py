"""Damaged entries of the log: what is left answers, repair goes on from there, and none is written."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from lakebloom import errors
from lakebloom.store.commits import encode_commit, entry_path
from tests.index.lake import NAME, Lake
from tests.index.maintain.damage import (
    WAYS,
    assert_whole,
    damage,
    made,
    repaired,
    storage_of,
)


@pytest.mark.slow
@pytest.mark.parametrize("way", [way for way in WAYS if way != "gone"])
def test_a_damaged_newest_entry_gives_way_to_the_one_before(lake: Lake, way: str) -> None:
    made(lake)
    damage(lake, entry_path(2), way)
    with pytest.raises(errors.CorruptIndexError, match="lakebloom repair"):
        lake.entry()
    report = repaired(lake)
    assert "version 1 is the newest again" in report.done[0]
    assert lake.entry().version > 2
    assert_whole(lake)


def test_the_only_entry_with_one_flipped_bit(lake: Lake) -> None:
    """Somewhere in its segments: what it says of the table and the columns is still there."""
    lake.fill(range(3))
    lake.create()
    data = bytes(storage_of(lake).read(entry_path(1)))
    at = data.index(b'"crc32"', data.index(b'"tiles"')) + 9
    storage_of(lake).write(entry_path(1), data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    with pytest.raises(errors.CorruptIndexError, match=r"with Spark.*force=True"):
        lake.open().repair_index(NAME)
    assert "created again" in repaired(lake).done[0]
    assert lake.entry().config.columns == lake.entry().config.columns
    assert_whole(lake)


def test_an_entry_that_says_nothing_any_more(lake: Lake) -> None:
    lake.fill(range(3))
    lake.create()
    damage(lake, entry_path(1), "rubbish")
    with pytest.raises(errors.CorruptIndexError, match="force=True"):
        repaired(lake)


def test_a_damaged_older_entry_goes(lake: Lake) -> None:
    made(lake)
    before = lake.entry()
    damage(lake, entry_path(1), "flipped")
    assert not lake.open().verify_index(NAME).ok
    report = lake.open().repair_index(NAME)
    assert "an older version, removed" in report.done[0]
    assert report.left == ()
    assert lake.entry() == before
    assert [record.version for record in lake.open().history(NAME)] == [2]
    assert_whole(lake)


@pytest.mark.parametrize("number", [float("inf"), float("-inf"), float("nan")])
def test_no_entry_is_put_that_does_not_read_back(lake: Lake, number: float) -> None:
    made(lake)
    before = lake.entry()
    log = lake.catalog().index(NAME).log
    with pytest.raises(errors.IndexFormatError, match="nothing was committed"):
        log.commit(lambda base: msgspec.structs.replace(base, summary={"rows": number}))
    assert lake.entry() == before
    assert log.versions() == [1, 2]


@pytest.mark.slow
def test_an_entry_with_the_null_of_a_full_filter_is_read(lake: Lake) -> None:
    """Earlier versions wrote such entries, and could not read them any more."""
    made(lake, global_filter=True)
    entry = lake.entry()
    full = tuple(msgspec.structs.replace(record, ndv=None, fpp=1.0) for record in entry.global_filters)
    storage_of(lake).write(entry_path(2), encode_commit(msgspec.structs.replace(entry, global_filters=full)))
    assert_whole(lake)
    lake.fill([4])
    assert lake.refresh().committed
    assert all(record.ndv for record in lake.entry().global_filters)
    assert_whole(lake)


@pytest.mark.parametrize("damaged", [1, 2, 3])
def test_a_damaged_entry_is_told_by_history_and_verify(lake: Lake, damaged: int) -> None:
    """What can be answered is answered: the other versions, and what the newest readable one says of the table."""
    lake.fill(range(3))
    lake.create()
    lake.fill([3])
    lake.refresh()
    lake.fill([4])
    lake.refresh()
    (Path(lake.location) / NAME / entry_path(damaged)).write_bytes(b"half an en")
    reader = lake.open()
    versions = reader.history(NAME)
    assert [record.version for record in versions] == [3, 2, 1]
    assert [record.state for record in versions] == ["damaged" if n == damaged else "active" for n in (3, 2, 1)]
    assert "cannot read the commit" in str(versions)
    report = reader.verify_index(NAME)
    assert not report.ok
    assert [entry_path(damaged) in found for found in report.corrupt] == [True]
    assert report.version == (2 if damaged == 3 else 3)
    lake.open().repair_index(NAME)
    assert lake.open().verify_index(NAME).ok


def test_a_log_of_which_nothing_can_be_read(lake: Lake) -> None:
    lake.fill(range(3))
    lake.create()
    (Path(lake.location) / NAME / entry_path(1)).write_bytes(b"half an en")
    (record,) = lake.open().history(NAME)
    assert (record.version, record.state) == (1, "damaged")
    report = lake.open().verify_index(NAME)
    assert (report.ok, report.version, len(report.corrupt)) == (False, 1, 1)
    with pytest.raises(errors.IndexNotFoundError):
        lake.open().history("nothing")
