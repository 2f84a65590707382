"""Tiles: the filters of many units side by side, so that a probe of one value reads one contiguous row.

    block 0        | unit 0: 32 bytes | unit 1: 32 bytes | ... | unit n-1 |      one FixedSizeBinary(32 n) value
    block 1        | unit 0           | unit 1           | ... | unit n-1 |
    ...
    block z-1

All units of a tile have z blocks, so a value has the same block number in each: one row of 32 n bytes decides about
all of them. The file is an Arrow IPC file with the columns ``block`` and ``crc32`` (the checksum of each row). The
commit records where in the file both start, so that a lookup reads only one row and its checksum.

A checksum covers the bytes of its row and the place where they belong: path, column, tile, layer and block number. So
it also detects bytes of another tile or row.
"""

from __future__ import annotations

import weakref
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from lakebloom.errors import NotFoundError, StorageError
from lakebloom.sbbf.blocks import BYTES_PER_BLOCK, WORDS_PER_BLOCK
from lakebloom.storage.local.reads import identity
from lakebloom.store.files import arrow_ipc_bytes, corrupt, failure, read_blob, write_blob
from lakebloom.store.kept_rows import KeptRows
from lakebloom.store.records import FORMAT_VERSION, TileRecord
from lakebloom.tuning import KEPT_ROW_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lakebloom.sbbf.kernels import WordArray
    from lakebloom.storage import Storage

_CHECK_BYTES = 4


def write_tile(storage: Storage, path: str, blocks: WordArray, *, column: int, number: int, layer: int) -> TileRecord:
    """Store a tile of [num_blocks, num_units, 8] words and return its record."""
    num_blocks, num_units, _ = blocks.shape
    rows = np.ascontiguousarray(blocks).reshape(num_blocks, -1).view(np.uint8)
    data = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(BYTES_PER_BLOCK * num_units), num_blocks, [None, pa.py_buffer(rows)]
    )
    seed = _seed(path, column, number, layer)
    checks = (zlib.crc32(row.data, seed ^ block) for block, row in enumerate(rows))
    crc32 = pa.UInt32Array.from_buffers(
        pa.uint32(), num_blocks, [None, pa.py_buffer(np.fromiter(checks, dtype=np.uint32, count=num_blocks))]
    )
    metadata = {"lakebloom": str(FORMAT_VERSION), "layer": str(layer)}
    table = pa.table({"block": data, "crc32": crc32}).replace_schema_metadata(metadata)
    contents = arrow_ipc_bytes(table)
    blocks_offset, checks_offset = _offsets(contents)
    return TileRecord(
        column=column,
        number=number,
        layer=layer,
        num_blocks=num_blocks,
        num_units=num_units,
        blocks_offset=blocks_offset,
        checks_offset=checks_offset,
        file=write_blob(storage, path, contents),
    )


def _seed(path: str, column: int, number: int, layer: int) -> int:
    """Return the start value of a tile's checksums. It makes checksums of equal bytes differ between tiles."""
    return zlib.crc32(f"{path}\n{column}\n{number}\n{layer}\n".encode())


def _seed_of(tile: TileRecord) -> int:
    return _seed(tile.file.path, tile.column, tile.number, tile.layer)


def _offsets(contents: pa.Buffer) -> tuple[int, int]:
    batch = pa.ipc.open_file(contents).get_batch(0)
    blocks, checks = (column.buffers()[1].address - contents.address for column in batch.columns)
    return blocks, checks


def read_rows(storage: Storage, tile: TileRecord, numbers: Sequence[int]) -> list[WordArray]:
    """Read the [num_units, 8] words of each of these blocks with one request.

    Raises CorruptIndexError if the tile is missing, short or altered.
    """
    width = BYTES_PER_BLOCK * tile.num_units
    rows = [(tile.blocks_offset + number * width, width) for number in numbers]
    checks = [(tile.checks_offset + number * _CHECK_BYTES, _CHECK_BYTES) for number in numbers]
    try:
        views = storage.read_ranges(tile.file.path, rows + checks)
    except StorageError as error:
        raise failure(storage, tile.file, error) from error
    data, expected = views[: len(rows)], views[len(rows) :]
    seed = _seed_of(tile)
    for number, row, check in zip(numbers, data, expected, strict=True):
        if zlib.crc32(row, seed ^ number) != int.from_bytes(check, "little"):
            raise corrupt(tile.file.path, f"a wrong checksum of block {number}")
    return [np.frombuffer(row, dtype="<u4").reshape(tile.num_units, WORDS_PER_BLOCK) for row in data]


class TileReader:
    """A tile, open for probes. Rows of local files stay in memory while the file stays the same."""

    def __init__(self, storage: Storage, tile: TileRecord) -> None:
        self.tile = tile
        self._storage = storage
        file = getattr(storage, "file", None)  # of local storages, metered ones too
        is_kept = file is not None and KeptRows.fit(tile.num_blocks, tile.num_units)
        self._file: str | None = file(tile.file.path) if file is not None and is_kept else None
        self._known: Callable[[], KeptRows | None] = lambda: None

    def row(self, block: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
        """Return one block of all units as [num_units, 4] 64-bit words. Raises as ``rows`` does."""
        kept = self._kept()
        row = None if kept is None else kept.row(block)
        if row is None:
            (row,) = self._read([block], kept)
        return row.view("<u8")

    def rows(self, blocks: np.ndarray[Any, Any]) -> tuple[WordArray, np.ndarray[Any, Any]]:
        """Return rows as [num_rows, num_units, 8] words, and the position of each block's row among them.

        Raises CorruptIndexError if the tile is missing, short or altered.
        """
        kept = self._kept()
        if kept is not None:
            missing = kept.missing(blocks)
            if len(missing) * BYTES_PER_BLOCK * self.tile.num_units <= KEPT_ROW_BYTES // 2:
                if missing:
                    self._read(missing, kept)
                return kept.all(blocks)
        distinct, place = np.unique(blocks, return_inverse=True)
        return np.stack(self._read(distinct.tolist(), None)), place

    def _kept(self) -> KeptRows | None:
        """Return the cached rows of the file as it is now, None if its rows are not cached."""
        if self._file is None:
            return None
        try:
            now = identity(self._file)
        except NotFoundError as error:
            raise corrupt(self.tile.file.path, "no such file") from error
        kept = self._known()
        if kept is None or kept.identity != now:
            kept = KeptRows(now, self.tile.num_blocks, self.tile.num_units)
            self._known = weakref.ref(kept)
        return kept

    def _read(self, blocks: list[int], kept: KeptRows | None) -> list[WordArray]:
        rows = read_rows(self._storage, self.tile, blocks)
        if kept is not None:
            kept.add(blocks, rows)
        return rows

    def sample(self, num_blocks: int) -> WordArray:
        """Return at most this many evenly spaced blocks as [num_blocks, num_units, 8] words."""
        words, rows = self.rows(np.arange(0, self.tile.num_blocks, -(-self.tile.num_blocks // num_blocks)))
        chosen: WordArray = words[rows]
        return chosen


def read_tile(storage: Storage, tile: TileRecord) -> WordArray:
    """Read a whole tile as [num_blocks, num_units, 8] words."""
    data = read_blob(storage, tile.file)
    count = tile.num_blocks * tile.num_units * WORDS_PER_BLOCK
    words = np.frombuffer(data, dtype="<u4", count=count, offset=tile.blocks_offset)
    return words.reshape(tile.num_blocks, tile.num_units, WORDS_PER_BLOCK)
