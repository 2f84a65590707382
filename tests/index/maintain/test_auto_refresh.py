"""Refreshes in the background: one at a time, once for all writes before it, and nothing that fails is anybody's."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

import msgspec
import pytest

from lakebloom.errors import IndexNotFoundError, StorageError
from lakebloom.index.maintain.auto_refresh import AutoRefresh, Written, indexes_over
from lakebloom.store.records import CatalogRecord
from tests.store.examples import SOURCE, entry

if TYPE_CHECKING:
    from collections.abc import Iterable

WAIT_S = 120


class Indexes:
    """Indexes whose names are the paths of their tables. Each refresh waits until it is let go."""

    def __init__(self, *, held: bool = False) -> None:
        self.begun: list[str] = []
        self.most = self.now = 0
        self.begins = threading.Semaphore(0)
        self.goes_on = threading.Semaphore(0)
        self.held = held
        self.fails: Exception | None = None
        self.background = AutoRefresh(self.find, self.refresh)
        self.background.start()

    def find(self, written: Iterable[Written]) -> list[str]:
        return [path for each in written for path in each.paths]

    def refresh(self, name: str) -> None:
        self.now += 1
        self.most = max(self.most, self.now)
        self.begun.append(name)
        self.begins.release()
        if self.held:
            assert self.goes_on.acquire(timeout=WAIT_S)
        self.now -= 1
        if self.fails is not None:
            raise self.fails

    def wrote(self, *names: str) -> None:
        for name in names:
            self.background.wrote(Written((name,)))


def test_writes_that_come_while_a_refresh_runs_cause_one_more() -> None:
    indexes = Indexes(held=True)
    indexes.wrote("a")
    assert indexes.begins.acquire(timeout=WAIT_S)
    indexes.wrote("a", "b", "a", "b", "a")
    assert not indexes.background.wait(0), "it is at work"
    indexes.goes_on.release(10)
    assert indexes.background.wait(WAIT_S)
    assert (indexes.begun, indexes.most) == (["a", "a", "b"], 1)
    indexes.wrote("b")
    assert indexes.background.wait(WAIT_S)
    assert indexes.begun == ["a", "a", "b", "b"]


def test_stop_drops_what_is_left() -> None:
    indexes = Indexes(held=True)
    indexes.wrote("a")
    assert indexes.begins.acquire(timeout=WAIT_S)
    indexes.wrote("b")
    indexes.background.stop()
    indexes.fails = StorageError("the session is over")
    indexes.goes_on.release(10)
    assert indexes.background.wait(WAIT_S)
    indexes.wrote("c")
    assert indexes.background.wait(WAIT_S)
    assert indexes.begun == ["a"]
    assert indexes.background.problem("a") == "", "nobody is told of what fails because it was ended"
    indexes.fails = None
    indexes.background.start()
    indexes.wrote("c")
    assert indexes.background.wait(WAIT_S)
    assert indexes.begun == ["a", "c"]


def test_a_failure_is_told_once_and_forgotten_after_a_success(caplog: pytest.LogCaptureFixture) -> None:
    indexes = Indexes()
    indexes.fails = StorageError("the disk is full")
    with caplog.at_level(logging.WARNING, "lakebloom"):
        for _ in range(3):
            indexes.wrote("a")
            assert indexes.background.wait(WAIT_S)
    assert len(caplog.records) == 1
    assert "the disk is full" in caplog.text
    assert "the disk is full" in indexes.background.problem("a")
    assert indexes.begun == ["a"] * 3, "each write is another try"
    indexes.fails = IndexNotFoundError("gone")
    indexes.wrote("a")
    assert indexes.background.wait(WAIT_S)
    assert indexes.background.problem("a") == ""


def test_a_find_that_fails_does_not_end_the_work(caplog: pytest.LogCaptureFixture) -> None:
    refreshed: list[str] = []
    answers = iter([OSError("no listing"), ["a"]])

    def find(written: Iterable[Written]) -> list[str]:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[return-value]

    background = AutoRefresh(find, refreshed.append)
    background.start()
    for _ in range(2):
        background.wrote(Written(("a",)))
        assert background.wait(WAIT_S)
    assert refreshed == ["a"]
    assert "no listing" in caplog.text


@pytest.mark.parametrize(
    ("written", "is_over"),
    [
        (Written(("file:///t",)), True),
        (Written(("file:///t/day=1",)), True),
        (Written(("file:///",)), True),
        (Written(("file:///t2",)), False),
        (Written(("s3://t",)), False),
        (Written((), (("DB", "Events"),)), True),
        (Written((), (("db", "other"),)), False),
        (Written(), False),
    ],
)
def test_which_indexes_are_meant(written: Written, is_over: bool) -> None:
    source = msgspec.structs.replace(SOURCE, catalog=CatalogRecord(("db", "events")))
    active = msgspec.structs.replace(entry(), table=source)
    entries = {
        "active": active,
        "deleted": msgspec.structs.replace(active, state="deleted"),
        "damaged": ValueError("damaged"),
    }
    assert indexes_over(entries, [written]) == (["active"] if is_over else [])
