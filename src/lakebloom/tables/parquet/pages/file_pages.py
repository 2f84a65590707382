"""Rows of a Parquet file read page by page: of each column only the pages that hold them, decoded by PyArrow.

    pages = FilePages(footer, arrow_schema)
    (found,) = pages.read(file, [Wanted(row_group, RowRanges.of([(500, 510)]))], [0, 3])    # a ChunkedArray a column

Law: the result equals a slice of the full read. What cannot be read so raises UnpagedError, and the caller reads the
row group: encrypted columns, files of object stores without page indexes, damaged or unusual pages.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

import lakebloom.arrow_compute as pc
from lakebloom.tables.parquet.pages.chosen import Part, choose
from lakebloom.tables.parquet.pages.headers import read_header
from lakebloom.tables.parquet.pages.loading import Reads, load, read_indexes, walked_together
from lakebloom.tables.parquet.pages.locations import UnpagedError, chunk_range, from_offset_index, walk, walked
from lakebloom.tables.parquet.pages.recorded import RecordedPages, encoded
from lakebloom.tables.parquet.pages.row_ranges import RowRanges
from lakebloom.tables.parquet.pages.small_file import (
    ARROW_SCHEMA,
    arrow_schema_text,
    footer_bytes,
    footer_room,
    open_small,
    schema_bytes,
)
from lakebloom.tuning import KEPT_VIEWS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from lakebloom.tables.parquet.file_schema import FileColumn, FileSchema
    from lakebloom.tables.parquet.footer import ArrowFooter, ChunkFacts
    from lakebloom.tables.parquet.pages.loading import Loaded, Located, PageBytes
    from lakebloom.tables.parquet.pages.locations import Walk

__all__ = ["FilePages", "UnpagedError", "Wanted"]

_BYTE_ARRAY = 6
"""The format's number of a type."""
_FIRST_HEADER_BYTES = 4096
_COPIED_A_RANGE = 64
"""Ranges of few rows are copied, so that they do not hold whole pages in memory; longer ones are slices."""


class Wanted(NamedTuple):
    """Rows of a row group, counted within it."""

    row_group: int
    rows: RowRanges


class FilePages:
    """Reads pages of one file. Keeps where they are."""

    def __init__(self, footer: ArrowFooter, arrow_schema: pa.Schema) -> None:
        metadata = footer.metadata
        self._footer, self._arrow_schema = footer, arrow_schema
        self._row_counts = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
        self._has_arrow_schema = ARROW_SCHEMA in (metadata.metadata or {})
        self._locations: Located = {}
        self._facts: dict[tuple[int, int], ChunkFacts] = {}
        self._schemas: dict[tuple[int, ...], tuple[bytes, bytes | None]] = {}
        self.size_bytes = 0
        """The memory that the locations take, about."""
        self.load_recorded: Callable[[], bytes] | None = None
        """Returns what an index recorded of an object without page indexes. Raises UnpagedError."""
        self._recorded_pages: RecordedPages | None = None

    def read(self, file: PageBytes, wanted: Sequence[Wanted], columns: Sequence[int]) -> list[list[pa.ChunkedArray]]:
        """Return rows of top-level columns, given by their numbers: for each of the row groups one array a column.

        All pages are read at once. Raises UnpagedError, and the errors of reading the file.
        """
        distinct = list(dict.fromkeys(columns))
        located = self.locate(file, [each.row_group for each in wanted if len(each.rows.starts)], distinct)
        chosen = [self._choose(each, distinct, located) if len(each.rows.starts) else {} for each in wanted]
        parts = [part for of_group in chosen for of_column in of_group.values() for part in of_column]
        pages = load(file, parts, footer_room(*self._small_schema(tuple(distinct)), len(parts)))
        found = [self._decode_group(pages, each.rows, of_group) for each, of_group in zip(wanted, chosen, strict=True)]
        empty = {column: pa.chunked_array([], self._arrow_schema.field(column).type) for column in distinct}
        return [[(of_group or empty)[column] for column in columns] for of_group in found]

    def locate(self, file: PageBytes, row_groups: Iterable[int], columns: Iterable[int]) -> Located:
        """Return where the pages of columns are, by row group and leaf, with one read of all page indexes.

        Raises UnpagedError.

        It is called before ``read`` where more columns are going to be read: each read of an object is a request.
        """
        schema = self._schema()
        leaves = [(leaf, schema[column].is_repeated) for column in columns for leaf in schema[column].leaves]
        known: Located = {}
        missing: list[_Missing] = []
        for row_group in row_groups:
            for leaf, is_repeated in leaves:
                found = self._locations.get((row_group, leaf))
                if found is None:
                    missing.append(_Missing(row_group, leaf, is_repeated, self._chunk(row_group, leaf)))
                else:
                    known[row_group, leaf] = found
        if not missing:
            return known
        indexes = read_indexes(file, [each.chunk for each in missing])
        for each, index in zip(missing, indexes, strict=True):
            where, num_rows = chunk_range(each.chunk, file.size_bytes), self._row_counts[each.row_group]
            if index is not None:
                found = from_offset_index(index, where, num_rows)
            elif file.is_remote:
                found = self._recorded().of(each.row_group, each.leaf, where, num_rows)
            else:
                found = walked(Reads(file), where, each.chunk.num_values, num_rows, is_repeated=each.is_repeated)
            known[each.row_group, each.leaf] = found
            self._locations[each.row_group, each.leaf] = found
            self.size_bytes += found.size_bytes
        return known

    def _recorded(self) -> RecordedPages:
        """Return what an index recorded, which is read once. What is damaged is not read again."""
        known = self._recorded_pages
        if known is None:
            if self.load_recorded is None:
                raise UnpagedError("no page index")
            try:
                data = self.load_recorded()
                self._recorded_pages = known = RecordedPages(data)
            except UnpagedError as error:
                self.load_recorded = partial(_raise, UnpagedError(*error.args))
                raise
            self.size_bytes += len(data)
        return known

    def walk_all(self, file: PageBytes, row_groups: Iterable[int]) -> bytes | None:
        """Find the pages of all chunks of an object without page indexes, to record them; None if there are none.

        The headers of all chunks are read side by side, one of each at a time. Chunks of which pages cannot be told
        apart are left out.
        """
        walks: dict[tuple[int, int], Walk] = {}
        for row_group in row_groups:
            for column in self._schema():
                for leaf in column.leaves:
                    with suppress(UnpagedError):
                        chunk = self._chunk(row_group, leaf)
                        if chunk.offset_index_offset <= 0:
                            where, num_rows = chunk_range(chunk, file.size_bytes), self._row_counts[row_group]
                            walks[row_group, leaf] = walk(
                                where, chunk.num_values, num_rows, is_repeated=column.is_repeated
                            )
        found = walked_together(file, walks)
        self._locations |= found
        return encoded(found, len(self._row_counts), sum(len(column.leaves) for column in self._schema()))

    def first_page_rows(self, file: PageBytes, row_group: int, leaf: int) -> int:
        """Return the rows of the first data page of a flat leaf, with one read. Raises UnpagedError."""
        chunk = self._chunk(row_group, leaf)
        _, end = chunk_range(chunk, file.size_bytes)
        length = min(_FIRST_HEADER_BYTES, end - chunk.data_page_offset)
        header = read_header(Reads(file)(chunk.data_page_offset, length)) if length > 0 else None
        if header is None or header.num_values <= 0:
            raise UnpagedError("a damaged page header")
        return header.num_values

    def forget(self) -> None:
        """Forget where pages are. What other threads found stays theirs."""
        self._locations, self._facts, self._recorded_pages, self.size_bytes = {}, {}, None, 0

    def page_starts(self, file: PageBytes, row_group: int, leaf: int) -> list[int]:
        """Return the first row of each page of a leaf, and the number of rows behind them. Raises UnpagedError."""
        column = next((number for number, each in enumerate(self._schema()) if leaf in each.leaves), None)
        if column is None:
            raise UnpagedError("an unusual schema")
        return self.locate(file, [row_group], [column])[row_group, leaf].first_rows

    def _schema(self) -> FileSchema:
        schema = self._footer.schema
        if schema is None or len(schema) != len(self._arrow_schema):
            raise UnpagedError("an unusual schema")
        return schema

    def _chunk(self, row_group: int, leaf: int) -> ChunkFacts:
        chunk = self._facts.get((row_group, leaf))
        if chunk is None:
            chunk = self._footer.chunk(row_group, leaf)
            if chunk is None or min(chunk.type, chunk.codec, chunk.num_values) < 0:
                raise UnpagedError("an encrypted or unusual column chunk")
            self._facts[row_group, leaf] = chunk
        return chunk

    def _choose(self, wanted: Wanted, columns: Sequence[int], located: Located) -> dict[int, list[Part]]:
        """Return for each of some columns a part for each leaf."""
        schema, rows = self._schema(), wanted.rows.pairs()
        return {number: self._choose_leaves(schema[number], wanted.row_group, rows, located) for number in columns}

    def _choose_leaves(
        self, column: FileColumn, row_group: int, rows: list[tuple[int, int]], locations: Located
    ) -> list[Part]:
        located = [locations[row_group, leaf] for leaf in column.leaves]
        covered = rows
        if len(located) > 1:
            # All leaves of a column must have the same rows: from and to rows at which pages of all of them begin.
            common = sorted(set.intersection(*(set(each.first_rows) for each in located)))
            covered = [
                (common[bisect_right(common, start) - 1], common[bisect_left(common, stop)]) for start, stop in rows
            ]
        return [
            choose(self._chunk(row_group, leaf), each, rows, covered, is_repeated=column.is_repeated)
            for leaf, each in zip(column.leaves, located, strict=True)
        ]

    def _decode_group(
        self, pages: Loaded, rows: RowRanges, parts: Mapping[int, list[Part]]
    ) -> dict[int, pa.ChunkedArray]:
        schema = self._schema()
        flat = [column for column in parts if schema[column].is_flat]
        found = self._decode(pages, flat, [parts[column][0] for column in flat], rows) if flat else {}
        for column in parts:
            if column not in found:
                found |= self._decode(pages, [column], parts[column], rows)
        return found

    def _decode(
        self, pages: Loaded, columns: Sequence[int], parts: Sequence[Part], rows: RowRanges
    ) -> dict[int, pa.ChunkedArray]:
        """Return rows of several flat columns with a part for each, or of one nested column with one for each leaf."""
        lengths = (rows.stops - rows.starts).tolist()
        is_few = sum(lengths) <= _COPIED_A_RANGE * len(lengths)
        ends = [part.starts[-1] + lengths[-1] for part in parts]
        schema, arrow_schema = self._small_schema(tuple(columns))
        chunks = [part.small_chunk(end) for part, end in zip(parts, ends, strict=True)]
        dictionaries = self._dictionaries(columns, parts) if is_few else ()
        try:
            small = open_small(*pages, footer_bytes(schema, chunks, max(ends), arrow_schema), dictionaries)
            if self._schema()[columns[0]].is_flat:  # each has its own number of rows
                arrays = [small.read_column(number) for number in range(len(columns))]
            else:
                arrays = [small.read_row_group(0, use_threads=False).column(0)]
        except (pa.ArrowException, OSError, ValueError) as error:
            raise UnpagedError("pages that Arrow does not read") from error
        found = {}
        for column, array, part in zip(columns, arrays, parts, strict=False):  # the leaves of a column agree
            rows_of_it, kind = _cut(array, part.starts, lengths, is_few=is_few), self._arrow_schema.field(column).type
            found[column] = rows_of_it if rows_of_it.type == kind else pc.cast(rows_of_it, kind)
        return found

    def _dictionaries(self, columns: Sequence[int], parts: Sequence[Part]) -> list[int]:
        """Return which flat columns of bytes are all in a dictionary: for a few rows, numbers are decoded faster."""
        return [
            number
            for number, (column, part) in enumerate(zip(columns, parts, strict=False))
            if part.chunk.type == _BYTE_ARRAY and part.is_in_dictionary and self._schema()[column].is_flat
        ]

    def _small_schema(self, columns: tuple[int, ...]) -> tuple[bytes, bytes | None]:
        known = self._schemas.get(columns)
        if known is None:
            schema = self._schema()
            fields = pa.schema([self._arrow_schema.field(column) for column in columns])
            known = (
                schema_bytes([schema[column] for column in columns]),
                arrow_schema_text(fields) if self._has_arrow_schema else None,
            )
            if len(self._schemas) >= KEPT_VIEWS:
                self._schemas.clear()  # other threads have what they need
            self._schemas[columns] = known
        return known


def _raise(error: UnpagedError) -> bytes:
    raise error


class _Missing(NamedTuple):
    """A column chunk whose pages are not known."""

    row_group: int
    leaf: int
    is_repeated: bool
    chunk: ChunkFacts


def _cut(array: pa.ChunkedArray, starts: Sequence[int], lengths: Sequence[int], *, is_few: bool) -> pa.ChunkedArray:
    """Return the rows of some ranges, which begin at these places of an array, as a copy if they are few.

    Raises UnpagedError.
    """
    if starts[-1] + lengths[-1] > len(array):
        raise UnpagedError("pages with fewer rows than their locations say")
    if array.num_chunks == 1:
        chunk = array.chunk(0)
        pieces = [chunk.slice(start, length) for start, length in zip(starts, lengths, strict=True)]
    else:
        slices = (array.slice(start, length) for start, length in zip(starts, lengths, strict=True))
        pieces = [piece for each in slices for piece in each.chunks]
    if is_few:
        pieces = [pa.concat_arrays(pieces)]
    return pa.chunked_array(pieces, array.type)
