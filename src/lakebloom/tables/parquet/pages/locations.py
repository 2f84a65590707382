"""Where the pages of a column chunk lie, and which rows they hold.

    [dictionary page]  data page 0  data page 1  ...        each a header (Thrift) and a body

The OffsetIndex of a chunk says it in a few bytes. Where a file has none, the headers of its pages are read one after
the other, which is quick on a local disk only. Neither is trusted: pages that overlap, lie outside the chunk or hold
other rows than the row group are no pages.
"""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from lakebloom.tables.parquet.pages.headers import DATA_PAGE, DATA_PAGE_V2, DICTIONARY_PAGE, PageHeader, read_header
from lakebloom.tables.parquet.thrift_structs import I32, I64, Fields, UnreadableStructError, decode, list_of
from lakebloom.tuning import MAX_CHUNK_PAGES

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from lakebloom.tables.parquet.footer import ChunkFacts

__all__ = ["PageLocations", "UnpagedError", "Walk", "checked", "chunk_range", "from_offset_index", "walk", "walked"]

_UNKNOWN = -1
_PAGE_BYTES = 168
"""Four numbers and a truth value in lists."""
_HEADER_BYTES = 256
"""Read at a time to find the header of a page; with long statistics it is longer."""
_MAX_HEADER_BYTES = 1 << 16


class UnpagedError(Exception):
    """Rows cannot be read page by page: the whole row group has to be read. Says why, in one of a few words."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class PageLocations(msgspec.Struct):
    """The data pages of a chunk, in order. Lists, because few of their numbers are used at a time."""

    offsets: list[int]
    sizes: list[int]
    """In bytes, header included."""
    first_rows: list[int]
    """The first row of each page within the row group, and the number of rows behind them."""
    dictionary: tuple[int, int] | None
    """Offset and size of the dictionary page."""
    num_values: list[int]
    """The values of each page, NULLs included; -1: its header was not read yet."""
    uses_dictionary: list[bool]
    """Whether the values of each page are in the dictionary; True also where its header was not read yet."""

    @property
    def size_bytes(self) -> int:
        """The memory that they take, with what the footer says of the chunk."""
        return _PAGE_BYTES * len(self.offsets) + 1024

    def check(self, page: int, header: PageHeader, chunk: ChunkFacts, *, is_repeated: bool) -> None:
        """Note what the header of a page says. Raises UnpagedError where it contradicts the locations."""
        rows = _rows_of(header, is_repeated=is_repeated)
        if rows is not None and rows != self.first_rows[page + 1] - self.first_rows[page]:
            raise UnpagedError("a page has other rows than its location says")
        if 0 <= chunk.uncompressed_bytes < header.uncompressed_bytes:
            raise UnpagedError("a page is larger than its column chunk")
        self.uses_dictionary[page] = header.uses_dictionary
        self.num_values[page] = header.num_values


def chunk_range(chunk: ChunkFacts, file_bytes: int) -> tuple[int, int]:
    """Return where a chunk begins and ends. Raises UnpagedError where that is outside of the file."""
    offsets = [offset for offset in (chunk.dictionary_page_offset, chunk.data_page_offset) if offset > 0]
    start = min(offsets, default=0)
    end = start + chunk.compressed_bytes
    if start < 4 or chunk.compressed_bytes <= 0 or end > file_bytes:
        raise UnpagedError("a column chunk outside of the file")
    return start, end


class _Location(Fields):
    offset: int | None = None
    size: int | None = None
    first_row: int | None = None

    thrift_spec = (
        None,
        (1, I64, "offset", None, None),
        (2, I32, "size", None, None),
        (3, I64, "first_row", None, None),
    )


class _OffsetIndex(Fields):
    locations: list[_Location] | None = None

    thrift_spec = (None, list_of(1, "locations", _Location))


def from_offset_index(data: bytes, chunk: tuple[int, int], num_rows: int) -> PageLocations:
    """Return the locations in an OffsetIndex; ``chunk`` is where the chunk begins and ends. Raises UnpagedError."""
    index = _OffsetIndex()
    try:
        decode(index, data)
    except UnreadableStructError as error:
        raise UnpagedError("a damaged page index") from error
    found = index.locations or []
    if not found or any(None in (page.offset, page.size, page.first_row) for page in found):
        raise UnpagedError("a damaged page index")
    offsets = [page.offset or 0 for page in found]
    first_rows = [*(page.first_row or 0 for page in found), num_rows]
    # A page before the first data page is the dictionary; some writers do not say where it lies.
    start, _ = chunk
    dictionary = (start, offsets[0] - start) if offsets[0] > start else None
    sizes, unknown = [page.size or 0 for page in found], [_UNKNOWN] * len(found)
    return checked(PageLocations(offsets, sizes, first_rows, dictionary, unknown, [True] * len(found)), chunk)


def walked(
    read: Callable[[int, int], bytes], chunk: tuple[int, int], num_values: int, num_rows: int, *, is_repeated: bool
) -> PageLocations:
    """Return the locations that the pages' headers give; ``read`` takes offset and length. Raises UnpagedError."""
    steps = walk(chunk, num_values, num_rows, is_repeated=is_repeated)
    wanted = next(steps)
    while True:
        try:
            wanted = steps.send(read(*wanted))
        except StopIteration as end:
            found: PageLocations = end.value
            return found


Walk: TypeAlias = "Generator[tuple[int, int], bytes, PageLocations]"
"""Yields offset and length of what it has to read next, is sent the bytes, and returns the locations."""


def walk(chunk: tuple[int, int], num_values: int, num_rows: int, *, is_repeated: bool) -> Walk:
    """Find the locations by the pages' headers, one after the other. Raises UnpagedError."""
    at, end = chunk
    offsets, sizes, rows, values = list[int](), list[int](), list[int](), list[int]()
    uses = list[bool]()
    dictionary, seen = None, 0
    while at < end and seen < num_values:
        if len(offsets) >= MAX_CHUNK_PAGES:
            raise UnpagedError("too many pages")
        header = yield from _header_at(at, end)
        size = header.size + header.compressed_bytes
        if header.kind == DICTIONARY_PAGE:
            if dictionary is not None or offsets:
                raise UnpagedError("a dictionary that is not the first page")
            dictionary = at, size
        elif header.kind in (DATA_PAGE, DATA_PAGE_V2):
            count = _rows_of(header, is_repeated=is_repeated)
            if count is None:
                raise UnpagedError("a repeated column without a page index")
            offsets.append(at)
            sizes.append(size)
            rows.append(count)
            values.append(header.num_values)
            uses.append(header.uses_dictionary)
            seen += header.num_values
        elif not offsets:
            raise UnpagedError("a page of an unknown kind")
        at += size
    if not offsets or seen != num_values or sum(rows) != num_rows:
        raise UnpagedError("pages with other rows than the row group")
    return checked(PageLocations(offsets, sizes, [0, *accumulate(rows)], dictionary, values, uses), chunk)


def _header_at(at: int, end: int) -> Generator[tuple[int, int], bytes, PageHeader]:
    length = _HEADER_BYTES
    while True:
        header = read_header((yield at, min(length, end - at)))
        if header is not None:
            if header.size + header.compressed_bytes > end - at:
                raise UnpagedError("a page outside of its column chunk")
            return header
        if length >= min(end - at, _MAX_HEADER_BYTES):
            raise UnpagedError("a damaged page header")
        length *= 16


def _rows_of(header: PageHeader, *, is_repeated: bool) -> int | None:
    """Return the rows of a data page; None where its header does not tell. Raises UnpagedError."""
    if header.num_rows is not None:
        if not is_repeated and header.num_rows != header.num_values:
            raise UnpagedError("a damaged page header")
        return header.num_rows
    return None if is_repeated else header.num_values


def checked(locations: PageLocations, chunk: tuple[int, int]) -> PageLocations:
    """Return locations that can be right. Raises UnpagedError."""
    start, end = chunk
    at = start
    for offset, size in zip(locations.offsets, locations.sizes, strict=True):
        if size <= 0 or offset < at:
            raise UnpagedError("pages that do not fit their column chunk")
        at = offset + size
    first_rows = locations.first_rows
    if at > end or first_rows[0] != 0 or any(row > following for row, following in pairwise(first_rows)):
        raise UnpagedError("pages that do not fit their column chunk")
    return locations
