"""Reading the bytes of pages: those of one step at once, each to its place in memory."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

import numpy as np

from lakebloom.tables.parquet.pages.chosen import Part, Piece
from lakebloom.tables.parquet.pages.locations import UnpagedError
from lakebloom.tables.parquet.pages.small_file import MAGIC
from lakebloom.tuning import MAX_PAGE_INDEX_BYTES, MAX_RECORDED_PAGES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lakebloom.tables.parquet.footer import ChunkFacts
    from lakebloom.tables.parquet.pages.locations import PageLocations, Walk

__all__ = ["Loaded", "Located", "PageBytes", "Reads", "load", "read_indexes", "walked_together"]

Located: TypeAlias = "dict[tuple[int, int], PageLocations]"
"""Where pages are, by row group and leaf."""


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


class Loaded(NamedTuple):
    """Pages in memory, and room for a footer at their end."""

    data: memoryview
    room: int


def load(file: PageBytes, parts: Sequence[Part], room: int) -> Loaded:
    """Read pages, with the dictionaries that they use, to their places. Raises UnpagedError."""
    end = len(MAGIC)  # a dictionary at the very beginning does not count
    pieces: list[Piece] = []
    unknown: list[Part] = []
    for part in parts:
        end = part.place(end)
        pieces += part.data_pieces()
        is_known = part.is_known
        if not is_known:
            unknown.append(part)
        # What the headers say of dictionaries is worth a second read of a disk, and not a second request.
        if (is_known or file.is_remote) and part.uses_dictionary:
            pieces.append(part.dictionary_piece())
    data = np.empty(end + room, dtype=np.uint8)
    view = memoryview(data)  # type: ignore[arg-type]  # the stubs of numpy do not say that arrays are buffers
    file.fill(view, pieces)
    for part in unknown:
        part.check_headers(view)
    if not file.is_remote:
        file.fill(view, [part.dictionary_piece() for part in unknown if part.uses_dictionary])
    return Loaded(view, room)


def read_indexes(file: PageBytes, chunks: Sequence[ChunkFacts]) -> list[bytes | None]:
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


class Reads:
    """Reads single ranges of a file."""

    def __init__(self, file: PageBytes) -> None:
        self._file = file

    def __call__(self, offset: int, length: int) -> bytes:
        """Return so many bytes from an offset on."""
        data = bytearray(length)
        self._file.fill(memoryview(data), [Piece(offset, length, 0)])
        return bytes(data)


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
