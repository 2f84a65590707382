"""The status of an index is what a comparison with its table by hand gives."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakebloom.errors import IndexNotFoundError, StorageError
from lakebloom.index.maintain.lifecycle import delete_index
from lakebloom.store.log import Log
from tests.index.lake import NAME, Lake


def test_an_index_that_is_up_to_date(lake: Lake) -> None:
    lake.fill(range(4))
    lake.create()
    (status,) = lake.open().status()
    assert (status.name, status.state, status.coverage, status.files, status.lag) == (NAME, "active", 1.0, 4, 0)
    assert status.size_bytes == lake.open().index(NAME).size_bytes
    assert status.refreshed_ms == lake.entry().timestamp_ms
    assert 0 < status.fpp_measured <= 2 * status.fpp
    assert not status.is_stale()


def test_files_that_came_changed_and_went(lake: Lake) -> None:
    lake.fill(range(4))
    lake.create()
    lake.fill([4, 5], rows=20)
    lake.fill([1], rows=25)
    (lake.table / "f0.parquet").unlink()
    (status,) = lake.open().status(NAME)
    assert (status.files_new, status.files_changed, status.files_gone, status.lag) == (2, 1, 1, 3)
    assert status.coverage == 2 / 5
    assert status.is_stale()
    assert status.is_stale(2)
    assert not status.is_stale(3)
    lake.refresh("full")
    (status,) = lake.open().status(NAME)
    assert (status.coverage, status.lag, status.files_gone) == (1.0, 0, 0)


def test_a_deleted_index_is_not_in_use(lake: Lake) -> None:
    lake.fill(range(2))
    lake.create()
    delete_index(lake.catalog(), NAME)
    assert list(lake.open().status()) == []
    assert lake.open().status(NAME)[0].state == "deleted"


def test_a_table_that_is_gone_is_a_problem(lake: Lake) -> None:
    lake.fill(range(2))
    lake.create()
    for path in lake.table.iterdir():
        path.unlink()
    lake.table.rmdir()
    (status,) = lake.open().status(NAME)
    assert (status.files, status.files_gone) == (0, 2)
    assert status.is_stale(1_000_000)


def test_an_index_that_cannot_be_read_says_why(lake: Lake) -> None:
    lake.fill(range(2))
    lake.create()
    for path in lake.stored():
        if path.endswith("files.arrow"):
            (Path(lake.location) / NAME / path).write_bytes(b"not Arrow")
    (status,) = lake.open().status(NAME)
    assert status.problem
    assert status.is_stale(1_000_000)
    assert "problem" in str(status)


def test_a_damaged_log_is_a_state(lake: Lake) -> None:
    lake.fill(range(2))
    lake.create()
    (Path(lake.location) / NAME / "log" / f"{1:020d}.json").write_bytes(b"not JSON")
    (status,) = lake.open().status(NAME)
    assert status.state == "damaged"
    assert status.is_stale()


def test_what_is_left_of_a_removed_index_is_no_index(lake: Lake) -> None:
    lake.fill(range(2))
    lake.create()
    lake.open().delete_index(NAME, force=True)
    assert list(lake.open().status()) == []
    with pytest.raises(IndexNotFoundError):
        lake.open().status(NAME)


def test_a_store_that_does_not_answer_is_a_problem(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.fill(range(2))
    lake.create()

    def fail(self: Log) -> None:
        raise StorageError("the store does not answer")

    monkeypatch.setattr(Log, "newest", fail)
    (status,) = lake.open().status()
    assert (status.state, status.is_stale()) == ("unreadable", True)
    assert "does not answer" in str(status)
