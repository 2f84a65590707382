"""Tables of an index in batches, so that a query reads only the rows that it needs.

    head             an Arrow schema message with the metadata "lakebloom" (the version of the format) and "batches"
    batch 0          an Arrow dictionary, if the schema has one, and an Arrow record batch of ROWS rows
    batch 1          ...
    end of stream

The whole is an Arrow stream that any Arrow reader reads. "batches" has the size and the CRC-32 of each batch, so that
each is read and checked by itself. The commit has the size and the CRC-32 of the head. So nothing is used that was not
checked, and a batch in the wrong place is found out.

Files may come from an untrusted writer. Arrow decompresses a buffer to any size that it claims, so compressed buffers
are refused before they are opened. Plain buffers are slices of the bytes that were read.
"""

from __future__ import annotations

import struct
import zlib
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from lakebloom.errors import StorageError
from lakebloom.store.arrow_file import require_plain
from lakebloom.store.files import corrupt, failure, require_format
from lakebloom.store.kept_batches import kept_batch
from lakebloom.store.records import FORMAT_VERSION, BatchedRecord
from lakebloom.tuning import SCANNED_BYTES, SMALL_TABLE_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from lakebloom.errors import CorruptIndexError
    from lakebloom.storage import Storage

    IntArray = np.ndarray[Any, np.dtype[np.int64]]

__all__ = ["ROWS", "BatchedFile", "hex_numbers", "parse_hex_numbers", "write_batched"]

ROWS = 4096
"""Rows of each batch but the last."""
_END_OF_STREAM = b"\xff\xff\xff\xff\0\0\0\0"
_BATCHES = b"batches"
_BATCH = np.dtype([("size_bytes", "<u4"), ("crc32", "<u4")])


def write_batched(
    storage: Storage, path: str, table: pa.Table, metadata: Mapping[str, str] | None = None
) -> BatchedRecord:
    """Write a table and return the record of its file."""
    plain = table.schema.remove_metadata()
    batches = [_batch(table.slice(start, ROWS), plain) for start in range(0, len(table), ROWS)]
    described = np.array([(len(batch), zlib.crc32(batch)) for batch in batches], dtype=_BATCH)
    found = {"lakebloom": str(FORMAT_VERSION), _BATCHES.decode(): described.tobytes().hex(), **(metadata or {})}
    head = plain.with_metadata(found).serialize().to_pybytes()
    crc32 = zlib.crc32(head)
    for piece in (*batches, _END_OF_STREAM):
        crc32 = zlib.crc32(piece, crc32)
    storage.write(path, [head, *batches, _END_OF_STREAM])
    size_bytes = len(head) + sum(map(len, batches)) + len(_END_OF_STREAM)
    return BatchedRecord(path, size_bytes, crc32, len(head), zlib.crc32(head))


def _batch(rows: pa.Table, schema: pa.Schema) -> bytes:
    """Return the messages after the schema, without the end of the stream."""
    batch = pa.record_batch([_joined(column.chunks) for column in rows.columns], schema=schema)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data[len(schema.serialize()) : -len(_END_OF_STREAM)]


def _joined(chunks: list[pa.Array]) -> pa.Array:
    if not pa.types.is_dictionary(chunks[0].type):
        return pa.concat_arrays(chunks)
    # Encoded again: the dictionary of a slice still has the texts of all rows.
    return pa.concat_arrays([chunk.dictionary_decode() for chunk in chunks]).dictionary_encode()


def hex_numbers(numbers: IntArray) -> str:
    """Return numbers as text for the head of a file."""
    return numbers.astype("<i8").tobytes().hex()


def parse_hex_numbers(text: bytes) -> IntArray:
    """Return the numbers in such a text. Raises ValueError."""
    return np.frombuffer(bytes.fromhex(text.decode("ascii")), dtype="<i8")


class _Head(NamedTuple):
    metadata: Mapping[bytes, bytes]
    sizes: IntArray
    crc32s: IntArray
    offsets: IntArray
    """Where each batch starts, and where the last one ends."""


class BatchedFile:
    """A table of a segment. Its head is read when the first row is; batches are read as they are needed.

    ``check`` gets each batch that is read, with its number, and returns what is impossible in it, None if nothing is.
    """

    def __init__(
        self,
        storage: Storage,
        record: BatchedRecord,
        schema: pa.Schema,
        num_rows: int,
        check: Callable[[int, pa.RecordBatch], str | None] = lambda _number, _batch: None,
    ) -> None:
        self.record = record
        self.schema = schema
        self.num_rows = num_rows
        self._storage = storage
        self._check = check
        self._known_head: _Head | None = None

    @cached_property
    def _schema_bytes(self) -> bytes:
        data: bytes = self.schema.serialize().to_pybytes()
        return data

    @property
    def metadata(self) -> Mapping[bytes, bytes]:
        """The metadata in the head. Raises CorruptIndexError or UnknownFormatError."""
        return self._head().metadata

    def batch(self, number: int) -> pa.RecordBatch:
        """Return a batch. Recently used ones stay in memory. Raises CorruptIndexError."""
        self._head()  # of a small file it keeps all batches
        return kept_batch(self, number, lambda: self._read(number))

    def scan(self) -> Iterator[pa.RecordBatch]:
        """Yield all batches in their order, without keeping more than one. Raises CorruptIndexError."""
        head = self._head()
        if len(head.sizes) == 1:
            yield self.batch(0)
            return
        first = 0
        while first < len(head.sizes):
            # At least one batch; more as long as they are small.
            limit = head.offsets[first] + SCANNED_BYTES
            end = max(first + 1, int(np.searchsorted(head.offsets, limit, side="right")) - 1)
            data = self._bytes(int(head.offsets[first]), int(head.offsets[end] - head.offsets[first]))
            for number in range(first, end):
                yield self._decoded(number, self._part_of(data, head, number, int(head.offsets[first])))
            first = end

    def corrupt(self, found: str) -> CorruptIndexError:
        """Return the error for contents that cannot be right."""
        return corrupt(self.record.path, found)

    def _read(self, number: int) -> pa.RecordBatch:
        head = self._head()
        return self._decoded(number, self._bytes(int(head.offsets[number]), int(head.sizes[number])))

    @staticmethod
    def _part_of(data: memoryview, head: _Head, number: int, start: int) -> memoryview:
        low = int(head.offsets[number]) - start
        return data[low : low + int(head.sizes[number])]

    def _bytes(self, offset: int, length: int) -> memoryview:
        try:
            (view,) = self._storage.read_ranges(self.record.path, [(offset, length)])
        except StorageError as error:
            raise failure(self._storage, self.record, error) from error
        return view

    def _head(self) -> _Head:
        if self._known_head is None:
            is_small = self.record.size_bytes <= SMALL_TABLE_BYTES
            data = self._bytes(0, self.record.size_bytes if is_small else self.record.head_bytes)
            self._known_head = head = self._parsed(data[: self.record.head_bytes])
            if is_small:  # that was all of it
                for number in range(len(head.sizes)):
                    kept_batch(self, number, lambda i=number: self._decoded(i, self._part_of(data, head, i, 0)))  # type: ignore[misc]
        return self._known_head

    def _parsed(self, data: memoryview) -> _Head:
        if zlib.crc32(data) != self.record.head_crc32:
            raise self.corrupt("a wrong checksum")
        try:
            schema = pa.ipc.read_schema(pa.py_buffer(data))
            require_format(self.record.path, schema)
            if not schema.equals(self.schema):
                raise self.corrupt(f"another schema: {', '.join(schema.names)}")
            described = np.frombuffer(bytes.fromhex(schema.metadata.get(_BATCHES, b"").decode("ascii")), dtype=_BATCH)
        except (pa.ArrowException, OSError, ValueError, UnicodeError) as error:
            raise self.corrupt(str(error)) from error
        sizes, crc32s = (described[name].astype(np.int64) for name in ("size_bytes", "crc32"))
        offsets = self.record.head_bytes + np.append(0, np.cumsum(sizes))
        if len(sizes) != -(-self.num_rows // ROWS) or int(offsets[-1]) > self.record.size_bytes:
            raise self.corrupt(f"{len(sizes)} batches for {self.num_rows} rows, up to byte {offsets[-1]}")
        return _Head(schema.metadata, sizes, crc32s, offsets)

    def _decoded(self, number: int, data: memoryview) -> pa.RecordBatch:
        if zlib.crc32(data) != self._head().crc32s[number]:
            raise self.corrupt(f"a wrong checksum of batch {number}")
        stream = pa.py_buffer(b"".join((self._schema_bytes, data, _END_OF_STREAM)))
        try:
            require_plain(self.record.path, stream)
            with pa.ipc.open_stream(stream) as reader:
                batch = reader.read_next_batch()
            batch.validate(full=True)
        except (pa.ArrowException, OSError, ValueError, struct.error, UnicodeError, StopIteration) as error:
            raise self.corrupt(str(error) or "no rows") from error
        found = self._contradiction(number, batch)
        if found is not None:
            raise self.corrupt(found)
        return batch

    def _contradiction(self, number: int, batch: pa.RecordBatch) -> str | None:
        if batch.num_rows != min(ROWS, self.num_rows - number * ROWS):
            return f"{batch.num_rows} rows in batch {number} of {self.num_rows} rows"
        for field, column in zip(self.schema, batch.columns, strict=True):
            if not field.nullable and _has_nulls(column):
                return f"nulls in {field.name}"
        return self._check(number, batch)


def _has_nulls(column: pa.Array) -> bool:
    return bool(column.null_count or (pa.types.is_dictionary(column.type) and column.dictionary.null_count))
