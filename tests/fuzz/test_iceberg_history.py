"""A long random history of an Iceberg table, with refreshes, lookups, time travel and erasure checks in between.

All kinds of deletes are in it. pyiceberg judges every snapshot without equality deletes, which it does not read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lakebloom.tables.formats.iceberg.history import iceberg_history
from lakebloom.tables.formats.iceberg.table import IcebergTable, Source
from tests.fuzz.long_history import COMMITS, MOST_FILES, SEED, follow_long
from tests.index.erasure.test_iceberg import by_snapshot, expected
from tests.index.iceberg_lake import IcebergIndexes
from tests.index.laws.test_iceberg import History
from tests.index.logged_lake import NAME

if TYPE_CHECKING:
    from pathlib import Path

    from lakebloom import Lakebloom

MOST_SNAPSHOTS = 30


class LongHistory(History):
    """A history whose table stays small."""

    def step(self) -> None:
        if len(self.model.snapshots) > MOST_SNAPSHOTS:
            self.expire()
        elif len(self.model.files) + len(self.model.deletes) > 2 * MOST_FILES:
            self.model.rewrite()
        else:
            super().step()


def check_erasure(lake: Lakebloom, history: LongHistory) -> None:
    """Compare the rows of some keys in all snapshots with the model."""
    wanted = {history.random.randrange(100) for _ in range(3)}
    table = IcebergTable(Source(directory=f"file://{history.model.hand.root}"))
    order = [each.version for each in iceberg_history(table).versions]
    check = lake.erasure_plan(NAME, wanted, column="k").check(history.random.choice(["data", "index"]))
    right = expected(history.model, wanted)
    assert by_snapshot(check, order) == right
    # Files of snapshots that were expired are still there, and may hold keys.
    assert check.erased == (not check.held_by)
    assert not (right and check.erased)


@pytest.mark.slow
@pytest.mark.parametrize("version", [2, 3])
def test_a_long_history_equals_a_scan_at_every_step(tmp_path: Path, version: int) -> None:
    history = LongHistory(tmp_path / "t", SEED, version)
    indexes = IcebergIndexes(tmp_path, tmp_path / "t")
    follow_long(indexes, history, lambda lake: check_erasure(lake, history))
    assert history.judged >= COMMITS // 10
