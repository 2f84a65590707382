"""Iceberg tables: a lookup in any snapshot is what a scan of it gives, whatever happened to the table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.index.iceberg_lake import K_SPEC, P_SPEC, Column, File, IcebergIndexes, Model
from tests.index.laws.random_history import NAMES, RandomHistory, follow
from tests.tables.formats.iceberg.hand_table import EQUALITY
from tests.tables.formats.iceberg.judge import judged_rows

if TYPE_CHECKING:
    from pathlib import Path


class History(RandomHistory):
    """A random history of a table that is written by hand."""

    def __init__(self, root: Path, seed: int, version: int, *, equality: bool = True) -> None:
        super().__init__(seed)
        self.model, self.equality = Model(root, version=version), equality
        self.next, self.numbers = 0, 3
        self.append()

    @property
    def commits(self) -> int:
        return self.model.hand.number

    def versions(self) -> list[int]:
        return list(self.model.snapshots)

    def columns(self, version: int | None) -> dict[str, type]:
        columns, _, _ = self.model.state(version)
        return {column.name: str if column.kind == "string" else int for column in columns}

    def rows(self, version: int | None) -> list[dict[str, Any]]:
        return self.model.rows(version)

    def judge(self, version: int | None) -> list[dict[str, Any]] | None:
        if any(entry.content == EQUALITY for entry in self.model.state(version)[2]):
            return None
        return judged_rows(self.model.hand.metadata_file, version)

    def _rows(self) -> list[dict[int, Any]]:
        count = self.random.randint(1, 12)
        self.next += count
        return [
            {column.id: self._value(column, key) for column in self.model.columns}
            for key in range(self.next - count, self.next)
        ]

    def _value(self, column: Column, key: int) -> Any:
        if column.id == 3:
            return (None, "a", "b c", "100%")[key // 16 % 4]
        if column.kind == "int":
            return key % 100
        if column.kind == "long":
            return key % 100 + (1 << 40) * (key % 2)
        return None if key % 7 == 0 else f"{column.id}-{key % 20}"

    def append(self) -> None:
        # A file without the column of an identity partition is read with the partition's value.
        migrated = self.model.hand.specs[self.model.spec] == [P_SPEC] and self.random.random() < 0.3
        self.model.append(self._rows(), with_partition=not migrated)

    def _some_rows(self, file: File) -> set[int]:
        return {number for number in range(len(file.rows)) if self.random.random() < 0.4} or {0}

    def delete(self) -> None:
        if not self.model.files:
            return
        file = self.random.choice(self.model.files)
        if self.model.version == 3:
            self.model.delete_vector(file, self._some_rows(file))
            return
        same = (file.entry.spec_id, file.entry.partition)
        others = [each for each in self.model.files if (each.entry.spec_id, each.entry.partition) == same]
        alone = self.random.random() < 0.4
        chosen = [file] if alone else self.random.sample(others, min(2, len(others)))
        self.model.delete_positions([(each, self._some_rows(each)) for each in chosen], alone=alone)

    def delete_equal(self) -> None:
        if not self.equality or not self.model.files:
            return
        file = self.random.choice(self.model.files)
        columns = self.random.sample(self.model.columns, self.random.choice([1, 1, 2]))
        rows = self.random.sample(file.rows, min(2, len(file.rows)))
        values = [tuple(self.model.value(row, column) for column in columns) for row in rows]
        like = file if self.random.random() < 0.7 else None
        self.model.delete_equal([column.id for column in columns], values, like)

    def add_again(self) -> None:
        """Add rows whose keys were deleted before: they are visible, because they are newer."""
        if self.model.files:
            rows = self.random.choice(self.model.files).rows
            self.model.append([{c.id: self.model.value(row, c) for c in self.model.columns} for row in rows])

    def remove(self) -> None:
        if len(self.model.files) > 1:
            self.model.remove(self.random.choice(self.model.files))

    def compact(self) -> None:
        now = [file for file in self.model.files if file.entry.spec_id == self.model.spec]
        if now:
            like = self.random.choice(now).entry.partition
            self.model.compact([file for file in now if file.entry.partition == like])

    def roll_back(self) -> None:
        self.model.roll_back(self.random.choice(list(self.model.snapshots)))

    def expire(self) -> None:
        snapshots = list(self.model.snapshots)
        self.model.expire(set(self.random.sample(snapshots, max(1, len(snapshots) - 3))))

    def rename(self) -> None:
        column = self.random.choice(self.model.columns)
        taken = {other.name for other in self.model.columns}
        column.name = self.random.choice([name for name in NAMES if name not in taken])
        self.model.alter()

    def drop_and_add(self) -> None:
        """Give the name of a column to another one: values that it had before must not come back."""
        dropped = self.random.choice([column for column in self.model.columns if column.id not in (1, 3)])
        self._replace(dropped, dropped.name)

    def _replace(self, dropped: Column, name: str) -> None:
        self.numbers += 1
        kind = self.random.choice(["int", "string"])
        default = None
        if self.model.version == 3 and self.random.random() < 0.6:
            default = 7 if kind == "int" else f"{self.numbers}-3"
        self.model.columns.remove(dropped)
        self.model.columns.append(Column(self.numbers, name, kind, default))
        self.model.alter()

    def promote(self) -> None:
        for column in self.model.columns:
            if column.kind == "int" and column.id != 1:
                column.kind = "long"
                self.model.alter()
                return

    def promote_key(self) -> None:
        key = next(column for column in self.model.columns if column.id == 1)
        if key.kind == "int" and self.random.random() < 0.3:
            key.kind = "long"
            self.model.alter()

    def partition(self) -> None:
        """Write with another spec from now on; files keep theirs."""
        wanted = self.random.choice([[P_SPEC], [], [P_SPEC, K_SPEC], [K_SPEC]])
        known = next((number for number, spec in self.model.hand.specs.items() if spec == wanted), None)
        self.model.spec = self.model.hand.partitioned(wanted) if known is None else known

    def step(self) -> None:
        usual = [self.append, self.append, self.append, self.delete, self.delete, self.delete_equal, self.add_again]
        rare = [self.remove, self.compact, self.roll_back, self.expire, self.rename, self.drop_and_add, self.promote]
        self.random.choice([*usual, *usual, *rare, self.promote_key, self.partition])()


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "version"), [(1, 2), (2, 2), (3, 2), (4, 3), (5, 3), (6, 3)])
def test_a_random_history_equals_its_model_at_every_snapshot(tmp_path: Path, seed: int, version: int) -> None:
    follow(IcebergIndexes(tmp_path, tmp_path / "t"), History(tmp_path / "t", seed, version), 25)


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "version"), [(11, 2), (12, 2), (13, 3)])
def test_the_model_is_right_about_what_pyiceberg_reads(tmp_path: Path, seed: int, version: int) -> None:
    """pyiceberg raises on equality deletes, which the connector for Spark judges; everything else it judges."""
    history = History(tmp_path / "t", seed, version, equality=False)
    follow(IcebergIndexes(tmp_path, tmp_path / "t"), history, 20)
    assert history.judged >= 2 * 10
