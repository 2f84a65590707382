"""Tables of Delta and Iceberg that are changed while they are read: every answer is that of one version."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from lakebloom import col
from lakebloom.errors import NotFoundError
from tests.index.laws.changing_tables import CHANGES, TABLES, Moment, expected, found
from tests.index.logged_lake import NAME, ordered

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lakebloom.index.build.refresh import RefreshMode
    from tests.index.laws.changing_tables import ChangingTable

pytestmark = pytest.mark.slow


def moments(home: Path, kind: str, change: str) -> Iterator[tuple[ChangingTable, Moment]]:
    """Yield the same table again and again, which is changed at a later moment each time, until none is left."""
    for number in itertools.count(1):
        table = TABLES[kind](home / str(number))
        with pytest.MonkeyPatch.context() as monkeypatch:
            moment = Moment(monkeypatch, number, getattr(table, change))
            yield table, moment
        if not moment.reached:
            assert number > 3, "there was something to change"
            return


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("kind", TABLES)
def test_a_lookup_answers_for_one_version(tmp_path: Path, kind: str, change: str) -> None:
    for table, moment in moments(tmp_path, kind, change):
        before = expected(table.rows())
        lake = table.indexes.open()
        rows = ordered(lake.lookup(NAME, col("k") == 1).to_pylist())
        moment.pass_by()
        after = expected(table.rows())
        assert rows in (before[1], after[1])
        assert found(lake) == after
        assert found(table.indexes.open()) == after


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("kind", TABLES)
def test_time_travel_gives_the_version_or_says_that_it_is_gone(tmp_path: Path, kind: str, change: str) -> None:
    for table, moment in moments(tmp_path, kind, change):
        before = expected(table.rows())
        lake = table.indexes.open()
        try:
            rows = lake.lookup(NAME, col("k") == 1, version=table.before)
        except NotFoundError:
            assert change == "update_and_clean"
        else:
            assert ordered(rows.to_pylist()) == before[1]
        moment.pass_by()
        assert found(lake) == expected(table.rows())


@pytest.mark.parametrize("mode", ["quick", "full"])
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("kind", TABLES)
def test_a_refresh_beside_a_writer(tmp_path: Path, kind: str, change: str, mode: RefreshMode) -> None:
    """It may miss what came meanwhile and reject what is gone. Lookups are right, and the next refresh finds it all."""
    for table, moment in moments(tmp_path, kind, change):
        table.append()
        table.indexes.refresh(mode)
        moment.pass_by()
        assert found(table.indexes.open()) == expected(table.rows())
        table.indexes.refresh()
        lake = table.indexes.open()
        for key, rows in expected(table.rows()).items():
            assert ordered(lake.lookup(NAME, col("k") == key, unindexed="error").to_pylist()) == rows


@pytest.mark.parametrize("kind", TABLES)
def test_an_erasure_beside_a_writer(tmp_path: Path, kind: str) -> None:
    """Rows that are there before and after are never called erased, and are counted in one version."""
    for table, moment in moments(tmp_path, kind, "update_and_clean"):
        before = expected(table.rows())
        check = table.indexes.open().erasure_plan(NAME, [1], column="k").check("index")
        moment.pass_by()
        assert check.rows in (len(before[1]), len(expected(table.rows())[1]))
        assert not check.erased
        assert check.versions_holding > 0
