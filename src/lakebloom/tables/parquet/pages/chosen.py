"""The pages of one leaf that hold some rows: which they are, their place in memory, where the rows are in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lakebloom.tables.parquet.pages.headers import read_header
from lakebloom.tables.parquet.pages.locations import UnpagedError
from lakebloom.tables.parquet.pages.small_file import SmallChunk

if TYPE_CHECKING:
    from lakebloom.tables.parquet.footer import ChunkFacts
    from lakebloom.tables.parquet.pages.locations import PageLocations
    from lakebloom.tables.parquet.pages.row_ranges import Numbers, RowRanges

__all__ = ["Part", "Piece", "choose"]

_HEADER_BYTES = 512


class Piece(NamedTuple):
    """Bytes of a file, and their place in memory."""

    offset: int
    length: int
    position: int


@dataclass(slots=True, eq=False)
class Part:
    """Some pages of a leaf."""

    chunk: ChunkFacts
    locations: PageLocations
    is_repeated: bool
    pages: Numbers
    """Their numbers, ascending."""
    rows_before: Numbers
    """How many rows the chosen pages before each of them hold, and all of them."""
    at: int = 0
    """The place of the first data page. The dictionary has its place before it."""

    @property
    def num_rows(self) -> int:
        """The rows of the pages."""
        return int(self.rows_before[-1])

    @property
    def dictionary_bytes(self) -> int:
        """The size of the dictionary page, 0 without one."""
        return 0 if self.locations.dictionary is None else self.locations.dictionary[1]

    @property
    def data_bytes(self) -> int:
        """The size of the data pages."""
        return int(self.locations.sizes[self.pages].sum())

    @property
    def uses_dictionary(self) -> bool:
        """Whether one of the pages needs the dictionary, as far as is known."""
        return self.locations.dictionary is not None and bool(self.locations.uses_dictionary[self.pages].any())

    @property
    def is_known(self) -> bool:
        """Whether the headers of all pages were read before."""
        return bool((self.locations.num_values[self.pages] >= 0).all())

    def place(self, position: int) -> int:
        """Give the pages a place in memory; return where they end."""
        self.at = position + self.dictionary_bytes
        return self.at + self.data_bytes

    def data_pieces(self) -> list[Piece]:
        """Return the data pages, those that lie side by side as one piece."""
        offsets, sizes = self.locations.offsets[self.pages].tolist(), self.locations.sizes[self.pages].tolist()
        found: list[Piece] = []
        position = self.at
        for offset, size in zip(offsets, sizes, strict=True):
            if found and found[-1].offset + found[-1].length == offset:
                found[-1] = found[-1]._replace(length=found[-1].length + size)
            else:
                found.append(Piece(offset, size, position))
            position += size
        return found

    def dictionary_piece(self) -> Piece:
        """Return the dictionary page."""
        assert self.locations.dictionary is not None
        offset, length = self.locations.dictionary
        return Piece(offset, length, self.at - length)

    def check_headers(self, data: memoryview) -> None:
        """Read the headers that were not read before. Raises UnpagedError."""
        at = self.at
        for page in self.pages.tolist():
            size = int(self.locations.sizes[page])
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
        num_values = int(self.locations.num_values[self.pages].sum()) if self.is_repeated else num_rows
        return SmallChunk(self.chunk.type, self.chunk.codec, num_values, size_bytes, self.at, dictionary_at)

    def positions(self, rows: RowRanges) -> Numbers:
        """Return where each range begins among the rows of the pages."""
        first_rows = self.locations.first_rows
        page = np.searchsorted(first_rows, rows.starts, side="right") - 1
        number = np.searchsorted(self.pages, page)
        positions: Numbers = self.rows_before[number] + rows.starts - first_rows[page]
        return positions


def choose(chunk: ChunkFacts, locations: PageLocations, rows: RowRanges, *, is_repeated: bool) -> Part:
    """Return the pages that hold some rows."""
    first_rows = locations.first_rows
    # Of pages that begin at the same row, all but the last are empty.
    first = np.searchsorted(first_rows, rows.starts, side="right") - 1
    last = np.searchsorted(first_rows, rows.stops, side="left") - 1
    if len(first) == 1:
        pages = np.arange(first[0], last[0] + 1)
    else:
        begins = np.zeros(len(first_rows) + 1, dtype=np.int64)
        np.add.at(begins, first, 1)
        np.add.at(begins, last + 1, -1)
        pages = np.flatnonzero(np.cumsum(begins))
    counts = first_rows[pages + 1] - first_rows[pages]
    return Part(chunk, locations, is_repeated, pages, np.concatenate(([0], np.cumsum(counts))))
