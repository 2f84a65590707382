"""An index in the place of another: the old one answers until the commit, and nothing of one gets into the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lakebloom import BloomIndexConfig, col, errors
from lakebloom.index.build.create import create_index, price_index
from lakebloom.index.build.refresh import refresh_index
from lakebloom.index.maintain.lifecycle import delete_index
from lakebloom.index.maintain.optimize import optimize_index
from lakebloom.index.maintain.repair import remove_index
from tests.index.lake import NAME, Lake, assert_answers, kept, questions
from tests.index.local_builder import LocalBuilder, source_of, workshop

if TYPE_CHECKING:
    from collections.abc import Callable

OTHER = BloomIndexConfig(NAME, ["s"], fpp=1e-4, granularity="row_group")
QUESTIONS = questions([25])[:3]


def during_the_build(lake: Lake, act: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let somebody act once, after the segments of the next build are written and before they are committed."""
    build = LocalBuilder.build
    acted: list[bool] = []

    def built(self, plan, source, groups, progress):  # type: ignore[no-untyped-def]
        result = build(self, plan, source, groups, progress)
        if not acted:
            acted.append(True)
            act()
        return result

    monkeypatch.setattr(LocalBuilder, "build", built)


def replaced(lake: Lake, config: BloomIndexConfig = OTHER) -> None:
    lake.create(config, replace=True)


def test_one_commit_replaces_an_index(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.fill(range(4))
    lake.create()
    reader = lake.open()
    assert kept(reader, col("k") == 25) == {("f1", 0)}
    seen: list[set[tuple[str, int]]] = []
    during_the_build(lake, lambda: seen.append(kept(reader, col("k") == 25)), monkeypatch)
    replaced(lake)
    assert seen == [{("f1", 0)}], "the old one goes on answering"
    entry = lake.entry()
    assert (entry.version, entry.operation, entry.state) == (2, "replace", "active")
    assert [column.path for column in entry.config.columns] == [("s",)]
    assert kept(reader, col("s") == "s25") == {("f1", 0)}, "a reader that knows the old one notices"
    assert_answers(lake, QUESTIONS)
    lake.vacuum()
    assert not lake.orphans()
    assert lake.open().status(NAME)[0].refreshed_ms == entry.timestamp_ms


@pytest.mark.parametrize("state", ["none", "active", "deleted", "removed", "damaged"])
def test_whatever_is_there(lake: Lake, state: str) -> None:
    lake.fill(range(2))
    if state != "none":
        lake.create()
    if state == "deleted":
        delete_index(lake.catalog(), NAME)
    if state == "removed":
        remove_index(lake.catalog(), NAME)
    if state == "damaged":
        (log,) = (lake.table.parent / "indexes" / NAME / "log").glob("0*.json")
        log.chmod(0o600)
        log.write_bytes(b"rubbish")
    replaced(lake)
    assert lake.entry().operation == ("replace" if state in ("active", "deleted") else "create")
    assert lake.indexed() == lake.uris()
    assert_answers(lake, QUESTIONS)


def test_a_build_that_fails_leaves_the_old_one(lake: Lake) -> None:
    lake.fill(range(2))
    lake.create()
    before, stored = lake.entry(), lake.stored()
    with pytest.raises(errors.ColumnNotFoundError):
        replaced(lake, BloomIndexConfig(NAME, ["nowhere"]))
    with pytest.raises(errors.IndexTooLargeError):
        lake.create(OTHER, replace=True, max_index_bytes=1)
    assert (lake.entry(), lake.stored()) == (before, stored)


def test_what_it_would_cost(lake: Lake) -> None:
    lake.fill(range(2))
    lake.create()
    shop, table = workshop(lake.catalog()), source_of(lake.table, lake.types)
    with pytest.raises(errors.IndexExistsError, match="replace=True"):
        price_index(shop, table, OTHER)
    assert price_index(shop, table, OTHER, replace=True).files == 2
    delete_index(lake.catalog(), NAME)
    with pytest.raises(errors.IndexExistsError, match="restore_index"):
        create_index(shop, table, OTHER)


# Others at work


@pytest.mark.parametrize("mode", ["quick", "full"])
@pytest.mark.parametrize("has_files", [True, False], ids=["with new files", "without"])
def test_a_refresh_meets_a_new_index_and_starts_again(
    lake: Lake, mode: str, has_files: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.fill(range(3))
    lake.create(BloomIndexConfig(NAME, ["k", "n"], fpp=0.01, global_filter=True))
    lake.fill([3, 4])
    (lake.table / "f0.parquet").unlink()
    during_the_build(lake, lambda: replaced(lake, OTHER), monkeypatch)
    if has_files:
        lake.fill([5])
    refresh_index(workshop(lake.catalog(), global_max_bytes=1 << 16), NAME, mode)  # type: ignore[arg-type]
    entry = lake.entry()
    assert [column.path for column in entry.config.columns] == [("s",)], "the new one stays what it is"
    assert {segment.types for segment in entry.segments} == {("string",)}
    assert entry.global_filters == ()
    assert lake.indexed() == lake.uris()
    assert_answers(lake, QUESTIONS)
    lake.vacuum()
    assert not lake.orphans()


def test_a_new_index_does_not_become_the_table_of_the_old_one(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """A refresh without new files records what the catalog says of its table: not in another index."""
    lake.fill(range(2))
    lake.create()
    elsewhere = Lake(lake.table.parent / "other", lake.types, lake.location)
    elsewhere.fill(range(7, 9))
    lake.fill([2])
    during_the_build(lake, lambda: elsewhere.create(OTHER, replace=True), monkeypatch)
    lake.refresh()
    assert lake.entry().table.locations == (f"file://{elsewhere.table}",)
    assert elsewhere.indexed() == elsewhere.uris()
    assert_answers(elsewhere, QUESTIONS)


def test_optimize_gives_way(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.fill(range(2))
    lake.create(tasks=1)
    lake.fill([2])
    lake.refresh()
    catalog = lake.catalog()
    log = catalog.index(NAME).log
    commit = log.commit

    def late(change):  # type: ignore[no-untyped-def]
        replaced(lake)
        return commit(change)

    monkeypatch.setattr(log, "commit", late)
    with pytest.raises(errors.CommitConflictError, match="another index replaced it meanwhile"):
        optimize_index(catalog, NAME)
    assert lake.entry().operation == "replace"
    assert_answers(lake, QUESTIONS)


@pytest.mark.slow
def test_what_others_committed_meanwhile_is_replaced(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    for act in (lake.refresh, lambda: delete_index(lake.catalog(), NAME), lambda: replaced(lake, OTHER)):
        lake.fill(range(2))
        lake.create(replace=True)
        lake.fill([2, 3])
        with monkeypatch.context() as patch:
            during_the_build(lake, act, patch)
            lake.create(BloomIndexConfig(NAME, ["k"], fpp=0.01), replace=True)
        entry = lake.entry()
        assert (entry.operation, entry.state) == ("replace", "active")
        assert [column.path for column in entry.config.columns] == [("k",)]
        assert_answers(lake, QUESTIONS)


def test_an_index_that_is_removed_meanwhile(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.fill(range(2))
    lake.create()
    during_the_build(lake, lambda: remove_index(lake.catalog(), NAME), monkeypatch)
    with pytest.raises(errors.CommitConflictError, match="removed"):
        replaced(lake)
    with pytest.raises(errors.IndexNotFoundError):
        lake.entry()
    assert lake.stored() == set(), "nothing of the build is left"
    replaced(lake)
    assert_answers(lake, QUESTIONS)
