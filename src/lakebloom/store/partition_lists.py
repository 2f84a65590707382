"""The partitions of a catalog table as a file of the index: one row a partition.

    path     string            relative to the table's location; a URI if it is elsewhere
    values   list<string>      one for each partition column, null for NULL

A commit only names the file, so it stays small for a table with many partitions.
"""

from __future__ import annotations

import uuid
import zlib
from contextlib import suppress
from typing import TYPE_CHECKING

import pyarrow as pa

from lakebloom.errors import CorruptIndexError
from lakebloom.store.arrow_file import read_arrow
from lakebloom.store.files import arrow_ipc_bytes, corrupt, read_blob, write_blob
from lakebloom.store.records import FORMAT_VERSION, PartitionsRecord
from lakebloom.tables.formats.partition_list import PartitionList

if TYPE_CHECKING:
    from lakebloom.storage import Storage

__all__ = ["read_partitions", "write_partitions"]

FOLDER = "partitions"
_SCHEMA = pa.schema(
    [pa.field("path", pa.string(), nullable=False), pa.field("values", pa.list_(pa.string()), nullable=False)],
    metadata={"lakebloom": str(FORMAT_VERSION)},
)


def write_partitions(
    storage: Storage, partitions: PartitionList, prefix: str, known: PartitionsRecord | None = None
) -> PartitionsRecord:
    """Write a list under a name that starts with ``prefix``. Writes nothing if it equals the ``known`` one."""
    base = f"{partitions.base}/"
    paths = [directory.removeprefix(base) for directory in partitions.values]
    table = pa.table([paths, [list(values) for values in partitions.values.values()]], schema=_SCHEMA)
    data = arrow_ipc_bytes(table)
    if known is not None and (known.file.size_bytes, known.file.crc32) == (data.size, zlib.crc32(data)):
        with suppress(CorruptIndexError):
            read_blob(storage, known.file)
            return known
    file = write_blob(storage, f"{FOLDER}/{prefix}{uuid.uuid4()}.arrow", data)
    return PartitionsRecord(len(paths), partitions.places, file)


def read_partitions(storage: Storage, record: PartitionsRecord, base: str, num_columns: int) -> PartitionList:
    """Read the list of a table at this location. Raises CorruptIndexError or UnknownFormatError."""
    table = read_arrow(record.file.path, read_blob(storage, record.file), _SCHEMA, record.count)
    values = [tuple(given) for given in table["values"].to_pylist()]
    if any(len(given) != num_columns for given in values):
        raise corrupt(record.file.path, f"a partition without {num_columns} values")
    directories = [path if "://" in path else f"{base}/{path}" for path in table["path"].to_pylist()]
    return PartitionList(base, dict(zip(directories, values, strict=True)))
