"""Long random histories of tables that deltalake writes. It reads them, too, and says what every version holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.fuzz.long_history import MOST_FILES, SEED, follow_long
from tests.fuzz.random_rows import KEYS, random_rows, some_keys
from tests.index.delta_lake import DeltaIndexes
from tests.index.laws.random_history import NAMES, RandomHistory
from tests.tables.formats.delta.judge import judged_rows

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

MAPPING = "delta.columnMapping.mode"


class WrittenHistory(RandomHistory):
    """A table by deltalake."""

    def __init__(self, root: Path, seed: int, configuration: dict[str, str]) -> None:
        super().__init__(seed)
        self.root, self.first_readable = root, 0
        self.is_mapped = MAPPING in configuration
        """Such a table deltalake neither gives columns nor optimizes."""
        self.schema = pa.schema({"k": pa.int64(), "s": pa.string(), "p": pa.string()})
        write_deltalake(root, random_rows(self, self.schema), partition_by=["p"], configuration=configuration)

    @property
    def table(self) -> DeltaTable:
        return DeltaTable(self.root)

    @property
    def commits(self) -> int:
        return self.table.version() + 1

    def versions(self) -> range:
        return range(self.first_readable, self.table.version() + 1)

    def columns(self, version: int | None) -> dict[str, type]:
        schema = pa.schema(DeltaTable(self.root, version=version).schema().to_arrow())
        return {each.name: int if pa.types.is_integer(each.type) else str for each in schema}

    def rows(self, version: int | None) -> list[dict[str, Any]]:
        self.judged += 1
        return judged_rows(self.root, version=version)

    def _write(self, keys: Sequence[int] | None = None, mode: Literal["append", "overwrite"] = "append") -> None:
        rows = random_rows(self, self.schema, keys)
        write_deltalake(self.root, rows, mode=mode, schema_mode=None if self.is_mapped else "merge")

    def append(self) -> None:
        self._write()

    def append_all(self) -> None:
        self._write(range(0, KEYS, 3))

    def overwrite(self) -> None:
        self._write(mode="overwrite")

    def overwrite_partition(self) -> None:
        rows = random_rows(self, self.schema)
        rows = rows.set_column(rows.schema.names.index("p"), "p", pa.array(["a"] * rows.num_rows, pa.string()))
        write_deltalake(self.root, rows, mode="overwrite", predicate="p = 'a'")

    def add_column(self) -> None:
        free = [name for name in NAMES if name not in self.schema.names]
        if free and not self.is_mapped:
            kind = self.random.choice([pa.int64(), pa.string()])
            self.schema = self.schema.append(pa.field(self.random.choice(free), kind))
            self.append()

    def delete(self) -> None:
        listed = ", ".join(str(key) for key in some_keys(self))
        self.table.delete(self.random.choice([f"k in ({listed})", f"s = 's-{self.random.randrange(20)}'", "p is null"]))

    def update(self) -> None:
        self.table.update({"k": "(k + 7) % 100"}, predicate=f"k < {self.random.randrange(20)}")

    def merge(self) -> None:
        keys = some_keys(self)
        merger = self.table.merge(random_rows(self, self.schema, keys), "t.k = s.k", "s", "t")
        merger.when_matched_update_all().when_not_matched_insert_all().execute()

    def compact(self) -> None:
        if not self.is_mapped:
            self.table.optimize.compact()

    def z_order(self) -> None:
        if not self.is_mapped:
            self.table.optimize.z_order(["k"])

    def restore(self) -> None:
        before = self.versions()[:-1]
        if before:
            self.table.restore(self.random.choice(before))
            self.schema = pa.schema(self.table.schema().to_arrow())

    def vacuum(self) -> None:
        """Remove files that the newest version does not have."""
        self.table.vacuum(0, dry_run=False, enforce_retention_duration=False)
        self.first_readable = self.table.version()

    def checkpoint(self) -> None:
        self.table.create_checkpoint()

    def step(self) -> None:
        usual = [self.append, self.append, self.append_all, self.delete, self.update, self.merge, self.restore]
        rare = [self.overwrite, self.overwrite_partition, self.compact, self.z_order, self.vacuum, self.checkpoint]
        if len(self.table.file_uris()) > 2 * MOST_FILES:
            usual, rare = [self.compact], [self.overwrite]
        self.random.choice([*usual, *usual, *rare, self.add_column])()


@pytest.mark.slow
@pytest.mark.parametrize("configuration", [{}, {"delta.enableChangeDataFeed": "true"}, {MAPPING: "name"}], ids=str)
def test_a_history_by_deltalake(tmp_path: Path, configuration: dict[str, str]) -> None:
    history = WrittenHistory(tmp_path / "t", SEED, configuration)
    follow_long(DeltaIndexes(tmp_path, tmp_path / "t"), history)
