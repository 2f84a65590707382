"""A long random history of a Delta table, with refreshes, lookups, time travel and erasure checks in between."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.fuzz.long_history import COMMITS, MOST_FILES, SEED, follow_long
from tests.index.delta_lake import DeltaIndexes
from tests.index.erasure.test_delta import by_version, expected
from tests.index.laws.test_delta import JUDGED, History
from tests.index.logged_lake import NAME

if TYPE_CHECKING:
    from pathlib import Path

    from lakebloom import Lakebloom


class LongHistory(History):
    """A history that also compacts and overwrites, and whose table stays small."""

    def compact(self) -> None:
        """Write two files of one partition as one, without their deleted rows."""
        files = self.model.files
        pairs = [(one, two) for one in files for two in files if one is not two and one.partition == two.partition]
        if not pairs:
            return
        one, two = self.random.choice(pairs)
        stored = {column.physical for column in self.model.columns}  # values of dropped columns end here
        rows = [
            {name: value for name, value in row.items() if name in stored}
            for file in (one, two)
            for number, row in enumerate(file.rows)
            if number not in file.deleted
        ]
        removed = [self.model.hand.remove(file.added) for file in (one, two)]
        files.remove(one)
        files.remove(two)
        if rows:
            self.model.commit(*removed, self.model.write(rows, one.partition))
        else:
            self.model.commit(*removed)

    def overwrite(self) -> None:
        """Replace all files by one."""
        removed = [self.model.hand.remove(file.added) for file in self.model.files]
        self.model.files.clear()
        self.model.commit(*removed, self.model.write(self._rows(), "a"))

    def step(self) -> None:
        if len(self.model.files) > MOST_FILES:
            self.random.choice([self.compact, self.drop_file, self.overwrite])()
        elif self.random.random() < 0.2:
            self.random.choice([self.compact, self.compact, self.overwrite])()
        else:
            super().step()


def check_erasure(lake: Lakebloom, history: LongHistory) -> None:
    """Compare the rows of some keys in all versions with the model."""
    wanted = {history.random.randrange(100) for _ in range(3)}
    check = lake.erasure_plan(NAME, wanted, column="k").check(history.random.choice(["data", "index"]))
    right = expected(history.model, wanted)
    assert by_version(check) == right
    assert check.erased == (not right)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["name", "id", JUDGED])
def test_a_long_history_equals_a_scan_at_every_step(tmp_path: Path, mode: str) -> None:
    history = LongHistory(tmp_path / "t", SEED, mode)
    indexes = DeltaIndexes(tmp_path, tmp_path / "t")
    follow_long(indexes, history, lambda lake: check_erasure(lake, history))
    assert history.judged >= (COMMITS if mode == JUDGED else 0)
