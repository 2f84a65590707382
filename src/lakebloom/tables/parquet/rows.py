"""Rows of a Parquet table, file by file, in the table's own schema.

A column that an old file lacks is NULL, one that was widened since is cast, partition columns come from the path.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakebloom.errors import DataFileError, UnsupportedTypeError, ValueConversionError
from lakebloom.locks import new_lock
from lakebloom.tables.columns import ColumnNames, ColumnPath
from lakebloom.tables.file_identity import TableFile
from lakebloom.tables.formats.partition_list import Values
from lakebloom.tables.listing.listing import list_files
from lakebloom.tables.listing.partitions import partition_values
from lakebloom.tables.listing.settled import is_settled
from lakebloom.tables.parquet.footer import ArrowFooter, read_arrow_footer
from lakebloom.tables.parquet.open import open_source, parquet_file, reading
from lakebloom.tables.parquet.stored_columns import StoredColumns
from lakebloom.tables.schema import TableSchema
from lakebloom.tuning import BATCH_BYTES, BATCH_ROWS, KEPT_FOOTER_BYTES, KEPT_SCHEMAS, KEPT_VIEWS

__all__ = ["TableRows", "rows_without_columns"]


def rows_without_columns(num_rows: int) -> pa.Table:
    """Return so many rows of no columns. Arrow's own constructors and concat_tables forget the number."""
    rows = pa.StructArray.from_buffers(pa.struct([]), num_rows, [None])
    return pa.Table.from_batches([pa.RecordBatch.from_struct_array(rows)])


class TableRows:
    """Reads rows of a table's files."""

    def __init__(
        self,
        locations: Sequence[str],
        schema: TableSchema,
        partition_columns: Sequence[str],
        options: Mapping[str, str],
        *,
        partition_values: Mapping[str, Values] | None = None,
    ) -> None:
        """``partition_values`` are those of each directory, in the order of the columns, where a catalog has them."""
        self._known_values = partition_values
        self._partition_order = tuple(partition_columns)
        self._locations = locations
        self._partition_columns = frozenset(partition_columns)
        self._options = options
        self._schema = schema
        self._footers = _Footers()
        self._parts: dict[tuple[str, ...], pa.Schema] = {}

    @property
    def types(self) -> Mapping[ColumnPath, str]:
        """The SQL type of every column, the leaves of structs included."""
        return self._schema.types

    @property
    def names(self) -> ColumnNames:
        """The finder of columns and leaves."""
        return self._schema.names

    def chosen(self, columns: Sequence[str] | None) -> list[str]:
        """Return the columns that a user names, as the table spells them; None: all of them.

        Raises ColumnNotFoundError and InvalidArgumentError.
        """
        if columns is None:
            return self._schema.top_level_names
        return self._schema.chosen(columns)

    def schema_of(self, names: Iterable[str]) -> pa.Schema:
        """Return the part of the schema with these columns, by their exact names."""
        wanted = tuple(names)
        part = self._parts.get(wanted)
        if part is None:
            part = self._schema.arrow(wanted)
            if len(self._parts) >= KEPT_SCHEMAS:
                self._parts.clear()  # other threads have what they need
            self._parts[wanted] = part
        return part

    def files(self) -> list[TableFile]:
        """Return the table's files as they are now."""
        return list_files(self._locations, self._options)

    @contextmanager
    def opened(self, file: TableFile, asked: pa.Schema, *, use_kept: bool = True) -> Iterator[OpenFile]:
        """Open a file, to read all rows of the columns that are asked for, and some rows of others.

        Raises DataFileError, here and while it is read.

        A footer that was kept is that of this file only: whoever uses it has to look afterwards whether it still is.
        """
        with open_source(file.uri, self._options) as source, reading(file.uri):
            known = self._footers.get(file) if use_kept else None
            if known is None:
                footer = read_arrow_footer(file.uri, source)
                parquet = parquet_file(file.uri, source, footer)
                known = _Footer(footer, StoredColumns(parquet, footer, case_sensitive=self._schema.case_sensitive))
                yield OpenFile(self, file, parquet, known, source, asked)
                return
            plain = self.kept_view(file, known, asked).names
            yield OpenFile(self, file, known.open(file.uri, source, plain), known)

    def keep_footer(self, opened: OpenFile) -> None:
        """Remember a file's footer. To be called when it is certain that the file was not replaced meanwhile."""
        self._footers.add(opened.file, opened.footer)

    def batches(self, file: TableFile, row_groups: Sequence[int] | None, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield the rows of some row groups (None: all) in batches, with the memory of one. Raises DataFileError."""
        with open_source(file.uri, self._options) as source:
            with reading(file.uri):
                footer = read_arrow_footer(file.uri, source)
                parquet = parquet_file(file.uri, source, footer)
                view = self.view(
                    file, StoredColumns(parquet, footer, case_sensitive=self._schema.case_sensitive), schema
                )
                groups = list(range(parquet.metadata.num_row_groups) if row_groups is None else row_groups)
            for group in groups:
                for table in _tables(file, parquet, group, view.names):
                    with reading(file.uri):
                        batches = view.rows(table, table.num_rows).to_batches()
                    yield from batches

    def kept_view(self, file: TableFile, footer: _Footer, schema: pa.Schema) -> _View:
        """Return the same as ``view``, made once for each file and set of columns."""
        key = tuple(schema.names)
        view = footer.views.get(key)
        if view is None:
            view = self.view(file, footer.stored, schema)
            if len(footer.views) >= KEPT_VIEWS:
                footer.views.clear()  # other threads have what they need
            footer.views[key] = view
        return view

    def view(self, file: TableFile, stored: StoredColumns, schema: pa.Schema) -> _View:
        """Return how the columns of one file become those of a schema."""
        partitions = self._partition_values(file, schema)
        found = {field.name: stored.find(field.name) for field in schema if field.name not in partitions}
        for name in (name for name, in_file in found.items() if in_file is None):
            self._require_no_default(file, name)
        in_file = {name: known for name, known in found.items() if known is not None}
        for known in in_file.values():
            stored.require_plain(file.uri, known)
        return _View(file.uri, schema, stored, in_file, partitions)

    def _require_no_default(self, file: TableFile, name: str) -> None:
        default = self._schema.defaults.get(name)
        if default is not None:
            raise DataFileError(
                f"{file.uri} does not have the column {name}, and its default needs Spark",
                found=f"DEFAULT {default}",
                hint="query the table with Spark, which lakebloom speeds up after enable()",
            )

    def _partition_values(self, file: TableFile, schema: pa.Schema) -> dict[str, pa.Array]:
        names = [name for name in schema.names if name in self._partition_columns]
        if not names:
            return {}
        if self._known_values is not None:
            directory = self._known_values[file.uri.rpartition("/")[0]]
            given = dict(zip(self._partition_order, directory, strict=True))
            return {name: pa.array([given[name]], pa.string()) for name in names}
        # From the whole path: locations may be patterns, or lie below the directories that name the partitions.
        scheme, _, rest = file.uri.partition("://")
        values = partition_values(file.uri, [f"{scheme}://{rest.partition('/')[0]}"], names)
        return {name: _partition_value(file.uri, schema.field(name), value) for name, value in values.items()}


class OpenFile:
    """One file of a table, open for reading."""

    def __init__(
        self,
        rows: TableRows,
        file: TableFile,
        parquet: pq.ParquetFile,
        footer: _Footer,
        source: pa.NativeFile | None = None,
        asked: pa.Schema | None = None,
    ) -> None:
        """``source`` and ``asked`` are given where nothing was known of the file, and it is open as any file is."""
        self._rows, self._parquet = rows, parquet
        self._source, self._asked = source, asked
        self.file, self.footer = file, footer

    @property
    def row_groups(self) -> range:
        """The numbers of its row groups."""
        return range(len(self.footer.row_counts))

    def read(self, row_groups: Sequence[int], schema: pa.Schema, *, use_threads: bool = True) -> pa.Table:
        """Return the rows of some row groups."""
        view = self._rows.kept_view(self.file, self.footer, schema)
        num_rows = sum(self.footer.row_counts[group] for group in row_groups)
        table = self._parquet.read_row_groups(list(row_groups), columns=view.names, use_threads=use_threads)
        return view.rows(table, num_rows)

    def take(self, row_group: int, numbers: pa.Array, schema: pa.Schema, *, use_threads: bool = True) -> pa.Table:
        """Return some rows of a row group, by their numbers in it."""
        view = self._rows.kept_view(self.file, self.footer, schema)
        if self._source is not None and self._asked is not None and self.footer.repeating:
            plain = self._rows.kept_view(self.file, self.footer, self._asked).names
            self._parquet, self._source = self.footer.open(self.file.uri, self._source, plain), None
        table = self._parquet.read_row_group(row_group, columns=view.names, use_threads=use_threads)
        return view.rows(table.take(numbers), len(numbers))


class _Footer:
    """What is known of a file, in the forms in which it is needed again and again."""

    def __init__(self, footer: ArrowFooter, stored: StoredColumns) -> None:
        self.footer, self.stored = footer, stored
        self.metadata = metadata = footer.metadata
        self.row_counts: list[int] = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
        self.views: dict[tuple[str, ...], _View] = {}

    @cached_property
    def repeating(self) -> list[str]:
        """The top-level columns of bytes that are stored with a dictionary, in the first row group that has rows."""
        first = next((number for number, count in enumerate(self.row_counts) if count), None)
        if first is None:
            return []
        group = self.metadata.row_group(first)
        chunks = (group.column(i) for i in range(group.num_columns) if i not in self.footer.encrypted)
        return [
            chunk.path_in_schema
            for chunk in chunks
            if chunk.physical_type == "BYTE_ARRAY"
            and chunk.has_dictionary_page
            and self.stored.is_plain(chunk.path_in_schema)
        ]

    def open(self, uri: str, source: pa.NativeFile, plain: Collection[str] = ()) -> pq.ParquetFile:
        """Open the file so that repeating columns are read as such, but for some.

        Most of what is decoded is not taken, and numbers are decoded faster than what they stand for.
        """
        dictionaries = [name for name in self.repeating if name not in plain]
        return parquet_file(uri, source, self.footer, dictionaries=dictionaries)


class _Footers:
    """Footers that were read before: parsing one takes longer than reading a few rows."""

    def __init__(self) -> None:
        self._known: dict[TableFile, _Footer] = {}
        self._bytes = 0
        self._lock = new_lock()

    def get(self, file: TableFile) -> _Footer | None:
        return self._known.get(file)

    def add(self, file: TableFile, footer: _Footer) -> None:
        with self._lock:
            if file in self._known or not is_settled(file):
                return
            self._known[file] = footer
            self._bytes += footer.metadata.serialized_size
            while self._bytes > KEPT_FOOTER_BYTES and len(self._known) > 1:
                oldest = next(iter(self._known))
                self._bytes -= self._known.pop(oldest).metadata.serialized_size


class _View:
    """How one file's columns become the table's."""

    def __init__(
        self,
        uri: str,
        schema: pa.Schema,
        stored: StoredColumns,
        found: dict[str, str],
        partitions: dict[str, pa.Array],
    ) -> None:
        self._uri = uri
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
                value = self._partitions[field.name]
                columns.append(value.take(pa.array([0] * num_rows, pa.int64())))
            elif field.name in self._found:
                columns.append(self._read(table, self._found[field.name], field.type))
            else:
                columns.append(pa.nulls(num_rows, field.type))
        return pa.table(columns, schema=self._schema) if columns else rows_without_columns(num_rows)

    def _read(self, table: pa.Table, name: str, kind: pa.DataType) -> pa.ChunkedArray:
        try:
            return self._stored.read_as(table[name], name, kind)
        except UnsupportedTypeError as error:
            raise UnsupportedTypeError(
                f"{error.message}, in {self._uri}", found=error.found, hint=error.hint
            ) from error


def _partition_value(uri: str, field: pa.Field, value: str | None) -> pa.Array:
    """Return what a directory's name says, in the column's type. Raises ValueConversionError."""
    try:
        return pa.array([value], pa.string()).cast(field.type)
    except pa.ArrowException as error:
        raise ValueConversionError(
            f"the directory of {uri} has no {field.type} for the partition column {field.name}",
            found=f"{value!r}: {error}",
            hint="query the table with Spark, or read it with another type of this column",
        ) from error


def _tables(file: TableFile, parquet: pq.ParquetFile, group: int, names: list[str]) -> Iterator[pa.Table]:
    """Yield the rows of a row group, some at a time."""
    with reading(file.uri):
        facts = parquet.metadata.row_group(group)
        width = facts.total_byte_size / max(facts.num_rows, 1)
        count = int(min(BATCH_ROWS, max(1, BATCH_BYTES / max(width, 1))))
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
