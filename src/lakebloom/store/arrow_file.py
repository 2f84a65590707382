"""Arrow files of an index, read as untrusted input: no decompression, and no more memory than the file has bytes.

    "ARROW1\\0\\0"   schema   dictionaries   record batches   end of stream   footer   "ARROW1"

The part between the magic number and the footer is an Arrow stream, and is read as one. The footer is not used, so
nothing is read that was not checked. Arrow decompresses a buffer to any size that it claims, so compressed buffers are
refused before they are opened. Plain buffers are slices of the file's bytes.
"""

from __future__ import annotations

import struct

import pyarrow as pa

from lakebloom.store.files import corrupt, require_format

__all__ = ["read_arrow", "require_plain"]

_MAGIC = b"ARROW1\0\0"
# Field numbers in Arrow's Message.fbs: Message.header, DictionaryBatch.data, RecordBatch.compression.
_HEADER, _BATCH_OF_DICTIONARY, _COMPRESSION = 2, 1, 3


def read_arrow(path: str, data: memoryview, schema: pa.Schema, num_rows: int) -> pa.Table:
    """Return the table in an Arrow file. Raises CorruptIndexError for another schema or another number of rows.

    Raises UnknownFormatError for a file of another version of the format.
    """
    if bytes(data[: len(_MAGIC)]) != _MAGIC:
        raise corrupt(path, "not an Arrow file")
    stream = pa.py_buffer(data[len(_MAGIC) :])
    try:
        require_plain(path, stream)
        with pa.ipc.open_stream(stream) as reader:
            require_format(path, reader.schema)
            if not reader.schema.equals(schema):
                raise corrupt(path, f"another schema: {', '.join(reader.schema.names)}")
            batches = []
            rows = 0
            for batch in reader:
                rows += batch.num_rows
                if rows > num_rows:
                    break
                batch.validate(full=True)
                batches.append(batch)
    except (pa.ArrowException, OSError, ValueError, struct.error, UnicodeError) as error:
        raise corrupt(path, str(error)) from error
    if rows != num_rows:
        raise corrupt(path, f"another number of rows than {num_rows}")
    return pa.Table.from_batches(batches, schema)


def require_plain(path: str, stream: pa.Buffer) -> None:
    """Raise CorruptIndexError if a buffer of an Arrow stream is compressed. Raises what Arrow and struct raise."""
    for message in pa.ipc.MessageReader.open_stream(stream):
        data = memoryview(message.metadata)
        batch = _child(data, _number("<I", data, 0), _HEADER)
        if message.type == "dictionary" and batch is not None:
            batch = _child(data, batch, _BATCH_OF_DICTIONARY)
        if message.type != "schema" and (batch is None or _child(data, batch, _COMPRESSION) is not None):
            raise corrupt(path, "compressed buffers, which lakebloom never writes")


def _child(data: memoryview, table: int, field: int) -> int | None:
    """Return the offset of a nested table in a flatbuffer, None if the field is absent."""
    fields = table - _number("<i", data, table)  # the offset of each field; 0 for an absent one
    if 4 + 2 * field >= _number("<H", data, fields):
        return None
    offset = _number("<H", data, fields + 4 + 2 * field)
    return table + offset + _number("<I", data, table + offset) if offset else None


def _number(form: str, data: memoryview, at: int) -> int:
    number: int = struct.unpack_from(form, data, at)[0]
    return number
