"""Where pages of the table's files lie, recorded in a segment: for files of object stores without page indexes.

    segments/<id>/pages.arrow       one row for each file: the part, offset, size and CRC-32 of its locations
    segments/<id>/pages.<part>.bin  the locations, one file's behind the other's (``tables.parquet.pages.recorded``)

Only the locations of files that are read are read, each by its range. A checksum covers what they are of: the part and
the number of the file. A lookup that finds them damaged reads row groups, and merging leaves damaged ones out.
"""

from __future__ import annotations

import zlib
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from lakebloom.errors import StorageError
from lakebloom.sbbf.hashing.buffers import numbers
from lakebloom.store.batched_file import ROWS, BatchedFile, write_batched
from lakebloom.store.files import corrupt, read_blob, write_blob
from lakebloom.store.records import PagesRecord
from lakebloom.tables.file_columns import whole_numbers
from lakebloom.tuning import MAX_RECORDED_BYTES, RECORDED_PART_BYTES

if TYPE_CHECKING:
    from lakebloom.storage import Storage
    from lakebloom.store.records import FileRecord, SegmentRecord

    IntArray = np.ndarray[Any, np.dtype[np.int64]]

__all__ = ["PAGES", "PageTable", "PageTableWriter", "RecordedAt", "read_recorded"]

PAGES = pa.schema(
    [
        pa.field("part", pa.int64(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("size_bytes", pa.int64(), nullable=False),
        pa.field("crc32", pa.int64(), nullable=False),
    ]
)
NO_PART = -1


class RecordedAt(NamedTuple):
    """Where the locations of a file's pages are in the index."""

    path: str
    file: int
    offset: int
    size_bytes: int
    crc32: int


def _checksum(path: str, file: int, data: bytes | memoryview) -> int:
    return zlib.crc32(data, zlib.crc32(f"{path}\n{file}\n".encode()))


def read_recorded(storage: Storage, at: RecordedAt) -> bytes:
    """Return the locations of a file's pages. Raises CorruptIndexError or another StorageError."""
    (view,) = storage.read_ranges(at.path, [(at.offset, at.size_bytes)])
    if _checksum(at.path, at.file, view) != at.crc32:
        raise corrupt(at.path, f"a wrong checksum of the pages of file {at.file}")
    return bytes(view)


class PageTableWriter:
    """Writes locations, file by file in ascending order, with the memory of one part."""

    def __init__(self, storage: Storage, folder: str) -> None:
        self._storage, self._folder = storage, folder
        self._waiting: list[bytes] = []
        self._size_bytes = 0
        self._rows: dict[int, tuple[int, int, int, int]] = {}
        self._parts: list[FileRecord] = []

    def _path(self) -> str:
        return f"{self._folder}/pages.{len(self._parts)}.bin"

    def add(self, file: int, data: bytes) -> None:
        """Add the locations of a file, by its number in the segment. Too long ones are left out."""
        if not 0 < len(data) <= MAX_RECORDED_BYTES:
            return
        if self._waiting and self._size_bytes + len(data) > RECORDED_PART_BYTES:
            self._flush()
        self._rows[file] = len(self._parts), self._size_bytes, len(data), _checksum(self._path(), file, data)
        self._waiting.append(data)
        self._size_bytes += len(data)

    def _flush(self) -> None:
        self._parts.append(write_blob(self._storage, self._path(), b"".join(self._waiting)))
        self._waiting, self._size_bytes = [], 0

    def finish(self, num_files: int) -> PagesRecord | None:
        """Write what is left; None if there are no locations."""
        if not self._rows:
            return None
        if self._waiting:
            self._flush()
        columns = np.zeros((len(PAGES), num_files), dtype=np.int64)
        columns[0] = NO_PART
        for file, row in self._rows.items():
            columns[:, file] = row
        table = pa.table([whole_numbers(np.ascontiguousarray(column)) for column in columns], schema=PAGES)
        return PagesRecord(write_batched(self._storage, f"{self._folder}/pages.arrow", table), tuple(self._parts))

    def abandon(self) -> None:
        """Delete what was written. Vacuum removes what cannot be deleted here."""
        with suppress(StorageError):
            for part in self._parts:
                self._storage.delete(part.path)


class PageTable:
    """The recorded locations of a segment. All methods raise CorruptIndexError."""

    def __init__(self, storage: Storage, segment: SegmentRecord, record: PagesRecord) -> None:
        self._storage, self._record = storage, record
        self._table = BatchedFile(storage, record.table, PAGES, segment.num_files, self._contradiction)
        self._last: tuple[int, memoryview] | None = None

    def _contradiction(self, number: int, batch: pa.RecordBatch) -> str | None:
        parts, offsets, sizes, _ = (numbers(batch[field.name], 8) for field in PAGES)
        ends = np.array([0, *(part.size_bytes for part in self._record.parts)])
        if not (parts.min() >= NO_PART and parts.max() < len(self._record.parts)):
            return f"a part that does not exist in batch {number}"
        within = (offsets >= 0) & (sizes >= 0) & (sizes <= MAX_RECORDED_BYTES) & (offsets <= ends[parts + 1] - sizes)
        return None if within.all() else f"locations outside of their part in batch {number}"

    def at(self, files: IntArray) -> list[RecordedAt | None]:
        """Return where the locations of these files are, None for a file without."""
        found: list[RecordedAt | None] = []
        for file in files.tolist():
            batch = self._table.batch(file // ROWS)
            part, offset, size_bytes, crc32 = (int(numbers(batch[field.name], 8)[file % ROWS]) for field in PAGES)
            if part == NO_PART or not size_bytes:
                found.append(None)
            else:
                found.append(RecordedAt(self._record.parts[part].path, file, offset, size_bytes, crc32))
        return found

    def copy(self, file: int) -> bytes | None:
        """Return the locations of a file to write them again: its part is read as a whole, for the files behind it."""
        (at,) = self.at(np.array([file]))
        if at is None:
            return None
        part = next(number for number, each in enumerate(self._record.parts) if each.path == at.path)
        if self._last is None or self._last[0] != part:
            self._last = part, read_blob(self._storage, self._record.parts[part])
        data = bytes(self._last[1][at.offset : at.offset + at.size_bytes])
        if _checksum(at.path, file, data) != at.crc32:
            raise corrupt(at.path, f"a wrong checksum of the pages of file {file}")
        return data

    def examine(self) -> None:
        """Read and check everything."""
        for first, batch in enumerate(self._table.scan()):
            for file in range(first * ROWS, first * ROWS + batch.num_rows):
                self.copy(file)
