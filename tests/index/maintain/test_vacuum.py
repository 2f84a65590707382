"""Vacuum removes what no one can need. What happens beside other work is in test_vacuum_races.py."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from lakebloom import BloomIndexConfig, col
from lakebloom.errors import IndexNotFoundError
from lakebloom.index.maintain.lifecycle import delete_index, restore_index
from lakebloom.index.maintain.optimize import optimize_index
from lakebloom.storage.local.temporary import temporary_name
from lakebloom.store import log as log_module
from lakebloom.store.commits import entry_path
from tests.index.lake import DAY_MS, NAME, Lake, assert_answers, kept, questions
from tests.index.meddling import Doubled
from tests.store.examples import bumped

if TYPE_CHECKING:
    from pathlib import Path


QUESTIONS = questions([5, 45, 65])


# What goes and what stays


def test_versions_stay_until_their_retention_is_over(lake: Lake) -> None:
    lake.fill(range(3))
    lake.create()
    lake.fill([3])
    lake.refresh()
    optimize_index(lake.catalog(), NAME)
    files = lake.stored()
    report = lake.vacuum(7 * DAY_MS, DAY_MS)
    assert (report.versions_removed, report.files_removed, lake.stored(), lake.versions()) == (0, 0, files, [1, 2, 3])
    lake.age(8)
    report = lake.vacuum(7 * DAY_MS, DAY_MS)
    assert (report.versions_removed, report.files_removed) == (2, len(files) - len(lake.stored()))
    assert lake.versions() == [3]
    assert not lake.orphans()
    assert lake.stored() == lake.entry().paths
    assert_answers(lake, QUESTIONS)


def test_left_overs_go_after_the_grace_period(lake: Lake) -> None:
    lake.fill(range(2))
    lake.create()
    names = ["segments/x/units.arrow", "global/0/x.sbbf", f"segments/x/{temporary_name()}", f"log/{temporary_name()}"]
    for age_days, name in [(0, "segments/y/units.arrow"), *((2, name) for name in names)]:
        path = lake.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"left over")
        os.utime(path, (time.time() - age_days * 86_400,) * 2)
    report = lake.vacuum(0, DAY_MS)
    assert report.files_removed == len(names)
    assert lake.orphans() == {"segments/y/units.arrow"}
    assert not any(lake.path(name).exists() for name in names)
    lake.vacuum(0, 0)
    assert not lake.orphans()


def test_a_damaged_old_entry_does_not_stand_in_the_way(lake: Lake) -> None:
    lake.fill(range(2))
    lake.create()
    lake.fill([2])
    lake.refresh()
    optimize_index(lake.catalog(), NAME)
    lake.path(entry_path(2)).write_bytes(b"{}")
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


# Deleted indexes


@pytest.mark.slow
def test_a_deleted_index_is_removed_after_its_retention(lake: Lake) -> None:
    lake.fill(range(3))
    lake.create()
    delete_index(lake.catalog(), NAME)
    assert lake.vacuum(7 * DAY_MS, DAY_MS).files_removed == 0
    restore_index(lake.catalog(), NAME)
    assert_answers(lake, QUESTIONS)
    delete_index(lake.catalog(), NAME)
    lake.age(8)
    report = lake.vacuum(7 * DAY_MS, DAY_MS)
    assert report.versions_removed == 4
    assert report.files_removed > 0
    assert (lake.stored(), lake.versions()) == (set(), [5]), "all that is left says that it was removed"
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
    lake.age(2)
    report = lake.vacuum(0, DAY_MS)
    assert (report.versions_removed, report.files_removed) == (1, 0)
    assert list(lake.table.parent.joinpath("indexes").rglob("*.*")) == []
    with pytest.raises(IndexNotFoundError, match="no log"):
        lake.vacuum()
    lake.create(BloomIndexConfig(NAME, ["s"]))
    assert lake.entry().version == 1


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
        lake.path(place).symlink_to(home)
    lake.path("segments/up").symlink_to("..")
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
    assert all(lake.path(place).is_symlink() for place in places)
    lake.create()
    assert_answers(lake, QUESTIONS)


def test_an_index_may_be_a_link_itself(lake: Lake, tmp_path: Path) -> None:
    lake.fill(range(2))
    (tmp_path / "disk").mkdir()
    (tmp_path / "indexes").mkdir()
    lake.path("").symlink_to(tmp_path / "disk")
    lake.create()
    assert [record.name for record in lake.open().indexes()] == [NAME]
    assert lake.vacuum(0, 0).files_removed == 0
    assert_answers(lake, QUESTIONS)


# Clocks


def test_a_time_that_lies_far_ahead_is_not_carried_on(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.fill(range(2))
    lake.create()
    log, real = lake.catalog().index(NAME).log, time.time
    for ahead_s in (60, 365 * 86_400):
        monkeypatch.setattr(log_module.time, "time", lambda ahead_s=ahead_s: real() + ahead_s)
        log.commit(bumped)
        monkeypatch.setattr(log_module.time, "time", real)
        log.commit(bumped)
    times = [log.read(version).timestamp_ms for version in lake.versions()]
    assert times[0] < times[1] < times[2], "a clock that is a little ahead: times still grow"
    assert times[3] - times[4] > 364 * DAY_MS, "the year is not carried on"
    assert lake.vacuum(0, 0).versions_removed == 4
    assert lake.versions() == [5]
