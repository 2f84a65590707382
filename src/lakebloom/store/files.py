"""Files of an index, each with the size and checksum that the commit records."""

from __future__ import annotations

import zlib
from contextlib import suppress
from typing import TYPE_CHECKING

import pyarrow as pa

from lakebloom.errors import CorruptIndexError, LakebloomError, NotFoundError, StorageError
from lakebloom.storage.local.reads import identity
from lakebloom.storage.local.storage import LocalStorage
from lakebloom.store.records import FORMAT_VERSION, REPAIR, FileRecord
from lakebloom.store.versions import unknown_format

if TYPE_CHECKING:
    from lakebloom.storage import Buffer, Storage


def write_blob(storage: Storage, path: str, data: Buffer) -> FileRecord:
    """Write a file and return its record."""
    view = memoryview(data)
    storage.write(path, data)
    return FileRecord(path=path, size_bytes=view.nbytes, crc32=zlib.crc32(view))


def read_blob(storage: Storage, record: FileRecord) -> memoryview:
    """Return a whole file. Raises CorruptIndexError if its size or checksum is wrong."""
    try:
        if isinstance(storage, LocalStorage):
            # Check the size before reading: a sparse file may be larger than the memory.
            size_bytes = identity(storage.file(record.path))[2]
            if size_bytes != record.size_bytes:
                raise corrupt(record.path, f"{size_bytes} bytes instead of {record.size_bytes}")
        data = storage.read(record.path)
    except NotFoundError as error:
        raise corrupt(record.path, "no such file") from error
    if data.nbytes != record.size_bytes:
        raise corrupt(record.path, f"{data.nbytes} bytes instead of {record.size_bytes}")
    if zlib.crc32(data) != record.crc32:
        raise corrupt(record.path, "a wrong checksum")
    return data


def failure(storage: Storage, record: FileRecord, error: StorageError) -> LakebloomError:
    """Return the error for a failed read of a range: damage if the file is missing or has another size."""
    if isinstance(error, NotFoundError):
        return corrupt(record.path, "no such file")
    with suppress(StorageError):
        folder = record.path.rpartition("/")[0]
        sizes = [file.size_bytes for file in storage.list(folder) if file.path == record.path]
        if not sizes:
            return corrupt(record.path, "no such file")
        if sizes[0] != record.size_bytes:
            return corrupt(record.path, f"{sizes[0]} bytes instead of {record.size_bytes}")
    return error


def corrupt(path: str, found: str) -> CorruptIndexError:
    """Return the error for a file that is not what the commit records."""
    return CorruptIndexError(
        f"cannot use the index file {path}",
        found=found,
        hint=REPAIR,
    )


def require_format(path: str, schema: pa.Schema) -> None:
    """Raise UnknownFormatError for an Arrow file of another version of the format."""
    found = (schema.metadata or {}).get(b"lakebloom", b"none").decode("utf-8", "replace")
    if found != str(FORMAT_VERSION):
        raise unknown_format(path, found)


def arrow_ipc_bytes(table: pa.Table) -> pa.Buffer:
    """Return a table as an Arrow IPC file in one record batch."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        for batch in table.combine_chunks().to_batches():
            writer.write_batch(batch)
    return sink.getvalue()
