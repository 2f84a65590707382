"""Rows of a Parquet table, file by file, in the table's own schema.

A column that an old file lacks is NULL, one that was widened since is cast, partition columns come from the path.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakebloom.errors import ColumnNotFoundError, DataFileError
from lakebloom.tables.columns import ColumnPath
from lakebloom.tables.files import TableFile
from lakebloom.tables.listing import list_files
from lakebloom.tables.partitions import partition_values
from lakebloom.tables.sources import open_source, reading
from lakebloom.tables.spark_schema import arrow_schema, defaults, leaf_types

__all__ = ["TableRows"]


class TableRows:
    """Reads rows of a table's files."""

    def __init__(
        self,
        locations: Sequence[str],
        schema_json: str,
        partition_columns: Sequence[str],
        options: Mapping[str, str],
    ) -> None:
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

    def _read(
        self, file: TableFile, parquet: pq.ParquetFile, row_groups: Sequence[int] | None, schema: pa.Schema
    ) -> pa.Table:
        stored = {name.lower(): name for name in parquet.schema_arrow.names}
        stored.update({name: name for name in parquet.schema_arrow.names})
        found = {name: stored.get(name, stored.get(name.lower())) for name in schema.names}
        groups = range(parquet.metadata.num_row_groups) if row_groups is None else row_groups
        wanted = [name for column, name in found.items() if name is not None and column not in self._partition_columns]
        table = parquet.read_row_groups(list(groups), columns=wanted)
        num_rows = sum(parquet.metadata.row_group(group).num_rows for group in groups)
        partitions = self._partition_values(file, schema)
        columns: list[Any] = []
        for field in schema:
            name = found[field.name]
            if field.name in partitions:
                columns.append(partitions[field.name].cast(field.type).take(pa.array([0] * num_rows, pa.int64())))
            elif name is None:
                self._require_no_default(file, field.name)
                columns.append(pa.nulls(num_rows, field.type))
            else:
                columns.append(_as(table[name], field.type))
        return pa.table(columns, schema=schema)

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


def _as(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    return column if column.type == kind else pc.cast(column, kind)
