"""A process dies at every step of what it does to the index of a Delta or Iceberg table, which then goes on changing.

Lookups are right at once, and the next refresh brings the index up to date.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from lakebloom import col
from lakebloom.index.catalog import Catalog
from lakebloom.index.maintain.optimize import optimize_index
from tests.index.laws.changing_tables import TABLES, expected, found
from tests.index.logged_lake import NAME, ordered
from tests.storage.faults import Crash, FaultyStorage, SimulatedCrash

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from lakebloom.storage import Storage
    from tests.index.laws.changing_tables import ChangingTable
    from tests.index.logged_lake import LoggedIndexes

pytestmark = pytest.mark.slow
MOST_ROWS = 20
STEPS = {"full refresh": 5, "replace": 3}
"""How many operations further on the next crash is: ``test_crashes`` goes through all of them for directories."""
ACTIONS: dict[str, Callable[[LoggedIndexes], object]] = {
    "quick refresh": lambda indexes: indexes.refresh("quick"),
    "full refresh": lambda indexes: indexes.refresh("full"),
    "replace": lambda indexes: indexes.create("k", "s", replace=True),
    "optimize": lambda indexes: optimize_index(Catalog(indexes.location, wrap=indexes.wrap), NAME),
}


def dies(indexes: LoggedIndexes, action: str, crash_at: int, mode: Crash) -> bool:
    """Act on a storage that dies; tell whether it did."""

    def faulty(storage: Storage) -> Storage:
        return FaultyStorage(storage, crash_at=crash_at, mode=mode)

    before, indexes.wrap = indexes.wrap, faulty
    try:
        ACTIONS[action](indexes)
    except SimulatedCrash:
        return True
    finally:
        indexes.wrap = before
    return False


def check(table: ChangingTable) -> None:
    """Look up all keys, refresh, and look them up without reading a file that is not indexed."""
    right = expected(table.rows())
    assert found(table.indexes.open()) == right
    table.indexes.refresh()
    lake = table.indexes.open()
    for key, rows in right.items():
        assert ordered(lake.lookup(NAME, col("k") == key, unindexed="error").to_pylist()) == rows


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("kind", TABLES)
def test_lookups_are_right_after_every_crash(tmp_path: Path, kind: str, action: str) -> None:
    table = TABLES[kind](tmp_path)
    crashes = 0
    for mode in Crash:
        for crash_at in itertools.count(1, STEPS.get(action, 1)):
            table.append()
            crashed = dies(table.indexes, action, crash_at, mode)
            if len(table.rows()) > MOST_ROWS:
                table.update_and_clean()
            else:
                table.update()
            check(table)
            crashes += crashed
            if not crashed:
                break
    assert crashes > 5, "there was something to crash"
    assert table.indexes.open().verify_index(NAME).ok
