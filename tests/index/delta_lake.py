"""A Delta table with an index on local disk, and a model of its rows at every version."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakebloom import Lakebloom, col
from lakebloom.index.current_table import delta_record
from tests.index.logged_lake import NAME, LoggedIndexes
from tests.tables.formats.delta.hand_table import HandTable, mapped
from tests.tables.formats.delta.hand_table import field as field_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from lakebloom.store.records import TableRecord

FEATURES = ("deletionVectors", "columnMapping", "typeWidening")
ARROW = {
    "long": pa.int64(),
    "integer": pa.int32(),
    "string": pa.string(),
    "double": pa.float64(),
    "float": pa.float32(),
}


class DeltaIndexes(LoggedIndexes):
    """The indexes of the Delta table at a path."""

    def __init__(self, home: Path, table: Path) -> None:
        super().__init__(home)
        self.table = table

    def record(self) -> TableRecord:
        return delta_record(f"file://{self.table}", {})


@dataclass
class Column:
    name: str
    physical: str
    number: int
    kind: str

    @property
    def in_schema(self) -> dict[str, Any]:
        return mapped(self.name, self.kind, self.physical, self.number)


@dataclass
class File:
    added: dict[str, Any]
    rows: list[dict[str, Any]]
    """By physical names."""
    partition: str | None
    deleted: set[int] = field(default_factory=set)


class Model:
    """A table that is written by hand, with the rows that each version should have."""

    def __init__(
        self, root: Path, *, mode: str = "name", features: Sequence[str] = (*FEATURES, "typeWidening")
    ) -> None:
        self.columns = [Column("k", "k", 1, "integer"), Column("s", "s", 2, "string"), Column("p", "p", 3, "string")]
        self.mode = mode
        properties = {"delta.columnMapping.mode": mode}
        schema = [column.in_schema for column in self.columns]
        self.hand = HandTable(root, schema, partitions=["p"], features=features, configuration=properties)
        self.files: list[File] = []
        self.count = 0
        self.versions: list[tuple[list[Column], list[File]]] = []
        self.remember()

    def remember(self) -> None:
        self.versions.append((copy.deepcopy(self.columns), copy.deepcopy(self.files)))

    def column(self, physical: str) -> Column | None:
        return next((column for column in self.columns if column.physical == physical), None)

    @property
    def _partition(self) -> Column:
        found = self.column("p")
        assert found is not None
        return found

    def commit(self, *actions: dict[str, Any]) -> None:
        self.hand.commit(*actions)
        self.remember()

    def write(self, rows: list[dict[str, Any]], partition: str | None) -> dict[str, Any]:
        """Return the action that adds a file of rows, by physical names."""
        self.count += 1
        stored = [column for column in self.columns if column.physical != "p"]
        schema = pa.schema(
            [
                # In id mode the names of a file mean nothing.
                pa.field(
                    f"c{self.count}_{column.number}" if self.mode == "id" else column.physical,
                    ARROW[column.kind],
                    metadata={"PARQUET:field_id": str(column.number)},
                )
                for column in stored
            ]
        )
        arrays = [pa.array([row.get(column.physical) for row in rows], ARROW[column.kind]) for column in stored]
        added = self.hand.add(f"f {self.count}%.parquet", pa.table(arrays, schema=schema), {"p": partition})
        self.files.append(File(added, rows, partition))
        return added

    def append(self, rows: list[dict[str, Any]], partition: str | None = "a") -> None:
        self.commit(self.write(rows, partition))

    def delete(self, file: File, rows: set[int], *, inline: bool) -> None:
        if rows <= file.deleted:  # a commit must not remove and add the same
            return
        file.deleted |= rows
        removed = self.hand.remove(file.added)
        vector = self.hand.inline(file.deleted) if inline else self.hand.stored(file.deleted)[0]
        file.added = self.hand.again(file.added, vector)
        self.commit(removed, file.added)

    def drop_file(self, file: File) -> None:
        self.files.remove(file)
        self.commit(self.hand.remove(file.added))

    def restore(self, version: int) -> None:
        """Go back to the files of a version; columns stay."""
        kept = copy.deepcopy(self.versions[version][1])
        before, after = [file.added for file in self.files], [file.added for file in kept]
        removed = [self.hand.remove(added) for added in before if added not in after]
        self.files = kept
        self.commit(*removed, *(added for added in after if added not in before))

    def alter(self) -> None:
        """Commit the columns as they are now."""
        self.hand._partitions = [self._partition.name]
        self.commit(self.hand.schema([column.in_schema for column in self.columns]))

    def rows(self, version: int) -> list[dict[str, Any]]:
        """Return the rows of a version by the names that columns had then."""
        columns, files = self.versions[version]
        return [
            {c.name: file.partition if c.physical == "p" else row.get(c.physical) for c in columns}
            for file in files
            for number, row in enumerate(file.rows)
            if number not in file.deleted
        ]


def plain_table(root: Path, **options: Any) -> HandTable:
    return HandTable(root, [field_of("k", "long"), field_of("s", "string")], **options)


def keys(*values: int) -> pa.Table:
    return pa.table({"k": pa.array(values, pa.int64()), "s": pa.array([f"s{value}" for value in values])})


def found_keys(lake: Lakebloom, value: int, **options: Any) -> list[int]:
    return sorted(lake.lookup(NAME, col("k") == value, **options)["k"].to_pylist())
