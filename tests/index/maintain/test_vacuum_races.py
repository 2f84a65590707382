"""Vacuum beside other work: it never removes what someone reads, writes or is about to write."""

from __future__ import annotations

import math
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from lakebloom import BloomIndexConfig, col
from lakebloom.errors import BuildFailedError, CommitConflictError, IndexNotFoundError, StorageError
from lakebloom.index.maintain.lifecycle import delete_index, restore_index
from lakebloom.index.maintain.optimize import optimize_index
from lakebloom.index.query.reader import Reader
from lakebloom.store import log as log_module
from lakebloom.store.log import Log
from tests.index.lake import DAY_MS, NAME, Lake, assert_answers, kept, questions
from tests.index.meddling import ANY, Doubled, Meanwhile, Unanswered
from tests.store.examples import bumped

if TYPE_CHECKING:
    from lakebloom.store.records import Commit

QUESTIONS = questions([5, 45, 65])


# Racing a build


@pytest.mark.slow
def test_vacuum_at_every_step_of_a_build_leaves_it_intact(lake: Lake) -> None:
    lake.fill(range(3))
    lake.create()
    lake.fill(range(3, 6))
    vacuum = Meanwhile(lambda: lake.vacuum(0, DAY_MS), before=ANY, times=math.inf)
    for mode in ("quick", "full"):
        (lake.table / "f3.parquet").touch()
        report = lake.refresh(mode, catalog=lake.catalog(vacuum))
        assert report.committed
        assert lake.indexed() == lake.uris()
        assert lake.open().verify_index(NAME).ok
        assert_answers(lake, QUESTIONS)
    optimize_index(lake.catalog(vacuum), NAME)
    assert_answers(lake, QUESTIONS)


@pytest.mark.slow
def test_vacuum_in_another_thread(lake: Lake) -> None:
    lake.fill(range(3))
    lake.create()
    stop = threading.Event()
    failures: list[BaseException] = []

    def keep_vacuuming() -> None:
        while not stop.is_set():
            try:
                lake.vacuum(0, DAY_MS)
            except BaseException as error:
                failures.append(error)
                return

    def keep_reading() -> None:
        reader = lake.open()
        while not stop.is_set():
            try:
                assert ("f0", 0) in kept(reader, col("k") == 5)
                assert reader.lookup(NAME, col("k") == 25).num_rows == 1
            except BaseException as error:
                failures.append(error)
                return

    threads = [threading.Thread(target=target) for target in (keep_vacuuming, keep_reading, keep_reading)]
    for thread in threads:
        thread.start()
    for number in range(3, 11):
        lake.fill([number])
        lake.refresh()
        if number % 3 == 0:
            optimize_index(lake.catalog(), NAME)
    stop.set()
    for thread in threads:
        thread.join()
    assert failures == []
    assert lake.indexed() == lake.uris()
    assert lake.open().verify_index(NAME).ok


def test_a_number_is_not_given_twice(lake: Lake) -> None:
    """A writer that is about to commit version 2 sleeps, while others commit 2, 3 and 4 and vacuum them away."""
    lake.fill(range(2))
    lake.create()
    asleep = True

    def change(base: Commit) -> Commit:
        nonlocal asleep
        if asleep:
            asleep = False
            others = lake.catalog().index(NAME).log
            for _ in range(3):
                others.commit(bumped)
            lake.vacuum(0, DAY_MS)
        return bumped(base)

    committed = lake.catalog().index(NAME).log.commit(change)
    assert committed is not None
    assert (committed.version, committed.summary) == (5, {"count": 4})
    assert lake.entry() == committed


def test_a_writer_that_slept_through_a_vacuum_starts_from_the_newest_version(lake: Lake) -> None:
    lake.fill(range(2))
    lake.create()
    sleeper = lake.catalog().index(NAME).log
    assert sleeper.newest().version == 1
    others = lake.catalog().index(NAME).log
    for _ in range(3):
        others.commit(bumped)
    lake.vacuum(0, 0)
    assert lake.versions() == [4]
    committed = sleeper.commit(bumped)
    assert committed is not None
    assert (committed.version, committed.summary) == (5, {"count": 4})


@pytest.mark.slow
def test_a_commit_whose_answer_was_lost_keeps_its_files(lake: Lake) -> None:
    lake.fill(range(2))
    lake.create()
    lake.fill([2])
    with pytest.raises(StorageError, match="no answer"):
        lake.refresh(catalog=lake.catalog(lambda storage: Unanswered(storage, stores=True)))
    assert lake.entry().version == 2
    assert lake.open().verify_index(NAME).ok
    assert lake.indexed() == lake.uris()
    lake.fill([3])
    for mode in ("quick", "full"):
        with pytest.raises(StorageError, match="no answer"):
            lake.refresh(mode, catalog=lake.catalog(lambda storage: Unanswered(storage, stores=False)))
        assert lake.entry().version == 2
        assert lake.orphans(), "it may still arrive"
        assert_answers(lake, QUESTIONS)
    lake.vacuum()
    assert not lake.orphans()


def test_the_same_for_create_and_optimize(lake: Lake) -> None:
    lake.fill(range(2))
    with pytest.raises(StorageError, match="no answer"):
        lake.create(catalog=lake.catalog(lambda storage: Unanswered(storage, stores=True)))
    assert lake.open().verify_index(NAME).ok
    with pytest.raises(StorageError, match="no answer"):
        optimize_index(lake.catalog(lambda storage: Unanswered(storage, stores=True)), NAME)
    assert lake.entry().operation == "optimize"
    assert lake.open().verify_index(NAME).ok
    assert_answers(lake, QUESTIONS)


# Racing a reader


def test_a_reader_of_an_old_version_gets_the_new_one(lake: Lake) -> None:
    lake.fill(range(4))
    lake.create()
    reader = lake.open()
    assert kept(reader, col("k") == 45) == {("f2", 0)}
    optimize_index(lake.catalog(), NAME)
    lake.vacuum()
    assert_answers(lake, QUESTIONS, reader)


def test_a_reader_whose_version_is_vacuumed_while_it_asks(lake: Lake) -> None:
    """Whatever it has read so far, the tile it reads next is gone."""
    lake.fill(range(4))
    lake.create()

    def replace_all() -> None:
        lake.fill([4 + meanwhile.acted])
        lake.refresh("full")
        lake.vacuum()

    meanwhile = Meanwhile(replace_all, before=["read_ranges"], times=3)
    reader = Reader(lake.catalog(meanwhile).index(NAME))
    found = reader.candidates(col("k") == 45)
    assert meanwhile.acted == 3
    assert [path.rpartition("/")[2] for path in found["path"].to_pylist()] == ["f2.parquet"]
    assert reader.snapshot().commit == lake.entry()


def test_a_reader_goes_on_without_looking_back_for_a_minute_at_most(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.fill(range(2))
    lake.create()
    reader = lake.open()
    assert kept(reader, col("k") == 25) == {("f1", 0)}
    lake.fill([2])
    lake.refresh()
    lake.fill([3])
    lake.refresh()
    lake.vacuum()
    assert lake.versions() == [3]
    assert reader.index(NAME).version == 1
    assert reader.lookup(NAME, col("k") == 65).num_rows == 1, "in a file that it does not know, and reads"
    now = time.monotonic() + 61
    monkeypatch.setattr(log_module.time, "monotonic", lambda: now)
    assert reader.index(NAME).version == 3
    assert kept(reader, col("k") == 65) == {("f3", 0)}


# Deleted indexes


def test_a_removed_index_keeps_what_a_new_one_is_being_built_of(lake: Lake) -> None:
    lake.fill(range(3))
    lake.create()
    delete_index(lake.catalog(), NAME)
    lake.vacuum(0, DAY_MS)
    lake.age(2)

    def vacuum() -> None:
        with suppress(IndexNotFoundError):
            lake.vacuum(0, DAY_MS)

    meanwhile = Meanwhile(vacuum, before=("write", "put_if_absent"), times=math.inf)
    lake.create(BloomIndexConfig(NAME, ["s"]), catalog=lake.catalog(meanwhile))
    assert lake.open().verify_index(NAME).ok
    assert_answers(lake, QUESTIONS)


def test_a_restore_in_the_middle_of_a_removal_is_told_so(lake: Lake) -> None:
    lake.fill(range(3))
    lake.create()
    delete_index(lake.catalog(), NAME)

    def restore() -> None:
        with pytest.raises(IndexNotFoundError, match="removed in version 3"):
            restore_index(lake.catalog(), NAME)
        lake.create()

    meanwhile = Meanwhile(restore, before=["delete"])
    lake.vacuum(0, DAY_MS, catalog=lake.catalog(meanwhile))
    assert meanwhile.acted
    assert lake.entry().state == "active", "the new index of that name is left alone"
    assert lake.open().verify_index(NAME).ok
    assert lake.indexed() == lake.uris()
    assert_answers(lake, QUESTIONS)


def test_a_restore_before_a_removal_wins(lake: Lake) -> None:
    lake.fill(range(3))
    lake.create()
    delete_index(lake.catalog(), NAME)
    restore = Meanwhile(lambda: restore_index(lake.catalog(), NAME))
    with pytest.raises(CommitConflictError, match="version 3 was committed meanwhile"):
        lake.vacuum(catalog=lake.catalog(restore))
    assert lake.open().verify_index(NAME).ok
    assert_answers(lake, QUESTIONS)


# Clocks


@pytest.mark.slow
def test_the_clock_of_the_machine_does_not_decide(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """A vacuum whose machine is years ahead, or behind, removes what the store calls old, and nothing else."""
    lake.fill(range(3))
    lake.create()
    delete_index(lake.catalog(), NAME)
    restore_index(lake.catalog(), NAME)
    real = time.time
    for days in (-1000, 1000):
        monkeypatch.setattr(log_module.time, "time", lambda days=days: real() + days * 86_400)
        lake.fill([4 + days])
        vacuum = Meanwhile(lambda: lake.vacuum(7 * DAY_MS, DAY_MS), before=ANY, times=math.inf)
        report = lake.refresh(catalog=lake.catalog(vacuum))
        assert report.committed
        assert lake.open().verify_index(NAME).ok
    assert lake.versions() == [1, 2, 3, 4, 5]
    lake.age(8)
    assert lake.vacuum(7 * DAY_MS, DAY_MS).versions_removed == 4


@pytest.mark.slow
def test_a_build_whose_files_are_gone_is_not_committed(lake: Lake) -> None:
    """Files that nobody names for longer than the grace period go, even if their build was only slow."""
    lake.fill(range(2))
    lake.create()
    lake.fill([2])
    before = lake.entry()

    def vacuum() -> None:
        lake.age(2)
        lake.vacuum(7 * DAY_MS, DAY_MS)

    meanwhile = Meanwhile(vacuum, before=["write"], times=math.inf)
    for act in (lake.refresh, lambda catalog: optimize_index(catalog, NAME)):
        with pytest.raises(BuildFailedError, match="built for it is missing"):
            act(catalog=lake.catalog(meanwhile))
        assert lake.entry() == before
        assert lake.open().verify_index(NAME).ok


def test_a_log_that_is_vacuumed_while_it_is_found(lake: Lake) -> None:
    """The entry that the listing showed is gone when it is read."""
    lake.fill(range(2))
    lake.create()
    index = lake.catalog().index(NAME)
    index.storage.delete("log/latest")
    listings = 0

    class Late(Doubled):
        def list(self, prefix: str):  # type: ignore[no-untyped-def]
            nonlocal listings
            files = [*super().list(prefix)]
            listings += 1
            if listings == 1:
                index.log.commit(bumped)
                lake.vacuum()
            return iter(files)

    log = Log(Late(index.storage), NAME)
    index.storage.delete("log/latest")
    assert log.newest().version == 2
