"""An Iceberg table with an index on local disk, and a model of its rows at every snapshot."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakebloom.index.current_table import iceberg_record
from lakebloom.tables.formats.iceberg.table import Source
from tests.index.logged_lake import LoggedIndexes
from tests.tables.formats.iceberg.hand_table import Entry, HandTable, column, with_id

if TYPE_CHECKING:
    from pathlib import Path

    from lakebloom.store.records import TableRecord

ARROW = {"int": pa.int32(), "long": pa.int64(), "string": pa.string()}
P_SPEC = {"name": "p", "transform": "identity", "source-id": 3, "field-id": 1000, "result": "string"}
K_SPEC = {"name": "k_trunc", "transform": "truncate[50]", "source-id": 1, "field-id": 1001, "result": "int"}


class IcebergIndexes(LoggedIndexes):
    """The indexes of an Iceberg table: its directory, unless another source is given."""

    def __init__(self, home: Path, table: Path, source: Source | None = None) -> None:
        super().__init__(home)
        self.source = source or Source(directory=f"file://{table}")

    def record(self) -> TableRecord:
        return iceberg_record(self.source, {})


@dataclass
class Column:
    id: int
    name: str
    kind: str
    default: Any = None

    @property
    def in_schema(self) -> dict[str, Any]:
        more = {} if self.default is None else {"initial-default": self.default, "write-default": self.default}
        return column(self.id, self.name, self.kind, **more)


@dataclass
class File:
    entry: Entry
    rows: list[dict[int, Any]]
    """By the ids of columns; a column that was not there yet is missing."""
    deleted: set[int] = field(default_factory=set)
    vector: Entry | None = None


class Model:
    """A table that is written by hand, with the rows that each snapshot should have. Column 3 may be a partition."""

    def __init__(self, root: Path, *, version: int = 2) -> None:
        self.columns = [Column(1, "k", "int"), Column(2, "s", "string"), Column(3, "p", "string")]
        self.hand = HandTable(root, [each.in_schema for each in self.columns], version=version, spec=[P_SPEC])
        self.version, self.spec = version, 0
        self.files: list[File] = []
        self.deletes: list[Entry] = []
        self.snapshots: dict[int, tuple[list[Column], list[File], list[Entry]]] = {}

    def remember(self) -> None:
        state = (self.columns, self.files, self.deletes)
        self.snapshots[self.hand.current] = copy.deepcopy(state)

    def partition_of(self, row: dict[int, Any]) -> tuple[Any, ...]:
        spec = self.hand.specs[self.spec]
        found: list[Any] = []
        for each in spec:
            value = row.get(each["source-id"])
            found.append(value if each["transform"] == "identity" or value is None else value - value % 50)
        return tuple(found)

    def write(self, rows: list[dict[int, Any]], *, with_partition: bool = True) -> Entry:
        """Write a data file of rows of one partition. A migrated file does not have the partition's column."""
        stored = [each for each in self.columns if with_partition or each.id != 3]
        # The names of a file mean nothing where it has ids.
        fields = [with_id(f"c{(each.id * 7) % 5}_{each.id}", ARROW[each.kind], each.id) for each in stored]
        arrays = [pa.array([row.get(each.id) for row in rows], ARROW[each.kind]) for each in stored]
        entry = self.hand.data(pa.table(arrays, schema=pa.schema(fields)), self.spec, self.partition_of(rows[0]))
        self.files.append(File(entry, rows))
        return entry

    def append(self, rows: list[dict[int, Any]], *, with_partition: bool = True) -> None:
        self.hand.commit(*self.write_all(rows, with_partition=with_partition))
        self.remember()

    def write_all(self, rows: list[dict[int, Any]], *, with_partition: bool = True) -> list[Entry]:
        """Write rows as one data file for each partition."""
        by_partition: dict[tuple[Any, ...], list[dict[int, Any]]] = {}
        for row in rows:
            by_partition.setdefault(self.partition_of(row), []).append(row)
        return [self.write(part, with_partition=with_partition) for part in by_partition.values()]

    def delete_positions(self, chosen: list[tuple[File, set[int]]], *, alone: bool) -> None:
        """Delete rows of files of one partition."""
        for file, rows in chosen:
            file.deleted |= rows
        entry = self.hand.positions(
            {file.entry.path: sorted(rows) for file, rows in chosen}, chosen[0][0].entry, alone=alone
        )
        self.deletes.append(entry)
        self.hand.commit(entry)
        self.remember()

    def delete_vector(self, file: File, rows: set[int]) -> None:
        """Delete rows of a file with a vector, which takes the place of one that is there."""
        file.deleted |= rows
        before = file.vector
        # A vector also holds what position deletes of an older version said, and not what equality deletes say.
        file.vector = self.hand.vector(sorted(file.deleted), file.entry)
        self.hand.commit(file.vector, removed=() if before is None else (before,))
        self.remember()

    def delete_equal(self, ids: list[int], values: list[tuple[Any, ...]], like: File | None) -> None:
        """Delete the rows that have certain values, in the partition of a file, or everywhere."""
        known = {each.id: each for each in self.columns}
        schema = pa.schema([with_id(f"e{number}", ARROW[known[number].kind], number) for number in ids])
        arrays = [pa.array([row[place] for row in values], schema.field(place).type) for place in range(len(ids))]
        unpartitioned = next((number for number, spec in self.hand.specs.items() if not spec), None)
        if like is None and unpartitioned is None:
            unpartitioned = max(self.hand.specs) + 1
            self.hand.specs[unpartitioned] = []
        spec, partition = (unpartitioned or 0, ()) if like is None else (like.entry.spec_id, like.entry.partition)
        entry = self.hand.equality(pa.table(arrays, schema=schema), ids, spec, partition)
        everywhere = not self.hand.specs[spec]
        for file in self.files:
            if everywhere or (file.entry.spec_id, file.entry.partition) == (spec, partition):
                file.deleted |= {
                    number
                    for number, row in enumerate(file.rows)
                    if tuple(self.value(row, known[number]) for number in ids) in values
                }
        self.deletes.append(entry)
        self.hand.commit(entry)
        self.remember()

    def remove(self, *gone: File) -> None:
        self.files = [file for file in self.files if file not in gone]
        self.hand.commit(removed=[file.entry for file in gone] + [f.vector for f in gone if f.vector is not None])
        self.remember()

    def compact(self, chosen: list[File]) -> None:
        """Rewrite the live rows of files of one partition of the current spec."""
        rows = [{each.id: self.value(row, each) for each in self.columns} for row in self._live(chosen)]
        self.files = [file for file in self.files if file not in chosen]
        added = [] if not rows else [self.write(rows)]
        vectors = [file.vector for file in chosen if file.vector is not None]
        self.hand.commit(*added, removed=[*(file.entry for file in chosen), *vectors])
        self.remember()

    def rewrite(self) -> None:
        """Rewrite all live rows with the current columns and spec, and drop all deletes."""
        rows = [{each.id: self.value(row, each) for each in self.columns} for row in self._live(self.files)]
        removed = [*(file.entry for file in self.files), *self.deletes]
        removed += [file.vector for file in self.files if file.vector is not None]
        self.files, self.deletes = [], []
        self.hand.commit(*self.write_all(rows), removed=removed)
        self.remember()

    def roll_back(self, snapshot_id: int) -> None:
        """Go back to a snapshot; columns stay."""
        _, files, deletes = self.snapshots[snapshot_id]
        self.files, self.deletes = copy.deepcopy(files), copy.deepcopy(deletes)
        self.hand.roll_back(snapshot_id)

    def expire(self, kept: set[int]) -> None:
        self.hand.expire(kept)
        self.snapshots = {n: state for n, state in self.snapshots.items() if n in kept or n == self.hand.current}

    def alter(self) -> None:
        """Give the table its columns as they are now. There is no snapshot for this."""
        self.hand.schema([each.in_schema for each in self.columns])

    def _live(self, files: list[File]) -> list[dict[int, Any]]:
        return [row for file in files for at, row in enumerate(file.rows) if at not in file.deleted]

    def value(self, row: dict[int, Any], wanted: Column) -> Any:
        return row.get(wanted.id, wanted.default)

    def state(self, snapshot_id: int | None) -> tuple[list[Column], list[File], list[Entry]]:
        """Return the columns, files and deletes of a snapshot; None: those of the table now."""
        return (self.columns, self.files, self.deletes) if snapshot_id is None else self.snapshots[snapshot_id]

    def rows(self, snapshot_id: int | None = None) -> list[dict[str, Any]]:
        """Return the rows of a snapshot by the names that columns had then; None: those of the table now."""
        columns, files, _ = self.state(snapshot_id)
        return [{each.name: self.value(row, each) for each in columns} for row in self._live(files)]
