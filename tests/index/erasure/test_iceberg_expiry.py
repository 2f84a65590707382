"""From when on the snapshots of an Iceberg table expire, by the table's own settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lakebloom import Lakebloom
from tests.index.iceberg_lake import IcebergIndexes, Model
from tests.index.logged_lake import NAME

DAY_MS = 24 * 3600 * 1000
AGE, KEPT = "history.expire.max-snapshot-age-ms", "history.expire.min-snapshots-to-keep"


class Table:
    """One whose key 7 is in the first two snapshots, and key 8 in the last two."""

    def __init__(self, home: Path) -> None:
        self.model = Model(home / "t")
        self.model.append([{1: 7, 2: "a", 3: "a"}])
        self.model.append([{1: 8, 2: "b", 3: "a"}])
        self.indexes = IcebergIndexes(home, home / "t")
        self.indexes.create("k")
        self.second = self.model.hand.current
        self.model.remove(self.model.files[0])

    def set(self, **properties: str) -> None:
        self.model.hand.metadata["properties"] = {key: value for key, value in properties.items() if value}
        self.model.hand.write_metadata()

    def expires(self) -> list[Any]:
        """From when on, in milliseconds after the last snapshot that holds the key."""
        lake: Lakebloom = self.indexes.open()
        plan = lake.erasure_plan(NAME, [7])
        (time_ms,) = {
            each["timestamp-ms"] for each in self.model.hand.metadata["snapshots"] if each["snapshot-id"] == self.second
        }
        found = [each.removable_ms for each in (*plan.held_by, *plan.snapshots)]
        assert plan.steps[-1].not_before_ms is None, "the statement names a time of its own"
        return [None if each is None else each - time_ms for each in found]


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(tmp_path)


def test_a_file_goes_with_the_last_snapshot_that_has_it(table: Table) -> None:
    assert table.expires() == [5 * DAY_MS] * 2
    table.set(**{AGE: "1000"})
    assert table.expires() == [1000] * 2


@pytest.mark.parametrize(
    "properties", [{KEPT: "2"}, {KEPT: "many"}, {AGE: "a week"}, {AGE: "-1"}, {"gc.enabled": "false"}, {AGE: "9" * 30}]
)
def test_nothing_is_said_where_more_decides(table: Table, properties: dict[str, str]) -> None:
    table.set(**properties)
    assert table.expires() == [None, None]


def test_branches_and_tags_keep_their_snapshots(table: Table) -> None:
    table.model.hand.refer("kept", "tag", table.second)
    lake = table.indexes.open()
    assert [each.removable_ms for each in lake.erasure_plan(NAME, [7]).snapshots] == [None]
    del table.model.hand.metadata["refs"]["kept"]
    table.model.hand.refer("side", "branch")
    table.model.hand.metadata["refs"]["side"]["min-snapshots-to-keep"] = 3
    table.model.hand.write_metadata()
    assert [each.removable_ms for each in lake.erasure_plan(NAME, [7]).snapshots] == [None]


def test_what_is_current_does_not_expire(table: Table) -> None:
    plan = table.indexes.open().erasure_plan(NAME, [8])
    assert [each.removable_ms for each in (*plan.held_by, *plan.snapshots)] == [None, None]
