"""Rows of a Parquet table, file by file, in the table's own schema.

A column that an old file lacks is NULL, one that was widened since is cast, partition columns come from the path.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
import pyarrow as pa

from lakebloom.errors import DataFileError, UnsupportedSourceError
from lakebloom.tables.column_mapping import ColumnMapping
from lakebloom.tables.columns import ColumnNames, ColumnPath
from lakebloom.tables.constants import constant_array
from lakebloom.tables.file_identity import TableFile
from lakebloom.tables.formats.partition_list import Values
from lakebloom.tables.formats.table_snapshot import DataFile
from lakebloom.tables.listing.listing import list_files
from lakebloom.tables.listing.partitions import partition_values
from lakebloom.tables.parquet.footer import read_arrow_footer
from lakebloom.tables.parquet.kept_footers import KeptFooter, KeptFooters
from lakebloom.tables.parquet.live_rows import KeptDeletes, LiveRows
from lakebloom.tables.parquet.open import open_source, reading, seen_version
from lakebloom.tables.parquet.open_file import OpenFile, cut_rows
from lakebloom.tables.parquet.pages.file_pages import Wanted
from lakebloom.tables.parquet.pages.row_ranges import Numbers, RowRanges
from lakebloom.tables.parquet.stored_columns import StoredColumns
from lakebloom.tables.parquet.views import View, partition_array, rows_without_columns
from lakebloom.tables.schema import TableSchema
from lakebloom.tuning import BATCH_BYTES, BATCH_ROWS, KEPT_SCHEMAS, KEPT_VIEWS

__all__ = ["OpenFile", "TableRows", "Wanted", "rows_without_columns"]


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
        logged: Mapping[str, DataFile] | None = None,
    ) -> None:
        """``partition_values`` are those of each directory, in the order of the columns, where a catalog has them.

        ``logged`` are the files of a table with a log, by URI: their partition values, and which rows are deleted.
        """
        self._known_values = partition_values
        self._logged = logged
        self._partition_order = tuple(partition_columns)
        self._locations = locations
        self._partition_columns = frozenset(partition_columns)
        self._options = options
        self._schema = schema
        self._footers = KeptFooters()
        self._deletes = KeptDeletes()
        self.unpaged: Counter[str] = Counter()
        """Why row groups were read as a whole where some pages would have been enough, and how often."""
        self._parts: dict[tuple[str, ...], pa.Schema] = {}

    def with_logged(self, logged: Mapping[str, DataFile]) -> TableRows:
        """Return the same table with the files of another version. What is known of files is shared."""
        other = copy.copy(self)
        other._logged = logged
        return other

    def live(self, file: TableFile, footer: KeptFooter) -> LiveRows:
        """Return which rows of a file count. Raises the errors of reading the deleted ones."""
        entry = self._listed_file(file)
        deletes = None if entry is None or entry.deletes is None else self._deletes.of(entry.deletes, self._options)
        return LiveRows(deletes, footer.row_starts)

    def _listed_file(self, file: TableFile) -> DataFile | None:
        """Return what a table's log says of a file. Raises UnsupportedSourceError for a file that is not Parquet."""
        entry = None if self._logged is None else self._logged[file.uri]
        if entry is not None and entry.format != "parquet":
            raise UnsupportedSourceError(
                f"{file.uri} is a file of {entry.format.upper()}, and only Parquet files can be read without Spark",
                found=f"a table with files of {entry.format.upper()}",
                hint="rewrite the table's data files as Parquet, or query the table with its own engine",
            )
        return entry

    @property
    def named_as_in_files(self) -> bool:
        """Whether files call the columns as the table does."""
        return self._schema.mapping is ColumnMapping.NONE

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
        self._listed_file(file)
        known = self._footers.get(file) if use_kept else None
        version = None if known is None else known.version
        with open_source(file.uri, self._options, version) as source, reading(file.uri):
            yield OpenFile(self, file, source, known or self._read_footer(file, source), asked)

    def _read_footer(self, file: TableFile, source: pa.NativeFile) -> KeptFooter:
        footer = read_arrow_footer(file.uri, source)
        known = KeptFooter(footer, case_sensitive=self._schema.case_sensitive, name_mapping=self._schema.name_mapping)
        known.version = seen_version(source)
        return known

    def keep_footer(self, opened: OpenFile) -> None:
        """Remember a file's footer. To be called when it is certain that the file was not replaced meanwhile."""
        self._footers.add(opened.file, opened.footer)

    def forget_footer(self, file: TableFile) -> bool:
        """Forget a file's footer. Tells whether one was kept."""
        return self._footers.remove(file)

    def batches(
        self,
        file: TableFile,
        row_groups: Sequence[int] | None,
        schema: pa.Schema,
        ranges: RowRanges | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of some row groups (None: all) in batches, with the memory of one. Raises DataFileError.

        ``ranges`` are the rows of the file that are wanted; None: all.
        """
        self._listed_file(file)
        with open_source(file.uri, self._options) as source:
            with reading(file.uri):
                known = self._read_footer(file, source)
                opened = OpenFile(self, file, source, known, schema)
                view = self.kept_view(file, known, schema)
            for group in opened.row_groups if row_groups is None else row_groups:
                for numbers, table in self._tables(opened, group, view, ranges):
                    with reading(file.uri):
                        batches = opened.live.of_table(group, numbers, table).to_batches()
                    yield from batches

    def _tables(
        self, opened: OpenFile, group: int, view: View, ranges: RowRanges | None
    ) -> Iterator[tuple[Numbers, pa.Table]]:
        """Yield the wanted rows of a row group, some at a time, with their ascending numbers in it."""
        footer, uri = opened.footer, opened.file.uri
        wanted = None if ranges is None else ranges.within(*footer.row_starts[group : group + 2])
        if wanted is not None and wanted.covers(footer.row_counts[group]):
            wanted = None
        with reading(uri):
            rows_at_once = _rows_at_once(footer, group)
            has_pages = wanted is not None and opened.has_pages([group], view.schema)
        if wanted is not None and has_pages:
            for part in wanted.cut(rows_at_once):
                with reading(uri):
                    (table,) = opened.read_ranges([Wanted(group, part)], view.schema, use_threads=False)
                yield part.row_numbers(_count(part.num_rows)), table
            return
        start = 0
        for table in _tables(opened, group, view.leaves, rows_at_once):
            numbers = start + _count(table.num_rows)
            with reading(uri):
                rows = view.rows(table, table.num_rows)
                if wanted is not None:
                    part = wanted.within(start, start + table.num_rows)
                    rows, numbers = cut_rows(rows, part), start + part.row_numbers(_count(part.num_rows))
            start += table.num_rows
            if rows.num_rows:
                yield numbers, rows

    def kept_view(self, file: TableFile, footer: KeptFooter, schema: pa.Schema) -> View:
        """Return the same as ``view``, made once for each file and set of columns."""
        key = tuple(schema.names)
        view = footer.views.get(key)
        if view is None:
            view = self.view(file, footer.stored, schema)
            if len(footer.views) >= KEPT_VIEWS:
                footer.views.clear()  # other threads have what they need
            footer.views[key] = view
        return view

    def view(self, file: TableFile, stored: StoredColumns, schema: pa.Schema) -> View:
        """Return how the columns of one file become those of a schema."""
        partitions = self._partition_values(file, schema)
        found = {field.name: self._find(file, stored, field.name) for field in schema if field.name not in partitions}
        for name in (name for name, in_file in found.items() if in_file is None):
            self._require_no_default(file, name)
            default = self._schema.initial_defaults.get((name,))
            if default is not None:
                partitions[name] = constant_array(name, schema.field(name).type, default)
        for name in self._schema.has_nested_defaults & {name for name, in_file in found.items() if in_file is not None}:
            stored.require_fields(file.uri, found[name] or "", self._schema.fields[name].column_ids)
        in_file = {name: known for name, known in found.items() if known is not None}
        for known in in_file.values():
            stored.require_plain(file.uri, known)
        return View(file.uri, schema, stored, in_file, partitions, self._schema)

    def _find(self, file: TableFile, stored: StoredColumns, name: str) -> str | None:
        if self._schema.mapping is ColumnMapping.NONE:
            return stored.find(name)
        column = self._schema.physical[name,]
        return stored.find_id(file.uri, column.ids[0]) if column.ids else stored.find(column.path[0])

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
        entry = self._listed_file(file)
        if entry is not None and entry.constants is not None:
            known = dict(entry.constants)
            ids = {name: f"#{self._schema.physical[name,].ids[0]}" for name in names}
            return {
                name: constant_array(name, schema.field(name).type, known[number] or "null")
                for name, number in ids.items()
                if number in known
            }
        if entry is not None:
            given = dict(entry.partition)
            values = {name: given.get(self._schema.physical[name,].path[0]) for name in names}
        elif self._known_values is not None:
            directory = self._known_values[file.uri.rpartition("/")[0]]
            found = dict(zip(self._partition_order, directory, strict=True))
            return {name: pa.array([found[name]], pa.string()) for name in names}
        else:
            # From the whole path: locations may be patterns, or lie below the directories that name the partitions.
            scheme, _, rest = file.uri.partition("://")
            values = partition_values(file.uri, [f"{scheme}://{rest.partition('/')[0]}"], names)
        logged = entry is not None
        return {name: partition_array(file.uri, schema.field(name), values[name], logged=logged) for name in values}


def _count(num_rows: int) -> Numbers:
    return np.arange(num_rows, dtype=np.int64)


def _rows_at_once(footer: KeptFooter, group: int) -> int:
    facts = footer.metadata.row_group(group)
    width = facts.total_byte_size / max(facts.num_rows, 1)
    return int(min(BATCH_ROWS, max(1, BATCH_BYTES / max(width, 1))))


def _tables(opened: OpenFile, group: int, leaves: list[int], count: int) -> Iterator[pa.Table]:
    """Yield the rows of a row group, so many at a time."""
    uri = opened.file.uri
    with reading(uri):
        if not leaves:  # Arrow has no batches without columns
            num_rows = opened.footer.row_counts[group]
            yield from (pa.table({"": pa.nulls(min(count, num_rows - start))}) for start in range(0, num_rows, count))
            return
        batches = opened.reader.iter_batches(count, [group], leaves, use_threads=False)
    with opened.fetched([group], leaves):
        while True:
            with reading(uri):
                batch = next(batches, None)
            if batch is None:
                return
            yield pa.Table.from_batches([batch])
