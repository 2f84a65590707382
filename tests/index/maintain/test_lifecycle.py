"""Delete, restore, history, records: what is allowed when, and how it prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lakebloom import BloomIndexConfig, Lakebloom, col, errors
from lakebloom.index.maintain.lifecycle import delete_index, restore_index
from lakebloom.index.maintain.optimize import optimize_index
from tests.index.lake import NAME, Lake, assert_answers, questions

if TYPE_CHECKING:
    from collections.abc import Callable

QUESTIONS = questions([5, 45])

ON_AN_INDEX: dict[str, Callable[[Lake, str], object]] = {
    "delete": lambda lake, name: delete_index(lake.catalog(), name),
    "restore": lambda lake, name: restore_index(lake.catalog(), name),
    "optimize": lambda lake, name: optimize_index(lake.catalog(), name),
    "refresh": lambda lake, name: lake.refresh(),
    "full refresh": lambda lake, name: lake.refresh("full"),
    "vacuum": lambda lake, name: lake.vacuum(),
    "verify": lambda lake, name: lake.open().verify_index(name),
    "index": lambda lake, name: lake.open().index(name),
    "history": lambda lake, name: lake.open().history(name),
    "candidates": lambda lake, name: lake.open().candidates(name, col("k") == 1),
    "lookup": lambda lake, name: lake.open().lookup(name, col("k") == 1),
}


@pytest.mark.parametrize("operation", ON_AN_INDEX)
def test_an_unknown_name_is_an_error(lake: Lake, operation: str) -> None:
    lake.fill(range(2))
    with pytest.raises(errors.IndexNotFoundError, match="there is no index named 'i'"):
        ON_AN_INDEX[operation](lake, NAME)
    assert not lake.table.parent.joinpath("indexes").exists()


@pytest.mark.parametrize(
    "operation", ["delete", "optimize", "refresh", "full refresh", "candidates", "lookup", "verify"]
)
def test_a_deleted_index_does_nothing_but_be_restored(lake: Lake, operation: str) -> None:
    lake.fill(range(2))
    lake.create()
    delete_index(lake.catalog(), NAME)
    files = lake.stored()
    with pytest.raises(errors.IndexStateError, match=r"'i' is deleted; found deleted in version 2.*restore_index"):
        ON_AN_INDEX[operation](lake, NAME)
    assert (lake.entry().version, lake.stored()) == (2, files)


def test_an_active_index_is_not_restored(lake: Lake) -> None:
    lake.fill(range(2))
    lake.create()
    with pytest.raises(errors.IndexStateError, match="it is active, at version 1"):
        restore_index(lake.catalog(), NAME)
    assert lake.entry().version == 1


def test_restore_brings_back_what_was_deleted(lake: Lake) -> None:
    lake.fill(range(3))
    lake.create()
    reader = lake.open()
    before = lake.entry()
    deleted = delete_index(lake.catalog(), NAME)
    assert (deleted.version, deleted.operation, deleted.committed) == (2, "delete", True)
    with pytest.raises(errors.IndexStateError):
        reader.candidates(NAME, col("k") == 1)
    assert reader.index(NAME).state == "deleted"
    restored = restore_index(lake.catalog(), NAME)
    assert (restored.version, restored.operation) == (3, "restore")
    assert lake.entry().segments == before.segments
    assert_answers(lake, QUESTIONS, reader)


def test_a_deleted_index_that_was_vacuumed_frees_its_name(lake: Lake) -> None:
    lake.fill(range(3))
    lake.create()
    with pytest.raises(errors.IndexExistsError, match="active, at version 1"):
        lake.create()
    delete_index(lake.catalog(), NAME)
    with pytest.raises(errors.IndexExistsError, match="deleted, at version 2"):
        lake.create()
    lake.vacuum()
    assert len(lake.open().indexes()) == 0
    lake.create(BloomIndexConfig(NAME, ["s"]))
    assert [record.columns for record in lake.open().indexes()] == [("s",)]
    assert_answers(lake, QUESTIONS)


def test_a_name_is_checked_before_anything_is_read(lake: Lake) -> None:
    for name in ("..", "a/b", "", ".x"):
        with pytest.raises(errors.InvalidArgumentError):
            lake.open().index(name)
        with pytest.raises(errors.InvalidArgumentError):
            lake.open().candidates(name, col("k") == 1)


def test_the_writer_of_every_version_is_recorded(lake: Lake) -> None:
    lake.fill(range(2))
    lake.create()
    delete_index(lake.catalog(), NAME)
    log = lake.catalog().index(NAME).log
    assert {log.read(version).writer for version in (1, 2)} == {log.read(1).writer}
    assert log.read(1).writer.startswith("lakebloom ")


def test_without_a_location_or_a_session() -> None:
    with pytest.raises(errors.InvalidArgumentError, match="location"):
        Lakebloom()


def test_building_needs_spark(lake: Lake) -> None:
    with pytest.raises(errors.UnsupportedSourceError, match="needs Spark"):
        lake.open().refresh_index(NAME)
