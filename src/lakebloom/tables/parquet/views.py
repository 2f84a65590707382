"""How the columns of one file become those of the table: found by name, cast, from the path, or NULL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

import lakebloom.arrow_compute as pc
from lakebloom.errors import UnsupportedTypeError, ValueConversionError
from lakebloom.sbbf.values.plain_arrays import plain_array
from lakebloom.tables.column_mapping import ColumnMapping
from lakebloom.tables.parquet.stored_columns import renamed_fields

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakebloom.tables.parquet.stored_columns import StoredColumns
    from lakebloom.tables.schema import TableSchema

__all__ = ["View", "partition_array", "rows_without_columns"]


def rows_without_columns(num_rows: int) -> pa.Table:
    """Return so many rows of no columns. Arrow's own constructors and concat_tables forget the number."""
    rows = pa.StructArray.from_buffers(pa.struct([]), num_rows, [None])
    return pa.Table.from_batches([pa.RecordBatch.from_struct_array(rows)])


class View:
    """How one file's columns become the table's."""

    def __init__(
        self,
        uri: str,
        schema: pa.Schema,
        stored: StoredColumns,
        found: dict[str, str],
        partitions: dict[str, pa.Array],
        mapped: TableSchema,
    ) -> None:
        """``mapped`` is the table's schema, which says how files call fields of structs."""
        self._uri, self.schema = uri, schema
        self._mapped = None if mapped.mapping is ColumnMapping.NONE else mapped
        self._stored, self._found, self._partitions = stored, found, partitions

    @property
    def names(self) -> list[str]:
        """What to read of the file."""
        return list(self._found.values())

    @property
    def numbers(self) -> list[int]:
        """The same as the numbers of the file's top-level columns."""
        return [self._stored.number(name) for name in self._found.values()]

    @property
    def leaves(self) -> list[int]:
        """The same as the numbers of the file's leaves."""
        return [leaf for name in self._found.values() for leaf in self._stored.leaves(name)]

    def rows(self, table: pa.Table | Mapping[str, pa.ChunkedArray], num_rows: int) -> pa.Table:
        """Return what was read of the file in the table's schema."""
        columns: list[Any] = []
        for field in self.schema:
            if field.name in self._partitions:
                value = self._partitions[field.name]
                columns.append(pc.take(value, plain_array([0] * num_rows, pa.int64())))
            elif field.name in self._found:
                columns.append(self._read(table, self._found[field.name], field))
            else:
                columns.append(pa.nulls(num_rows, field.type))
        return pa.table(columns, schema=self.schema) if columns else rows_without_columns(num_rows)

    def _read(self, table: pa.Table | Mapping[str, pa.ChunkedArray], name: str, field: pa.Field) -> pa.ChunkedArray:
        try:
            if self._mapped is None or not pa.types.is_nested(field.type):
                return self._stored.read_as(table[name], name, field.type)
            column = table[name]
            if self._mapped.mapping is ColumnMapping.ID:
                column = self._stored.by_ids(column, name, self._mapped.names_of_ids)
            kind = self._mapped.fields[field.name].physical().arrow.type
            return renamed_fields(self._stored.read_as(column, name, kind), field.type)
        except UnsupportedTypeError as error:
            raise UnsupportedTypeError(
                f"{error.message}, in {self._uri}", found=error.found, hint=error.hint
            ) from error


def partition_array(uri: str, field: pa.Field, value: str | None, *, logged: bool) -> pa.Array:
    """Return what a log, or else a directory's name, says of a file, in the column's type.

    Raises ValueConversionError, also for a logged time without a zone: the log does not say of which zone it is.
    deltalake takes it for UTC; to guess would be to return wrong values.
    """
    try:
        return pc.cast(pa.array([value], pa.string()), field.type)
    except pa.ArrowException as error:
        if logged:
            place, hint = "the log", "name the other columns in columns=, or query the table with its own engine"
        else:
            place, hint = "the directory", "query the table with Spark, or read it with another type of this column"
        raise ValueConversionError(
            f"{place} has no {field.type} for the partition column {field.name} of {uri}",
            found=f"{value!r}: {error}",
            hint=hint,
        ) from error
