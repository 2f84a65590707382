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
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import pyarrow as pa

import lakebloom.arrow_compute as pc
from lakebloom.tables.parquet.pages.chosen import Part, Piece, choose
from lakebloom.tables.parquet.pages.headers import read_header
from lakebloom.tables.parquet.pages.locations import UnpagedError, chunk_range, from_offset_index, walk, walked
from lakebloom.tables.parquet.pages.recorded import RecordedPages, encoded
from lakebloom.tables.parquet.pages.row_ranges import RowRanges
from lakebloom.tables.parquet.pages.small_file import (
    ARROW_SCHEMA,
    MAGIC,
    arrow_schema_text,
    footer_bytes,
    open_small,
    schema_bytes,
)
from lakebloom.tuning import KEPT_VIEWS, MAX_PAGE_INDEX_BYTES, MAX_RECORDED_PAGES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from lakebloom.tables.parquet.file_schema import FileSchema
    from lakebloom.tables.parquet.footer import ArrowFooter, ChunkFacts
    from lakebloom.tables.parquet.pages.locations import PageLocations, Walk

__all__ = ["FilePages", "PageBytes", "UnpagedError", "Wanted"]

_BYTE_ARRAY = 6
"""The format's number of a type."""
_FIRST_HEADER_BYTES = 4096
_COPIED_A_RANGE = 64
"""Ranges of few rows are copied, so that they do not hold whole pages in memory; longer ones are slices."""


Located: TypeAlias = "dict[tuple[int, int], PageLocations]"


class PageBytes(Protocol):
    """A file whose pages are read."""

    @property
    def is_remote(self) -> bool:
        """Whether each read waits for a network, so that few reads are better."""

    @property
    def size_bytes(self) -> int:
        """The size of the file."""

    def fill(self, target: memoryview, pieces: Sequence[Piece]) -> None:
        """Read pieces of the file to their places, at the same time where each waits. Raises OSError at the end."""


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
        chosen = [
            {column: self._choose(each, column, located) for column in distinct} if len(each.rows.starts) else {}
            for each in wanted
        ]
        data = _load(file, [part for of_group in chosen for parts in of_group.values() for part in parts])
        found = [self._decode_group(data, each.rows, parts) for each, parts in zip(wanted, chosen, strict=True)]
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
        indexes = _read_indexes(file, [each.chunk for each in missing])
        for each, index in zip(missing, indexes, strict=True):
            where, num_rows = chunk_range(each.chunk, file.size_bytes), self._row_counts[each.row_group]
            if index is not None:
                found = from_offset_index(index, where, num_rows)
            elif file.is_remote:
                found = self._recorded().of(each.row_group, each.leaf, where, num_rows)
            else:
                found = walked(_Reads(file), where, each.chunk.num_values, num_rows, is_repeated=each.is_repeated)
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
        header = read_header(_Reads(file)(chunk.data_page_offset, length)) if length > 0 else None
        if header is None or header.num_values <= 0:
            raise UnpagedError("a damaged page header")
        return header.num_values

    def forget(self) -> None:
        """Forget where pages are. What other threads found stays theirs."""
        self._locations, self._recorded_pages, self.size_bytes = {}, None, 0

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
        chunk = self._footer.chunk(row_group, leaf)
        if chunk is None or min(chunk.type, chunk.codec, chunk.num_values) < 0:
            raise UnpagedError("an encrypted or unusual column chunk")
        return chunk

    def _choose(self, wanted: Wanted, number: int, locations: Located) -> list[Part]:
        """Return a part for each leaf of a column."""
        column, rows = self._schema()[number], wanted.rows.pairs()
        located = [locations[wanted.row_group, leaf] for leaf in column.leaves]
        covered = rows
        if len(located) > 1:
            # All leaves of a column must have the same rows: from and to rows at which pages of all of them begin.
            common = sorted(set.intersection(*(set(each.first_rows) for each in located)))
            covered = [
                (common[bisect_right(common, start) - 1], common[bisect_left(common, stop)]) for start, stop in rows
            ]
        return [
            choose(self._chunk(wanted.row_group, leaf), each, rows, covered, is_repeated=column.is_repeated)
            for leaf, each in zip(column.leaves, located, strict=True)
        ]

    def _decode_group(self, data: Any, rows: RowRanges, parts: Mapping[int, list[Part]]) -> dict[int, pa.ChunkedArray]:
        schema = self._schema()
        flat = [column for column in parts if schema[column].is_flat]
        found = self._decode(data, flat, [parts[column][0] for column in flat], rows) if flat else {}
        for column in parts:
            if column not in found:
                found |= self._decode(data, [column], parts[column], rows)
        return found

    def _decode(
        self, data: Any, columns: Sequence[int], parts: Sequence[Part], rows: RowRanges
    ) -> dict[int, pa.ChunkedArray]:
        """Return rows of several flat columns with a part for each, or of one nested column with one for each leaf."""
        lengths = (rows.stops - rows.starts).tolist()
        is_few = sum(lengths) <= _COPIED_A_RANGE * len(lengths)
        ends = [part.starts[-1] + lengths[-1] for part in parts]
        schema, arrow_schema = self._small_schema(tuple(columns))
        chunks = [part.small_chunk(end) for part, end in zip(parts, ends, strict=True)]
        dictionaries = self._dictionaries(columns, parts) if is_few else ()
        try:
            small = open_small(data, footer_bytes(schema, chunks, max(ends), arrow_schema), dictionaries)
            if self._schema()[columns[0]].is_flat:  # each has its own number of rows
                arrays = [small.read_column(number) for number in range(len(columns))]
            else:
                arrays = [small.read_row_group(0, use_threads=False).column(0)]
        except (pa.ArrowException, OSError) as error:
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


def _read_indexes(file: PageBytes, chunks: Sequence[ChunkFacts]) -> list[bytes | None]:
    """Return the OffsetIndex of each chunk, None where there is none that can be read."""
    pieces: list[Piece | None] = []
    end = 0
    for chunk in chunks:
        offset, length = chunk.offset_index_offset, chunk.offset_index_bytes
        if offset > 0 and 0 < length <= MAX_PAGE_INDEX_BYTES and offset + length <= file.size_bytes:
            pieces.append(Piece(offset, length, end))
            end += length
        else:
            pieces.append(None)
    data = bytearray(end)
    file.fill(memoryview(data), [piece for piece in pieces if piece is not None])
    return [None if piece is None else bytes(data[piece.position : piece.position + piece.length]) for piece in pieces]


def walked_together(file: PageBytes, walks: Mapping[tuple[int, int], Walk]) -> Located:
    """Return the pages of several chunks, with as many reads, one after the other, as the longest of them has pages.

    Chunks whose walk fails are left out; if there are too many pages, all are.
    """
    found: Located = {}
    wanted: dict[tuple[int, int], tuple[int, int]] = {}
    for key, steps in walks.items():
        with suppress(UnpagedError):
            wanted[key] = next(steps)
    requests = 0
    while wanted:
        requests += len(wanted)
        if requests > MAX_RECORDED_PAGES:
            return {}
        end, pieces = 0, {}
        for key, (offset, length) in wanted.items():
            pieces[key] = Piece(offset, length, end)
            end += length
        data = bytearray(end)
        file.fill(memoryview(data), list(pieces.values()))
        wanted = {}
        for key, piece in pieces.items():
            try:
                wanted[key] = walks[key].send(bytes(data[piece.position : piece.position + piece.length]))
            except StopIteration as stop:
                found[key] = stop.value
            except UnpagedError:
                continue
    return found


class _Reads:
    """Reads single ranges of a file."""

    def __init__(self, file: PageBytes) -> None:
        self._file = file

    def __call__(self, offset: int, length: int) -> bytes:
        data = bytearray(length)
        self._file.fill(memoryview(data), [Piece(offset, length, 0)])
        return bytes(data)


def _load(file: PageBytes, parts: Sequence[Part]) -> Any:
    """Read pages, with the dictionaries that they use, to their places. Raises UnpagedError."""
    end = len(MAGIC)  # a dictionary at the very beginning does not count
    for part in parts:
        end = part.place(end)
    data = np.empty(end, dtype=np.uint8)
    view = memoryview(data)  # type: ignore[arg-type]  # the stubs of numpy do not say that arrays are buffers
    pieces = [piece for part in parts for piece in part.data_pieces()]
    # What the headers say of dictionaries is worth a second read of a disk, and not a second request.
    at_once = [part for part in parts if part.uses_dictionary and (file.is_remote or part.is_known)]
    file.fill(view, [*pieces, *(part.dictionary_piece() for part in at_once)])
    for part in parts:
        part.check_headers(view)
    later = [part for part in parts if part.uses_dictionary and part not in at_once]
    file.fill(view, [part.dictionary_piece() for part in later])
    return data


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
