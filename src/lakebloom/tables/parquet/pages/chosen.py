"""The pages of one leaf that hold some rows: which they are, their place in memory, where the rows are in them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from lakebloom.tables.parquet.pages.headers import read_header
from lakebloom.tables.parquet.pages.locations import UnpagedError
from lakebloom.tables.parquet.pages.small_file import SmallChunk

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakebloom.tables.parquet.footer import ChunkFacts
    from lakebloom.tables.parquet.pages.locations import PageLocations

__all__ = ["Part", "Piece", "choose"]

_HEADER_BYTES = 512


class Piece(NamedTuple):
    """Bytes of a file, and their place in memory."""

    offset: int
    length: int
    position: int


class Part(msgspec.Struct, eq=False):
    """Some pages of a leaf."""

    chunk: ChunkFacts
    locations: PageLocations
    is_repeated: bool
    pages: Sequence[int]
    """Their numbers, ascending."""
    starts: list[int]
    """Where each of the wanted ranges begins among the rows of the pages."""
    data_bytes: int
    """The size of the data pages."""
    at: int = 0
    """The place of the first data page. The dictionary has its place before it."""

    @property
    def dictionary_bytes(self) -> int:
        """The size of the dictionary page, 0 without one."""
        return 0 if self.locations.dictionary is None else self.locations.dictionary[1]

    @property
    def uses_dictionary(self) -> bool:
        """Whether one of the pages needs the dictionary, as far as is known."""
        uses = self.locations.uses_dictionary
        return self.locations.dictionary is not None and any(map(uses.__getitem__, self.pages))

    @property
    def is_in_dictionary(self) -> bool:
        """Whether the values of all pages are in the dictionary."""
        uses = self.locations.uses_dictionary
        return self.locations.dictionary is not None and all(map(uses.__getitem__, self.pages))

    @property
    def is_known(self) -> bool:
        """Whether the headers of all pages were read before."""
        return min(map(self.locations.num_values.__getitem__, self.pages)) >= 0

    def place(self, position: int) -> int:
        """Give the pages a place in memory; return where they end."""
        self.at = position + self.dictionary_bytes
        return self.at + self.data_bytes

    def data_pieces(self) -> list[Piece]:
        """Return the data pages, those that lie side by side as one piece."""
        offsets, sizes = self.locations.offsets, self.locations.sizes
        found: list[Piece] = []
        position, begin, end = self.at, -1, -1
        for page in self.pages:
            if offsets[page] != end:
                if end > begin:
                    found.append(Piece(begin, end - begin, position))
                    position += end - begin
                begin = offsets[page]
            end = offsets[page] + sizes[page]
        found.append(Piece(begin, end - begin, position))
        return found

    def dictionary_piece(self) -> Piece:
        """Return the dictionary page."""
        assert self.locations.dictionary is not None
        offset, length = self.locations.dictionary
        return Piece(offset, length, self.at - length)

    def check_headers(self, data: memoryview) -> None:
        """Read the headers that were not read before. Raises UnpagedError."""
        at = self.at
        for page in self.pages:
            size = self.locations.sizes[page]
            if self.locations.num_values[page] < 0:
                header = read_header(bytes(data[at : at + min(size, _HEADER_BYTES)]))
                header = header or read_header(bytes(data[at : at + size]))
                if header is None or header.size + header.compressed_bytes != size:
                    raise UnpagedError("a damaged page header")
                self.locations.check(page, header, self.chunk, is_repeated=self.is_repeated)
            at += size

    def small_chunk(self, num_rows: int) -> SmallChunk:
        """Return the metadata of a chunk with these pages, of which the first so many rows are read."""
        size_bytes, dictionary_at = self.data_bytes, None
        if self.uses_dictionary:
            size_bytes, dictionary_at = size_bytes + self.dictionary_bytes, self.at - self.dictionary_bytes
        num_values = sum(self.locations.num_values[page] for page in self.pages) if self.is_repeated else num_rows
        return SmallChunk(self.chunk.type, self.chunk.codec, num_values, size_bytes, self.at, dictionary_at)


def choose(
    chunk: ChunkFacts,
    locations: PageLocations,
    rows: Sequence[tuple[int, int]],
    covered: Sequence[tuple[int, int]],
    *,
    is_repeated: bool,
) -> Part:
    """Return the pages that hold some rows; ``covered`` are the rows of which whole pages are read at least."""
    first_rows = locations.first_rows
    if len(rows) == 1 and covered is rows:
        start, stop = rows[0]
        page = bisect_right(first_rows, start) - 1
        if stop <= first_rows[page + 1]:  # as one row always is
            return Part(chunk, locations, is_repeated, (page,), [start - first_rows[page]], locations.sizes[page])
    pages: list[int] = []
    for start, stop in covered:
        # Of pages that begin at the same row, all but the last are empty.
        first, last = bisect_right(first_rows, start) - 1, bisect_left(first_rows, stop) - 1
        pages += range(max(first, pages[-1] + 1) if pages else first, last + 1)
    starts, before, number = [], 0, 0
    for start, _ in rows:
        page = bisect_right(first_rows, start) - 1
        while pages[number] < page:
            before += first_rows[pages[number] + 1] - first_rows[pages[number]]
            number += 1
        starts.append(before + start - first_rows[page])
    data_bytes = sum(locations.sizes[page] for page in pages)
    return Part(chunk, locations, is_repeated, pages, starts, data_bytes)
