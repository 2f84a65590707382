"""The values of some columns of one Parquet file, as Arrow arrays in the table's types, with bounded memory.

Only the pages of these columns are read, row group by row group and batch by batch. A column that the file does not
have is NULL in every row, and so is a struct's leaf where the struct is NULL.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from lakebloom.errors import DataFileError, InvalidArgumentError
from lakebloom.tables.access import LOCAL, TableAccess
from lakebloom.tables.column_mapping import path_of_ids
from lakebloom.tables.column_spec import ColumnSpec
from lakebloom.tables.columns import ColumnPath, arrow_type, format_name
from lakebloom.tables.name_mapping import with_ids
from lakebloom.tables.parquet.batches import plan_batches
from lakebloom.tables.parquet.calendars import require_trusted, trusted_values
from lakebloom.tables.parquet.footer import ArrowFooter, read_arrow_footer
from lakebloom.tables.parquet.open import open_source, page_bytes, parquet_file, reading
from lakebloom.tables.parquet.pages.file_pages import FilePages
from lakebloom.tables.parquet.pages.locations import UnpagedError
from lakebloom.tables.parquet.paths import find_leaf
from lakebloom.tables.parquet.types import convert, require_readable
from lakebloom.tuning import BATCH_ROWS, PAGED_ROWS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import TracebackType

    import pyarrow.parquet as pq

    from lakebloom.tables.parquet.calendars import TrustedValues
    from lakebloom.tables.parquet.types import Family

__all__ = ["ColumnSpec", "ParquetColumns", "RowGroupShape", "row_group_shapes"]

_MANY_CHUNKS = 10_000
"""Of a file with more column chunks it is not found out where row groups lie: that would take milliseconds."""


@dataclass(frozen=True, slots=True)
class RowGroupShape:
    """Which rows of the file a row group holds, and where its pages lie."""

    row_start: int
    row_count: int
    byte_start: int | None = None
    """None if the footer does not tell."""
    byte_stop: int | None = None


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A column as the file has it."""

    path: ColumnPath
    number: int
    family: Family
    trusted: TrustedValues | None

    @property
    def dotted(self) -> str:
        return ".".join(self.path)


_IN_CLEAR = (
    "its filters would reveal its values; if that is acceptable, pass allow_plaintext_filters=True, and Spark "
    "reads it with the session's keys"
)


class ParquetColumns:
    """Columns of the Parquet file at a canonical URI, open for reading.

    Opening reads the footer only. Raises UnsupportedTypeError where a column cannot be read as the table's type,
    ColumnNotFoundError where its name is ambiguous in the file, DataFileError for what is no Parquet file, and
    NotFoundError, AccessDeniedError or StorageError for what cannot be opened.
    """

    def __init__(self, uri: str, columns: Sequence[ColumnSpec], access: TableAccess = LOCAL) -> None:
        if not columns:
            raise InvalidArgumentError("no columns to read", hint="name at least one")
        self._uri = uri
        self._types = [arrow_type(column.type) for column in columns]
        self._source = open_source(uri, access.options)
        try:
            with reading(uri):
                self._footer = read_arrow_footer(uri, self._source)
                first = parquet_file(uri, self._source, self._footer)
                self._metadata = self._footer.metadata
                self._readers: dict[tuple[str, ...], pq.ParquetFile] = {(): first}
                self.row_groups = row_group_shapes(self._footer)
                paths = first.reader.column_paths
            self._leaves = [self._find(column, first, paths, access) for column in columns]
            self._footer.require_plain(uri, [leaf.number for leaf in self._leaves if leaf is not None], _IN_CLEAR)
        except BaseException:
            self.close()
            raise
        self.num_rows = sum(shape.row_count for shape in self.row_groups)
        self.bytes_read: int = self._metadata.serialized_size
        """What was read so far, as the footer counts it: itself, and column chunks as they are stored."""

    def __enter__(self) -> ParquetColumns:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def column_bytes(self) -> int:
        """What reading all rows of the columns takes, as the footer counts it."""
        groups = [self._metadata.row_group(i) for i in range(self._metadata.num_row_groups)]
        present = [leaf for leaf in self._leaves if leaf is not None]
        return sum(group.column(leaf.number).total_compressed_size for group in groups for leaf in present)

    def page_starts(self, row_group: int) -> list[int]:
        """Return the rows of a row group, counted within it, at which pages of the first column begin.

        Empty where that is not known: the file does not have the column, or pages cannot be told apart.
        """
        leaf = self._leaves[0]
        if leaf is None:
            return []
        try:
            return self._pages.page_starts(page_bytes(self._source), row_group, leaf.number)[:-1]
        except UnpagedError:
            return []

    def sampled_page_starts(self, row_group: int) -> list[int]:
        """Return the same from the first page alone, where finding the others would take a request each."""
        found, leaf = self.page_starts(row_group), self._leaves[0]
        file = page_bytes(self._source)
        if found or leaf is None or not file.is_remote:
            return found
        try:
            rows = self._pages.first_page_rows(file, row_group, leaf.number)
        except UnpagedError:
            return []
        return list(range(0, self.row_groups[row_group].row_count, rows))

    def walk_pages(self) -> bytes | None:
        """Find the pages of all columns of a large object that has no page indexes, to record them in an index.

        None where that is not worth it, or not possible: then lookups read row groups.
        """
        file = page_bytes(self._source)
        groups = [number for number, shape in enumerate(self.row_groups) if shape.row_count >= PAGED_ROWS]
        if not file.is_remote or not groups:
            return None
        with reading(self._uri):
            try:
                return self._pages.walk_all(file, groups)
            except UnpagedError:
                return None

    @cached_property
    def _pages(self) -> FilePages:
        return FilePages(self._footer, self._readers[()].schema_arrow)

    def close(self) -> None:
        """Close the file. Arrays that were read stay valid."""
        self._source.close()

    def batches(self, row_group: int) -> Iterator[tuple[int, list[pa.Array]]]:
        """Yield the rows of a row group: the first row's number within the file, and one array for each column.

        The arrays are of one length and of the types that ``arrow_type`` gives, or dictionaries of these where that is
        faster. Raises DataFileError for damaged pages, and UnsupportedTypeError for a value that the table's type
        cannot hold or that Spark may read as another one (see ``calendars``).
        """
        shape = self.row_groups[row_group]
        done = 0
        for arrays in self._arrays(row_group, shape.row_count):
            yield shape.row_start + done, arrays
            done += len(arrays[0])
        if done != shape.row_count:
            raise DataFileError(
                f"row group {row_group} of {self._uri} does not match its footer",
                found=f"{done} rows instead of {shape.row_count}",
                hint="check that the file is complete; until then it has no filter and queries read it",
            )

    def _arrays(self, row_group: int, row_count: int) -> Iterator[list[pa.Array]]:
        present = [leaf for leaf in self._leaves if leaf is not None]
        if not present:
            for start in range(0, row_count, BATCH_ROWS):
                count = min(BATCH_ROWS, row_count - start)
                yield [pa.nulls(count, kind) for kind in self._types]
            return
        for batch in self._record_batches(row_group, present):
            yield [self._column(batch, *pair) for pair in zip(self._leaves, self._types, strict=True)]

    def _record_batches(self, row_group: int, leaves: Sequence[_Leaf]) -> Iterator[pa.RecordBatch]:
        with reading(self._uri):
            facts = self._metadata.row_group(row_group)
            chunks = {leaf.dotted: (facts.column(leaf.number), leaf.family) for leaf in leaves}
            plan = plan_batches(facts.num_rows, chunks)
            reader = self._readers.get(plan.dictionaries)
            if reader is None:
                reader = parquet_file(self._uri, self._source, self._footer, dictionaries=plan.dictionaries)
                self._readers[plan.dictionaries] = reader
            batches = reader.iter_batches(plan.rows, [row_group], list(chunks), use_threads=False)
        self.bytes_read += sum(chunk.total_compressed_size for chunk, _ in chunks.values())
        while True:
            with reading(self._uri):
                batch = next(batches, None)
            if batch is None:
                return
            yield batch

    def _column(self, batch: pa.RecordBatch, leaf: _Leaf | None, kind: pa.DataType) -> pa.Array:
        if leaf is None:
            return pa.nulls(batch.num_rows, kind)
        array = batch.column(batch.schema.get_field_index(leaf.path[0]))
        for part in leaf.path[1:]:  # also NULL where the struct is
            array = pc.struct_field(array, array.type.get_field_index(part))
        array = convert(array, kind, leaf.dotted)
        if leaf.trusted is not None:
            require_trusted(array, leaf.trusted, leaf.dotted)
        return array

    def _find(
        self, column: ColumnSpec, file: pq.ParquetFile, paths: Sequence[Sequence[str]], access: TableAccess
    ) -> _Leaf | None:
        path: ColumnPath | None = column.path
        if column.ids:
            path = path_of_ids(self._uri, with_ids(file.schema_arrow, access.name_mapping), column.ids)
        if path is None:
            return None
        number = find_leaf(paths, path, case_sensitive=access.case_sensitive or bool(column.ids))
        if number is None:
            return None
        schema = self._metadata.schema.column(number)
        family = require_readable(schema, column.type, format_name(column.path))
        return _Leaf(tuple(paths[number]), number, family, trusted_values(family, self._metadata.metadata))


def row_group_shapes(footer: ArrowFooter) -> tuple[RowGroupShape, ...]:
    """Return the row groups that a footer names."""
    shapes, start = [], 0
    metadata = footer.metadata
    # The place of an encrypted column is a secret, and Arrow must not be asked for it.
    is_unknown = bool(footer.encrypted) or metadata.num_row_groups * metadata.num_columns > _MANY_CHUNKS
    for i in range(metadata.num_row_groups):
        group = metadata.row_group(i)
        shapes.append(RowGroupShape(start, group.num_rows, *((None, None) if is_unknown else _byte_range(group))))
        start += group.num_rows
    return tuple(shapes)


def _byte_range(group: Any) -> tuple[int, int] | tuple[None, None]:
    """Return where the pages of all columns lie. Writers may put columns in any order."""
    starts, stops = [], []
    for number in range(group.num_columns):
        chunk = group.column(number)
        # A dictionary comes first; some writers record offset 0 where there is none.
        start = min(chunk.data_page_offset, chunk.dictionary_page_offset or chunk.data_page_offset)
        starts.append(start)
        stops.append(start + chunk.total_compressed_size)
    if not starts or min(starts) <= 0 or min(stop - start for start, stop in zip(starts, stops, strict=True)) < 0:
        return None, None
    return min(starts), max(stops)
