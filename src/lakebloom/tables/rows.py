"""Rows of a Parquet table, file by file, in the table's own schema.

A column that an old file lacks is NULL, one that was widened since is cast, partition columns come from the path.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakebloom.errors import ColumnNotFoundError, DataFileError
from lakebloom.tables.columns import ColumnPath
from lakebloom.tables.files import TableFile
from lakebloom.tables.listing import list_files
from lakebloom.tables.partitions import partition_values
from lakebloom.tables.sources import open_source, parquet_file, reading
from lakebloom.tables.spark_schema import arrow_schema, defaults, leaf_types
from lakebloom.tables.stored_columns import StoredColumns

__all__ = ["TableRows"]

_BATCH_ROWS, _BATCH_BYTES = 1 << 16, 16 << 20


class TableRows:
    """Reads rows of a table's files."""

    def __init__(
        self,
        locations: Sequence[str],
        schema_json: str,
        partition_columns: Sequence[str],
        options: Mapping[str, str],
        *,
        case_sensitive: bool = False,
    ) -> None:
        self._case_sensitive = case_sensitive
        self._locations = locations
        self._partition_columns = frozenset(partition_columns)
        self._options = options
        self._schema = arrow_schema(schema_json)
        self._defaults = defaults(json.loads(schema_json))
        self.types: dict[ColumnPath, str] = dict(leaf_types(schema_json))

    @property
    def top_level_names(self) -> list[str]:
        """The names of all columns."""
        return list(self._schema.names)

    def schema_of(self, names: Iterable[str]) -> pa.Schema:
        """Return the part of the schema with these columns. Raises ColumnNotFoundError."""
        fields = []
        for name in names:
            found = [field for field in self._schema if field.name == name] or [
                field for field in self._schema if field.name.lower() == name.lower()
            ]
            if len(found) != 1:
                raise ColumnNotFoundError(
                    f"the table has no column {name}" if not found else f"the name {name} fits several columns",
                    found=f"columns {', '.join(self._schema.names)}",
                    hint="name one of these",
                )
            fields.append(found[0])
        return pa.schema(fields)

    def files(self) -> list[TableFile]:
        """Return the table's files as they are now."""
        return list_files(self._locations, self._options)

    def read(self, file: TableFile, row_groups: Sequence[int] | None, schema: pa.Schema) -> pa.Table:
        """Return the rows of some row groups (None: all) in this schema. Raises DataFileError."""
        with open_source(file.uri, self._options) as source, reading(file.uri):
            parquet = pq.ParquetFile(source, coerce_int96_timestamp_unit="us")
            return self._read(file, parquet, row_groups, schema)

    def batches(
        self, file: TableFile, row_groups: Sequence[int] | None, schema: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        """Yield the same rows in batches, with the memory of one batch. Raises DataFileError."""
        with open_source(file.uri, self._options) as source:
            with reading(file.uri):
                parquet = parquet_file(file.uri, source)
                view = self._view(file, parquet, schema)
                groups = list(range(parquet.metadata.num_row_groups) if row_groups is None else row_groups)
            for group in groups:
                for table in _tables(file, parquet, group, view.names):
                    with reading(file.uri):
                        batches = view.rows(table, table.num_rows).to_batches()
                    yield from batches

    def _read(
        self, file: TableFile, parquet: pq.ParquetFile, row_groups: Sequence[int] | None, schema: pa.Schema
    ) -> pa.Table:
        view = self._view(file, parquet, schema)
        groups = list(range(parquet.metadata.num_row_groups) if row_groups is None else row_groups)
        num_rows = sum(parquet.metadata.row_group(group).num_rows for group in groups)
        return view.rows(parquet.read_row_groups(groups, columns=view.names), num_rows)

    def _view(self, file: TableFile, parquet: pq.ParquetFile, schema: pa.Schema) -> _View:
        stored = StoredColumns(parquet, case_sensitive=self._case_sensitive)
        partitions = self._partition_values(file, schema)
        found = {field.name: stored.find(field.name) for field in schema if field.name not in partitions}
        for name in (name for name, in_file in found.items() if in_file is None):
            self._require_no_default(file, name)
        return _View(schema, stored, {name: known for name, known in found.items() if known is not None}, partitions)

    def _require_no_default(self, file: TableFile, name: str) -> None:
        if name in self._defaults:
            raise DataFileError(
                f"{file.uri} does not have the column {name}, and its default needs Spark",
                found=f"DEFAULT {self._defaults[name]}",
                hint="ask with Spark, which lakebloom speeds up after enable()",
            )

    def _partition_values(self, file: TableFile, schema: pa.Schema) -> dict[str, pa.Array]:
        names = [name for name in schema.names if name in self._partition_columns]
        if not names:
            return {}
        # From the whole path: locations may be patterns, or lie below the directories that name the partitions.
        scheme, _, rest = file.uri.partition("://")
        values = partition_values(file.uri, [f"{scheme}://{rest.partition('/')[0]}"], names)
        return {name: pa.array([value], pa.string()) for name, value in values.items()}


class _View:
    """How one file's columns become the table's."""

    def __init__(
        self, schema: pa.Schema, stored: StoredColumns, found: dict[str, str], partitions: dict[str, pa.Array]
    ) -> None:
        self._schema, self._stored, self._found, self._partitions = schema, stored, found, partitions

    @property
    def names(self) -> list[str]:
        """What to read of the file."""
        return list(self._found.values())

    def rows(self, table: pa.Table, num_rows: int) -> pa.Table:
        """Return what was read of the file in the table's schema."""
        columns: list[Any] = []
        for field in self._schema:
            if field.name in self._partitions:
                value = self._partitions[field.name].cast(field.type)
                columns.append(value.take(pa.array([0] * num_rows, pa.int64())))
            elif field.name in self._found:
                name = self._found[field.name]
                columns.append(self._stored.read_as(table[name], name, field.type))
            else:
                columns.append(pa.nulls(num_rows, field.type))
        return pa.table(columns, schema=self._schema)


def _tables(file: TableFile, parquet: pq.ParquetFile, group: int, names: list[str]) -> Iterator[pa.Table]:
    """Yield the rows of a row group, some at a time."""
    with reading(file.uri):
        facts = parquet.metadata.row_group(group)
        width = facts.total_byte_size / max(facts.num_rows, 1)
        count = int(min(_BATCH_ROWS, max(1, _BATCH_BYTES / max(width, 1))))
        if not names:  # Arrow has no batches without columns
            yield from (
                pa.table({"": pa.nulls(min(count, facts.num_rows - start))})
                for start in range(0, facts.num_rows, count)
            )
            return
        batches = parquet.iter_batches(count, [group], names, use_threads=False)
    while True:
        with reading(file.uri):
            batch = next(batches, None)
        if batch is None:
            return
        yield pa.Table.from_batches([batch])
