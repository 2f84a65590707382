"""Delta tables: a lookup in any version is what a scan of that version gives, whatever happened to the table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.index.delta_lake import FEATURES, Column, DeltaIndexes, Model
from tests.index.laws.random_history import NAMES, RandomHistory, follow
from tests.tables.formats.delta.judge import judged_rows

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


JUDGED = "name, judged by deltalake"
"""The mode of a table that deltalake can read: it does not widen types and does not find columns by their ids."""


class History(RandomHistory):
    """A random history of a table that is written by hand."""

    def __init__(self, root: Path, seed: int, mode: str) -> None:
        super().__init__(seed)
        self.root, self.is_judged = root, mode == JUDGED
        features = [feature for feature in FEATURES if not self.is_judged or feature != "typeWidening"]
        self.model = Model(root, mode="name" if self.is_judged else mode, features=features)
        self.next = 0
        self.numbers = 3
        self.append()

    @property
    def commits(self) -> int:
        return len(self.model.versions)

    def versions(self) -> Sequence[int]:
        return range(len(self.model.versions))

    def _number(self, version: int | None) -> int:
        return len(self.model.versions) - 1 if version is None else version

    def columns(self, version: int | None) -> dict[str, type]:
        columns = self.model.versions[self._number(version)][0]
        return {column.name: str if column.kind == "string" else int for column in columns}

    def rows(self, version: int | None) -> list[dict[str, Any]]:
        return self.model.rows(self._number(version))

    def judge(self, version: int | None) -> list[dict[str, Any]] | None:
        return judged_rows(self.root, version=version) if self.is_judged else None

    def _rows(self) -> list[dict[str, Any]]:
        count = self.random.randint(1, 12)
        self.next += count
        stored = [column for column in self.model.columns if column.physical != "p"]
        return [
            {column.physical: self._value(column, key) for column in stored}
            for key in range(self.next - count, self.next)
        ]

    def _value(self, column: Column, key: int) -> Any:
        if column.kind == "integer":
            return key % 100
        if column.kind == "long":
            return key % 100 + (1 << 40) * (key % 2)
        return None if key % 7 == 0 else f"{column.number}-{key % 20}"

    def append(self) -> None:
        self.model.append(self._rows(), self.random.choice(["a", "b c", None, "100%"]))

    def delete(self) -> None:
        if self.model.files:
            file = self.random.choice(self.model.files)
            rows = {number for number in range(len(file.rows)) if self.random.random() < 0.4}
            self.model.delete(file, rows, inline=self.random.random() < 0.5)

    def drop_file(self) -> None:
        if len(self.model.files) > 1:
            self.model.drop_file(self.random.choice(self.model.files))

    def restore(self) -> None:
        self.model.restore(self.random.randrange(len(self.model.versions)))

    def rename(self) -> None:
        column = self.random.choice(self.model.columns)
        taken = {other.name for other in self.model.columns}
        column.name = self.random.choice([name for name in NAMES if name not in taken])
        self.model.alter()

    def drop_and_add(self) -> None:
        """Give the name of a column to another one: values that it had before must not come back."""
        dropped = self.random.choice([column for column in self.model.columns if column.physical != "p"])
        self.numbers += 1
        self.model.columns.remove(dropped)
        added = Column(dropped.name, f"col-{self.numbers}", self.numbers, self.random.choice(["integer", "string"]))
        self.model.columns.append(added)
        self.model.alter()

    def widen(self) -> None:
        for column in [] if self.is_judged else self.model.columns:
            if column.kind == "integer":
                column.kind = "long"
                self.model.alter()
                return

    def checkpoint(self) -> None:
        self.model.hand.checkpoint(self.random.choice([0, 2]))

    def step(self) -> None:
        usual = [self.append, self.append, self.append, self.delete, self.delete, self.drop_file, self.restore]
        self.random.choice([*usual, self.rename, self.drop_and_add, self.widen, self.checkpoint])()


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "mode"), [(1, "name"), (2, "name"), (3, "name"), (4, "id"), (5, "id")])
def test_a_random_history_equals_its_model_at_every_version(tmp_path: Path, seed: int, mode: str) -> None:
    follow(DeltaIndexes(tmp_path, tmp_path / "t"), History(tmp_path / "t", seed, mode), 40)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [11, 12])
def test_the_model_is_right_about_what_deltalake_reads(tmp_path: Path, seed: int) -> None:
    history = History(tmp_path / "t", seed, JUDGED)
    follow(DeltaIndexes(tmp_path, tmp_path / "t"), history, 25)
    assert history.judged >= 2 * 20
