"""Vacuum removes what no one can need, and never what someone reads, writes or is about to write."""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec
import pytest

from lakebloom import BloomIndexConfig, col
from lakebloom.errors import BuildFailedError, CommitConflictError, IndexNotFoundError, StorageError
from lakebloom.index.maintain.lifecycle import delete_index, restore_index
from lakebloom.index.maintain.optimize import optimize_index
from lakebloom.index.query.reader import Reader
from lakebloom.storage.local.temporary import temporary_name
from lakebloom.store import log as log_module
from lakebloom.store.entries import entry_path
from lakebloom.store.log import Log
from tests.index.lake import DAY_MS, NAME, Lake, assert_answers, kept, questions
from tests.index.meddling import Doubled, Meddled, Unanswered

if TYPE_CHECKING:
    from pathlib import Path

    from lakebloom.store.records import Entry

QUESTIONS = questions([5, 45, 65])


def entries(lake: Lake) -> list[int]:
    return lake.catalog().index(NAME).log.versions()


def bumped(base: Entry) -> Entry:
    return msgspec.structs.replace(base, summary={"count": base.summary.get("count", 0) + 1})


def age(lake: Lake, days: float) -> None:
    """Let everything that is stored be so much older: time passes in the store, and there alone."""
    for path in (lake.table.parent / "indexes" / NAME).rglob("*"):
        status = path.stat()
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns - int(days * DAY_MS * 1_000_000)))


def path_of(lake: Lake, file: str) -> Path:
    return lake.table.parent / "indexes" / NAME / file


# What goes and what stays


def test_versions_stay_until_their_retention_is_over(lake: Lake) -> None:
    lake.fill(range(3))
    lake.create()
    lake.fill([3])
    lake.refresh()
    optimize_index(lake.catalog(), NAME)
    files = lake.stored()
    report = lake.vacuum(7 * DAY_MS, DAY_MS)
    assert (report.versions_removed, report.files_removed, lake.stored(), entries(lake)) == (0, 0, files, [1, 2, 3])
    age(lake, 8)
    report = lake.vacuum(7 * DAY_MS, DAY_MS)
    assert (report.versions_removed, report.files_removed) == (2, len(files) - len(lake.stored()))
    assert entries(lake) == [3]
    assert not lake.orphans()
    assert lake.stored() == lake.entry().paths
    assert_answers(lake, QUESTIONS)


def test_left_overs_go_after_the_grace_period(lake: Lake) -> None:
    lake.fill(range(2))
    lake.create()
    names = ["segments/x/units.arrow", "global/0/x.sbbf", f"segments/x/{temporary_name()}", f"log/{temporary_name()}"]
    for age_days, name in [(0, "segments/y/units.arrow"), *((2, name) for name in names)]:
        path = path_of(lake, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"left over")
        os.utime(path, (time.time() - age_days * 86_400,) * 2)
    report = lake.vacuum(0, DAY_MS)
    assert report.files_removed == len(names)
    assert lake.orphans() == {"segments/y/units.arrow"}
    assert not any(path_of(lake, name).exists() for name in names)
    lake.vacuum(0, 0)
    assert not lake.orphans()


def test_a_damaged_old_entry_does_not_stand_in_the_way(lake: Lake) -> None:
    lake.fill(range(2))
    lake.create()
    lake.fill([2])
    lake.refresh()
    optimize_index(lake.catalog(), NAME)
    path_of(lake, entry_path(2)).write_bytes(b"{}")
    assert lake.vacuum().versions_removed == 2
    assert not lake.orphans()
    assert_answers(lake, QUESTIONS)


def test_duplicated_listings_do_no_harm(lake: Lake) -> None:
    lake.fill(range(2))
    catalog = lake.catalog(Doubled)
    lake.create(catalog=catalog)
    lake.fill([2])
    lake.refresh(catalog=catalog)
    before = lake.stored()
    optimize_index(catalog, NAME)
    report = lake.vacuum(catalog=catalog)
    assert (report.versions_removed, report.files_removed) == (2, len(before))
    assert not lake.orphans()
    assert catalog.index(NAME).log.versions() == [3]
    delete_index(catalog, NAME)
    lake.vacuum(catalog=catalog)
    with pytest.raises(IndexNotFoundError):
        lake.entry()


# Racing a build


def test_vacuum_at_every_step_of_a_build_leaves_it_intact(lake: Lake) -> None:
    lake.fill(range(3))
    lake.create()
    lake.fill(range(3, 6))

    def meddle(operation: str) -> None:
        lake.vacuum(0, DAY_MS)

    for mode in ("quick", "full"):
        (lake.table / "f3.parquet").touch()
        report = lake.refresh(mode, catalog=lake.catalog(lambda storage: Meddled(storage, meddle)))
        assert report.committed
        assert lake.indexed() == lake.uris()
        assert lake.open().verify_index(NAME).ok
        assert_answers(lake, QUESTIONS)
    optimize_index(lake.catalog(lambda storage: Meddled(storage, meddle)), NAME)
    assert_answers(lake, QUESTIONS)


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

    def change(base: Entry) -> Entry:
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
    assert entries(lake) == [4]
    committed = sleeper.commit(bumped)
    assert committed is not None
    assert (committed.version, committed.summary) == (5, {"count": 4})


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
    rounds = 0

    def meddle(operation: str) -> None:
        nonlocal rounds
        if operation == "read_ranges" and rounds < 3:
            rounds += 1
            lake.fill([4 + rounds])
            lake.refresh("full")
            lake.vacuum()

    reader = Reader(lake.catalog(lambda storage: Meddled(storage, meddle)).index(NAME))
    found = reader.candidates(col("k") == 45)
    assert rounds == 3
    assert [candidate.file.uri.rpartition("/")[2] for candidate in found] == ["f2.parquet"]
    assert reader.snapshot().entry == lake.entry()


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
    assert entries(lake) == [3]
    assert reader.index(NAME).version == 1
    assert reader.lookup(NAME, col("k") == 65).num_rows == 1, "in a file that it does not know, and reads"
    now = time.monotonic() + 61
    monkeypatch.setattr(log_module.time, "monotonic", lambda: now)
    assert reader.index(NAME).version == 3
    assert kept(reader, col("k") == 65) == {("f3", 0)}


# Deleted indexes


def test_a_deleted_index_is_removed_after_its_retention(lake: Lake) -> None:
    lake.fill(range(3))
    lake.create()
    delete_index(lake.catalog(), NAME)
    assert lake.vacuum(7 * DAY_MS, DAY_MS).files_removed == 0
    restore_index(lake.catalog(), NAME)
    assert_answers(lake, QUESTIONS)
    delete_index(lake.catalog(), NAME)
    age(lake, 8)
    report = lake.vacuum(7 * DAY_MS, DAY_MS)
    assert report.versions_removed == 4
    assert report.files_removed > 0
    assert (lake.stored(), entries(lake)) == (set(), [5]), "all that is left says that it was removed"
    with pytest.raises(IndexNotFoundError, match="removed in version 5"):
        lake.vacuum(0, DAY_MS)
    lake.create(BloomIndexConfig(NAME, ["s"]))
    assert lake.entry().version == 6, "numbers go on: whoever knew the old index cannot mistake it for this one"
    assert_answers(lake, QUESTIONS)


def test_the_last_trace_of_a_removed_index_goes_after_the_grace_period(lake: Lake) -> None:
    lake.fill(range(3))
    lake.create()
    delete_index(lake.catalog(), NAME)
    lake.vacuum(0, DAY_MS)
    age(lake, 2)
    report = lake.vacuum(0, DAY_MS)
    assert (report.versions_removed, report.files_removed) == (1, 0)
    assert list(lake.table.parent.joinpath("indexes").rglob("*.*")) == []
    with pytest.raises(IndexNotFoundError, match="no log"):
        lake.vacuum()
    lake.create(BloomIndexConfig(NAME, ["s"]))
    assert lake.entry().version == 1


def test_a_removed_index_keeps_what_a_new_one_is_being_built_of(lake: Lake) -> None:
    lake.fill(range(3))
    lake.create()
    delete_index(lake.catalog(), NAME)
    lake.vacuum(0, DAY_MS)
    age(lake, 2)

    def meddle(operation: str) -> None:
        if operation in ("write", "put_if_absent"):
            with suppress(IndexNotFoundError):
                lake.vacuum(0, DAY_MS)

    lake.create(BloomIndexConfig(NAME, ["s"]), catalog=lake.catalog(lambda storage: Meddled(storage, meddle)))
    assert lake.open().verify_index(NAME).ok
    assert_answers(lake, QUESTIONS)


def test_others_notice_that_a_name_has_a_new_owner(lake: Lake) -> None:
    lake.fill(range(3))
    lake.create(BloomIndexConfig(NAME, ["k"]))
    reader, writer = lake.open(), lake.catalog()
    assert kept(reader, col("k") == 5) == {("f0", 0)}
    writer.index(NAME).log.newest()
    delete_index(lake.catalog(), NAME)
    lake.vacuum()
    with pytest.raises(IndexNotFoundError):
        reader.candidates(NAME, col("k") == 5)
    lake.create(BloomIndexConfig(NAME, ["s"]))
    assert reader.index(NAME).columns == ("s",)
    assert kept(reader, col("s") == "s5") == {("f0", 0)}
    assert delete_index(writer, NAME).version == 5


def test_a_restore_in_the_middle_of_a_removal_is_told_so(lake: Lake) -> None:
    lake.fill(range(3))
    lake.create()
    delete_index(lake.catalog(), NAME)
    refused = False

    def meddle(operation: str) -> None:
        nonlocal refused
        if operation == "delete" and not refused:
            refused = True
            with pytest.raises(IndexNotFoundError, match="removed in version 3"):
                restore_index(lake.catalog(), NAME)
            lake.create()

    lake.vacuum(0, DAY_MS, catalog=lake.catalog(lambda storage: Meddled(storage, meddle)))
    assert refused
    assert lake.entry().state == "active", "the new index of that name is left alone"
    assert lake.open().verify_index(NAME).ok
    assert lake.indexed() == lake.uris()
    assert_answers(lake, QUESTIONS)


def test_a_restore_before_a_removal_wins(lake: Lake) -> None:
    lake.fill(range(3))
    lake.create()
    delete_index(lake.catalog(), NAME)
    restored = False

    def meddle(operation: str) -> None:
        nonlocal restored
        if operation == "put_if_absent" and not restored:
            restored = True
            restore_index(lake.catalog(), NAME)

    with pytest.raises(CommitConflictError, match="version 3 came meanwhile"):
        lake.vacuum(catalog=lake.catalog(lambda storage: Meddled(storage, meddle)))
    assert lake.open().verify_index(NAME).ok
    assert_answers(lake, QUESTIONS)


# Links


def test_nothing_behind_a_link_is_touched(lake: Lake, tmp_path: Path) -> None:
    lake.fill(range(2))
    lake.create()
    home = tmp_path / "home"
    (home / "docs").mkdir(parents=True)
    for name in ("thesis.tex", "docs/tax.pdf", "00000000000000000009.json"):
        (home / name).write_text("mine")
        os.utime(home / name, (1, 1))
    places = ("segments/zz", "global", f"segments/{lake.entry().segments[0].id}/zz")
    for place in places:
        path_of(lake, place).symlink_to(home)
    path_of(lake, "segments/up").symlink_to("..")
    api = lake.open()
    assert api.verify_index(NAME).ok
    assert api.indexes()[0].state == "active"
    lake.vacuum()
    delete_index(lake.catalog(), NAME)
    lake.vacuum()
    assert sorted(path.name for path in home.rglob("*")) == [
        "00000000000000000009.json",
        "docs",
        "tax.pdf",
        "thesis.tex",
    ]
    assert all(path_of(lake, place).is_symlink() for place in places)
    lake.create()
    assert_answers(lake, QUESTIONS)


def test_an_index_may_be_a_link_itself(lake: Lake, tmp_path: Path) -> None:
    lake.fill(range(2))
    (tmp_path / "disk").mkdir()
    (tmp_path / "indexes").mkdir()
    path_of(lake, "").symlink_to(tmp_path / "disk")
    lake.create()
    assert [record.name for record in lake.open().indexes()] == [NAME]
    assert lake.vacuum(0, 0).files_removed == 0
    assert_answers(lake, QUESTIONS)


# Clocks


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

        def meddle(operation: str) -> None:
            lake.vacuum(7 * DAY_MS, DAY_MS)

        report = lake.refresh(catalog=lake.catalog(lambda storage: Meddled(storage, meddle)))
        assert report.committed
        assert lake.open().verify_index(NAME).ok
    assert entries(lake) == [1, 2, 3, 4, 5]
    age(lake, 8)
    assert lake.vacuum(7 * DAY_MS, DAY_MS).versions_removed == 4


def test_a_time_that_lies_far_ahead_is_not_carried_on(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.fill(range(2))
    lake.create()
    log, real = lake.catalog().index(NAME).log, time.time
    for ahead_s in (60, 365 * 86_400):
        monkeypatch.setattr(log_module.time, "time", lambda ahead_s=ahead_s: real() + ahead_s)
        log.commit(bumped)
        monkeypatch.setattr(log_module.time, "time", real)
        log.commit(bumped)
    times = [log.read(version).timestamp_ms for version in entries(lake)]
    assert times[0] < times[1] < times[2], "a clock that is a little ahead: times still grow"
    assert times[3] - times[4] > 364 * DAY_MS, "the year is not carried on"
    assert lake.vacuum(0, 0).versions_removed == 4
    assert entries(lake) == [5]


def test_a_build_whose_files_are_gone_is_not_committed(lake: Lake) -> None:
    """Files that nobody names for longer than the grace period go, even if their build was only slow."""
    lake.fill(range(2))
    lake.create()
    lake.fill([2])
    before = lake.entry()

    def meddle(operation: str) -> None:
        if operation == "write":
            age(lake, 2)
            lake.vacuum(7 * DAY_MS, DAY_MS)

    for act in (lake.refresh, lambda catalog: optimize_index(catalog, NAME)):
        with pytest.raises(BuildFailedError, match="built for it is missing"):
            act(catalog=lake.catalog(lambda storage: Meddled(storage, meddle)))
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
