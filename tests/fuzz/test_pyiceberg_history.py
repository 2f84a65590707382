"""Long random histories of tables that pyiceberg writes. It reads them, too, and says what every snapshot holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyiceberg.expressions import EqualTo, In
from pyiceberg.transforms import BucketTransform, IdentityTransform, TruncateTransform
from pyiceberg.types import IntegerType, LongType, StringType

from lakebloom.tables.formats.iceberg.table import Source
from tests.fuzz.long_history import MOST_FILES, SEED, follow_long
from tests.fuzz.random_rows import KEYS, random_rows, some_keys
from tests.index.iceberg_lake import IcebergIndexes
from tests.index.laws.random_history import NAMES, RandomHistory
from tests.tables.formats.iceberg.judge import judged_rows
from tests.tables.formats.iceberg.sql_catalog import CATALOG, local_catalog, named_catalog

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyiceberg.table import Table


class WrittenHistory(RandomHistory):
    """A table by pyiceberg."""

    def __init__(self, home: Path, seed: int, version: int) -> None:
        super().__init__(seed)
        schema = pa.schema({"k": pa.int32(), "s": pa.string(), "p": pa.string()})
        self.table: Table = local_catalog(home).create_table(
            "db.t", schema, properties={"format-version": str(version)}
        )
        self.changes = 0
        self.append()

    @property
    def commits(self) -> int:
        return self.changes

    def versions(self) -> list[int]:
        return [each.snapshot_id for each in self.table.metadata.snapshots]

    def columns(self, version: int | None) -> dict[str, type]:
        scan = self.table.scan(snapshot_id=version)
        return {each.name: str if each.field_type == StringType() else int for each in scan.projection().fields}

    def rows(self, version: int | None) -> list[dict[str, Any]]:
        self.judged += 1
        return judged_rows(self.table.metadata_location, version)

    def _rows(self, keys: Sequence[int] | None = None) -> pa.Table:
        known = {1: "k", 2: "s", 3: "p"}
        schema = self.table.schema().as_arrow()
        names = [known.get(each.field_id, f"c{each.field_id}") for each in self.table.schema().fields]
        plain = pa.schema([pa.field(name, each.type) for name, each in zip(names, schema, strict=True)])
        rows = random_rows(self, plain, keys)
        return rows.rename_columns(schema.names).cast(schema)

    def _name(self, number: int) -> str:
        return self.table.schema().find_field(number).name

    def append(self) -> None:
        self.table.append(self._rows())

    def append_all(self) -> None:
        self.table.append(self._rows(range(0, KEYS, 3)))

    def overwrite(self) -> None:
        self.table.overwrite(self._rows())

    def overwrite_some(self) -> None:
        self.table.overwrite(self._rows(), overwrite_filter=EqualTo(self._name(3), "a"))

    def delete(self) -> None:
        self.table.delete(In(self._name(1), some_keys(self)))

    def replace(self) -> None:
        """Delete and append in one commit."""
        keys = some_keys(self)
        with self.table.transaction() as transaction:
            transaction.delete(In(self._name(1), keys))
            transaction.append(self._rows(keys))

    def rename(self) -> None:
        free = [name for name in NAMES if name not in self.table.schema().column_names]
        with self.table.update_schema() as update:
            update.rename_column(self.random.choice(self.table.schema().column_names), self.random.choice(free))

    def add_column(self) -> None:
        free = [name for name in NAMES if name not in self.table.schema().column_names]
        if len(free) > 1:
            with self.table.update_schema() as update:
                update.add_column(self.random.choice(free), self.random.choice([IntegerType(), StringType()]))

    def drop_column(self) -> None:
        """Drop a column; one of the same name may be added later."""
        dropped = [each.name for each in self.table.schema().fields if each.field_id not in (1, 3)]
        if dropped:
            with self.table.update_schema() as update:
                update.delete_column(self.random.choice(dropped))

    def promote(self) -> None:
        found = [each.name for each in self.table.schema().fields if each.field_type == IntegerType()]
        if found:
            with self.table.update_schema() as update:
                update.update_column(self.random.choice(found), LongType())

    def partition(self) -> None:
        """Write with another spec from now on; files keep theirs."""
        with self.table.update_spec() as update:
            for each in self.table.spec().fields:
                update.remove_field(each.name)
        wanted = [(3, IdentityTransform()), (1, self.random.choice([BucketTransform(4), TruncateTransform(50)]))]
        # In version 1 a field that was removed stays, as void, and pyiceberg adds no other one of its column.
        void = {field.source_id for field in self.table.spec().fields}
        possible = [(number, transform) for number, transform in wanted if number not in void]
        for number, transform in self.random.sample(possible, self.random.randrange(len(possible) + 1)):
            with self.table.update_spec() as update:
                update.add_field(self._name(number), transform, f"f{number}_{self.changes}")

    def roll_back(self) -> None:
        self.table.manage_snapshots().set_current_snapshot(self.random.choice(self.versions())).commit()

    def expire(self) -> None:
        current = self.table.metadata.current_snapshot_id
        others = [number for number in self.versions() if number != current]
        for number in self.random.sample(others, len(others) // 2):
            self.table.maintenance.expire_snapshots().by_id(number).commit()

    def step(self) -> None:
        usual = [self.append, self.append_all, self.delete, self.delete, self.overwrite_some, self.replace]
        rare = [self.overwrite, self.rename, self.add_column, self.drop_column, self.promote, self.roll_back]
        choices = [*usual, *usual, *rare, self.partition]
        if len(self.versions()) > 20:
            choices = [self.expire]
        elif len(list(self.table.scan().plan_files())) > 2 * MOST_FILES:
            choices = [self.overwrite]
        before = self.table.metadata_location
        self.random.choice(choices)()
        self.changes += self.table.metadata_location != before


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Delete operation did not match any records")
@pytest.mark.parametrize("version", [1, 2])
def test_a_history_by_pyiceberg(tmp_path: Path, version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table is named by its directory, or by its catalog."""
    named_catalog(monkeypatch, tmp_path)
    history = WrittenHistory(tmp_path, SEED, version)
    source = Source(catalog=f"{CATALOG}.db.t") if version == 2 else Source(directory=history.table.location())
    follow_long(IcebergIndexes(tmp_path, tmp_path / "none", source), history)
