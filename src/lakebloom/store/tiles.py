"""Tiles: the filters of many units as bit planes, so that a probe of one value reads eight bits of each unit.

``tile_layout`` says where the bits lie. All units of a tile have z blocks, so a value has the same block number in
each: eight planes of one row decide about all of them. A tile is stored in parts, each with a range of the rows.
"""

from __future__ import annotations

import weakref
import zlib
from bisect import bisect_right
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from lakebloom.errors import NotFoundError, StorageError
from lakebloom.sbbf.blocks import BITS_PER_BLOCK, WORDS_PER_BLOCK
from lakebloom.sbbf.distinct import distinct_numbers
from lakebloom.storage.local.reads import identity
from lakebloom.storage.several import read_each
from lakebloom.store.files import corrupt, failure, write_blob
from lakebloom.store.kept_pieces import KeptPieces
from lakebloom.store.records import PartRecord, TileRecord
from lakebloom.store.tile_layout import MAGIC, SLACK_BYTES, layout_of, seed_of
from lakebloom.tuning import KEPT_BYTES, MANY_PLANES, READ_BYTES, READ_GAP_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from lakebloom.sbbf.kernels import ByteArray, WordArray
    from lakebloom.storage import Storage

    IntArray = np.ndarray[Any, np.dtype[np.int64]]

__all__ = [
    "TileReader",
    "part_path",
    "read_rows",
    "read_tile",
    "rows_of",
    "tile_record",
    "write_part",
    "write_tile",
]


def part_path(stem: str, number: int, layer: int, part: int) -> str:
    """Return the path of a part of a tile; ``stem`` is that of the column."""
    return f"{stem}.{number}.{layer}.{part}.tile"


def write_part(
    storage: Storage, path: str, blocks: WordArray, *, column: int, number: int, layer: int, first_row: int = 0
) -> PartRecord:
    """Store rows of a tile, as [num_rows, num_units, 8] words, and return the record of the file."""
    layout = layout_of(blocks.shape[1])
    data = layout.packed(blocks, first_row * layout.pieces_per_row, seed_of(path, column, number, layer))
    return PartRecord(num_blocks=len(blocks), file=write_blob(storage, path, data.data))


def write_tile(storage: Storage, stem: str, blocks: WordArray, *, column: int, number: int, layer: int) -> TileRecord:
    """Store a tile of [num_blocks, num_units, 8] words in one part, and return its record."""
    path = part_path(stem, number, layer, 0)
    part = write_part(storage, path, blocks, column=column, number=number, layer=layer)
    return tile_record(column, number, layer, blocks.shape[1], [part])


def tile_record(column: int, number: int, layer: int, num_units: int, parts: Sequence[PartRecord]) -> TileRecord:
    """Return the record of a tile with these parts."""
    num_blocks = sum(part.num_blocks for part in parts)
    return TileRecord(
        column=column, number=number, layer=layer, num_blocks=num_blocks, num_units=num_units, parts=tuple(parts)
    )


class TileReader:
    """A tile, open for probes. Planes, and rows that long lists need, stay in memory while a local file is the same."""

    def __init__(self, storage: Storage, tile: TileRecord) -> None:
        self.tile = tile
        self.layout = layout_of(tile.num_units)
        self.starts: list[int] = []
        """The first row of each part."""
        self.parts: list[PartReader] = []
        for part in tile.parts:
            self.starts.append(self.starts[-1] + self.parts[-1].num_rows if self.parts else 0)
            self.parts.append(PartReader(storage, tile, part, self.starts[-1]))

    def row(self, block: int) -> memoryview:
        """Return a row of a narrow tile. Raises CorruptIndexError if the tile is missing, short or altered."""
        part = self.part_of(block)
        return part.one(block - part.first_row)

    def planes(self, block: int, planes: Sequence[int]) -> list[np.ndarray[Any, np.dtype[np.uint64]]]:
        """Return planes of a row of a wide tile, each as 64-bit words. Raises as ``row`` does."""
        part = self.part_of(block)
        first = (block - part.first_row) * self.layout.pieces_per_row
        return [np.frombuffer(piece, dtype="<u8") for piece in part.some([first + plane for plane in planes])]

    def part_of(self, block: int) -> PartReader:
        """Return the part that has a row."""
        return self.parts[0 if len(self.parts) == 1 else bisect_right(self.starts, block) - 1]

    def filter(self, slot: int) -> WordArray:
        """Return the [num_blocks, 8] words of one unit's filter. Reads the whole tile, in bounded memory."""
        words: WordArray = np.empty((self.tile.num_blocks, WORDS_PER_BLOCK), dtype=np.uint32)
        for first, blocks in self.ranges():
            words[first : first + len(blocks)] = blocks[:, slot]
        return words

    def ranges(self) -> Iterator[tuple[int, WordArray]]:
        """Yield all rows as [num_rows, num_units, 8] blocks, some at a time, each with the number of its first row."""
        step = max(1, READ_BYTES // self.layout.row_bytes)
        for part in self.parts:
            for first in range(0, part.num_rows, step):
                yield part.first_row + first, part.blocks([(first, min(step, part.num_rows - first))])

    def sample(self, num_blocks: int) -> WordArray:
        """Return at most this many evenly spaced rows as [num_blocks, num_units, 8] blocks."""
        rows = range(0, self.tile.num_blocks, -(-self.tile.num_blocks // num_blocks))
        of_parts = ([row - part.first_row for row in rows if part.has(row)] for part in self.parts)
        chosen = zip(self.parts, of_parts, strict=True)
        return np.concatenate([part.blocks([(row, 1) for row in own]) for part, own in chosen if own])


def rows_of(wanted: Sequence[tuple[TileReader, int]], seen: set[str] | None = None) -> list[memoryview]:
    """Return one row of each of some narrow tiles, all of one storage. Raises as ``TileReader.row`` does.

    ``seen`` is that of ``read_each``.
    """
    pieces, requests = [], []
    for tile, block in wanted:
        part = tile.part_of(block)
        number = block - part.first_row
        pieces.append((part, number))
        requests.append((part.file.path, *part.range_of(number)))
    if not part.is_local:
        return [part.one(number) for part, number in pieces]
    try:
        stored = read_each(part.storage, requests, seen)
    except StorageError:  # one by one, to find out which it is, and whether it is damage
        return [part.one(number) for part, number in pieces]
    return [part.checked(number, row) for (part, number), row in zip(pieces, stored, strict=True)]


class PartReader:
    """One file of a tile. Pieces are numbered from its first one."""

    def __init__(self, storage: Storage, tile: TileRecord, part: PartRecord, first_row: int) -> None:
        self.first_row, self.num_rows = first_row, part.num_blocks
        self.file = part.file
        self.layout = layout_of(tile.num_units)
        self.storage = storage
        self._seed = seed_of(part.file.path, tile.column, tile.number, tile.layer)
        self._stored_bytes = self.layout.stored_bytes  # computed once: each key needs it
        self._first_piece = first_row * self.layout.pieces_per_row
        self._num_pieces = part.num_blocks * self.layout.pieces_per_row
        file = getattr(storage, "file", None)  # of local storages, metered ones too
        self.is_local = file is not None
        is_kept = file is not None and KeptPieces.fit(self._num_pieces, self.layout.piece_bytes)
        self._path: str | None = file(part.file.path) if file is not None and is_kept else None
        self._known: Callable[[], KeptPieces | None] = lambda: None

    def one(self, number: int) -> memoryview:
        """Return a piece. Raises CorruptIndexError if the file is missing, short or altered.

        It is not kept: to read and check a row of a narrow tile again takes no longer than to find it in a cache.
        """
        (stored,) = self._ranges([self.range_of(number)])
        return self.checked(number, stored)

    def range_of(self, number: int) -> tuple[int, int]:
        """Return where a piece and its checksum lie in the file: the offset, and how many bytes."""
        return len(MAGIC) + number * self._stored_bytes, self._stored_bytes

    def checked(self, number: int, stored: memoryview) -> memoryview:
        """Return a piece without the checksum behind it. Raises CorruptIndexError if the two do not fit."""
        # Without arrays: a new key takes most of its time here.
        size_bytes = self.layout.piece_bytes
        data = stored[:size_bytes]
        if self.layout.checksum(data, number + self._first_piece, self._seed) != stored[size_bytes:]:
            self._wrong(number)
        return data

    def some(self, numbers: Sequence[int]) -> list[memoryview]:
        """Return a few pieces. Raises as ``one`` does."""
        kept = self._kept()
        found = [None] * len(numbers) if kept is None else [kept.piece(number) for number in numbers]
        missing = sorted({number for number, piece in zip(numbers, found, strict=True) if piece is None})
        if missing:
            read = self._read(np.array(missing))
            if kept is not None:
                kept.add(np.array(missing), read)
            new = dict(zip(missing, read, strict=True))
            found = [new[number] if piece is None else piece for number, piece in zip(numbers, found, strict=True)]
        return [piece.data for piece in found if piece is not None]

    def many(self, numbers: IntArray) -> tuple[ByteArray, IntArray]:
        """Return memory that has these pieces, and the position of each, in the shape of ``numbers``.

        Positions count in pieces. Behind the last piece there is room for what kernels touch. Raises as ``one`` does.
        """
        found = self.keep(numbers, KEPT_BYTES // 2)
        if found is not None:
            return found
        distinct, places = distinct_numbers(numbers.reshape(-1))
        memory = np.empty(len(distinct) * self.layout.piece_bytes + SLACK_BYTES, dtype=np.uint8)
        self._read(distinct, memory[:-SLACK_BYTES].reshape(len(distinct), -1))
        return memory, places.reshape(numbers.shape)

    def keep(self, numbers: IntArray, most_bytes: int) -> tuple[ByteArray, IntArray] | None:
        """Return the same after adding the pieces to the cache; None if they are not cached or too much to read."""
        kept = self._kept()
        if kept is None:
            return None
        missing = kept.missing(self._with_whole_rows(kept.missing(numbers)))
        if len(missing) * self.layout.piece_bytes > most_bytes:
            return None
        if len(missing):
            kept.add(missing, self._read(missing))
        return kept.all(numbers)

    def _with_whole_rows(self, missing: IntArray) -> IntArray:
        """Add all planes of rows of which many are wanted: they are read anyway, and the next list wants others."""
        if not self.layout.is_wide or len(missing) < MANY_PLANES or self.layout.piece_bytes > READ_GAP_BYTES // 4:
            return missing
        rows = np.flatnonzero(np.bincount(missing // BITS_PER_BLOCK) >= MANY_PLANES)
        planes = rows[:, None] * BITS_PER_BLOCK + np.arange(BITS_PER_BLOCK)
        return np.concatenate([missing, planes.reshape(-1)])

    def has(self, row: int) -> bool:
        """Tell whether a row of the tile is in this file."""
        return self.first_row <= row < self.first_row + self.num_rows

    def blocks(self, ranges: Sequence[tuple[int, int]]) -> WordArray:
        """Return ranges of rows, each a first one and a number, as [num_rows, num_units, 8] blocks.

        Raises as ``one`` does.
        """
        layout = self.layout
        starts = [first * layout.pieces_per_row for first, _ in ranges]
        sizes = [count * layout.row_bytes for _, count in ranges]
        found = self._ranges([(layout.offset(start), size) for start, size in zip(starts, sizes, strict=True)])
        for start, data in zip(starts, found, strict=True):
            self._check(start, data)
        return layout.unpacked([np.frombuffer(data, dtype=np.uint8) for data in found])

    def check(self) -> None:
        """Read the whole file in bounded memory. Raises CorruptIndexError unless all of it is as it was written."""
        layout = self.layout
        (magic,) = self._ranges([(0, len(MAGIC))])
        if bytes(magic) != MAGIC:
            raise corrupt(self.file.path, "not a tile")
        crc32 = zlib.crc32(magic)
        step = max(1, READ_BYTES // layout.stored_bytes)
        for start in range(0, self._num_pieces, step):
            count = min(step, self._num_pieces - start)
            (data,) = self._ranges([(layout.offset(start), count * layout.stored_bytes)])
            self._check(start, data)
            crc32 = zlib.crc32(data, crc32)
        if crc32 != self.file.crc32:
            raise corrupt(self.file.path, "a wrong checksum")
        with suppress(StorageError):
            self.storage.read_ranges(self.file.path, [(self.file.size_bytes, 1)])
            raise corrupt(self.file.path, f"more than {self.file.size_bytes} bytes")

    def _check(self, first: int, data: memoryview) -> None:
        """Check pieces that lie one behind the other."""
        pieces = np.frombuffer(data, dtype=np.uint8).reshape(-1, self.layout.stored_bytes)
        self._require(np.arange(first, first + len(pieces)), pieces)

    def _require(self, numbers: IntArray, pieces: ByteArray) -> None:
        """Raise CorruptIndexError unless each piece fits the checksum behind it."""
        size_bytes = self.layout.piece_bytes
        found = self.layout.checksums(pieces, numbers + self._first_piece, self._seed)
        expected = np.ascontiguousarray(pieces[:, size_bytes:]).view("<u4")[:, 0]
        wrong = np.flatnonzero(found != expected)
        if len(wrong):
            self._wrong(int(numbers[wrong[0]]))

    def _wrong(self, number: int) -> NoReturn:
        row, plane = divmod(number + self._first_piece, self.layout.pieces_per_row)
        where = f"plane {plane} of row {row}" if self.layout.is_wide else f"row {row}"
        raise corrupt(self.file.path, f"a wrong checksum of {where}")

    def _kept(self) -> KeptPieces | None:
        """Return the cached pieces of the file as it is now, None if its pieces are not cached."""
        if self._path is None:
            return None
        try:
            now = identity(self._path)
        except NotFoundError as error:
            raise corrupt(self.file.path, "no such file") from error
        kept = self._known()
        if kept is None or kept.identity != now:
            kept = KeptPieces(now, self._num_pieces, self.layout.piece_bytes)
            self._known = weakref.ref(kept)
        return kept

    def _read(self, numbers: IntArray, out: ByteArray | None = None) -> ByteArray:
        """Read and check distinct ascending pieces, and return them as [count, piece_bytes].

        Those that lie close together are read at once, with what lies between them.
        """
        layout = self.layout
        found: ByteArray = np.empty((len(numbers), layout.piece_bytes), dtype=np.uint8) if out is None else out
        runs = list(_runs(numbers, layout.stored_bytes))
        firsts, lasts = ([int(numbers[i]) for i in ends] for ends in zip(*((a, b - 1) for a, b in runs), strict=True))
        sizes = [(last - first + 1) * layout.stored_bytes for first, last in zip(firsts, lasts, strict=True)]
        read = self._ranges([(layout.offset(first), size) for first, size in zip(firsts, sizes, strict=True)])
        for (start, end), first, data in zip(runs, firsts, read, strict=True):
            pieces = np.frombuffer(data, dtype=np.uint8).reshape(-1, layout.stored_bytes)
            if len(pieces) > end - start:
                pieces = pieces[numbers[start:end] - first]  # without what lies between them
            self._require(numbers[start:end], pieces)
            found[start:end] = pieces[:, : layout.piece_bytes]
        return found

    def _ranges(self, ranges: Sequence[tuple[int, int]]) -> list[memoryview]:
        try:
            return self.storage.read_ranges(self.file.path, ranges)
        except StorageError as error:
            raise failure(self.storage, self.file, error) from error


def _runs(numbers: IntArray, stored_bytes: int) -> Iterator[tuple[int, int]]:
    """Divide ascending pieces into runs that are read at once: from and to which place in the array."""
    gap, most = 1 + READ_GAP_BYTES // stored_bytes, max(1, READ_BYTES // stored_bytes)
    cuts = [0, *(np.flatnonzero(np.diff(numbers) > gap) + 1).tolist(), len(numbers)]
    for start, end in pairwise(cuts):
        while numbers[end - 1] - numbers[start] >= most:
            middle = int(np.searchsorted(numbers, numbers[start] + most))
            yield start, middle
            start = middle
        yield start, end


def read_rows(storage: Storage, tile: TileRecord, first: int, count: int) -> WordArray:
    """Read some rows of a tile as [count, num_units, 8] blocks. Raises CorruptIndexError."""
    found = []
    for part in TileReader(storage, tile).parts:
        low, high = max(first, part.first_row), min(first + count, part.first_row + part.num_rows)
        if low < high:
            found.append(part.blocks([(low - part.first_row, high - low)]))
    return found[0] if len(found) == 1 else np.concatenate(found)


def read_tile(storage: Storage, tile: TileRecord) -> WordArray:
    """Read a whole tile as [num_blocks, num_units, 8] blocks. Raises CorruptIndexError."""
    return read_rows(storage, tile, 0, tile.num_blocks)
