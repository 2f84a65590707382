"""The results of tasks: rows of (kind, name, number, payload).

result      the result of the task, as JSON; number is the shard
partial     some blocks of a global filter: name is the column, number the range of blocks
file        a file of the segment, if the task could not write it (for example to an index on HDFS);
            name is its path, number the shard
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa

from lakebloom.storage.buffers import as_views

if TYPE_CHECKING:
    from lakebloom.index.build.plan import ShardResult
    from lakebloom.storage import Buffers, StoredFile

RESULT_SCHEMA = "kind string, name string, number int, payload binary"
_ARROW_SCHEMA = pa.schema(
    [("kind", pa.string()), ("name", pa.string()), ("number", pa.int32()), ("payload", pa.binary())]
)


def row(kind: str, name: str, number: int, payload: bytes) -> pa.RecordBatch:
    """Return one row."""
    return pa.RecordBatch.from_pylist(
        [{"kind": kind, "name": name, "number": number, "payload": payload}], schema=_ARROW_SCHEMA
    )


def result_row(result: ShardResult) -> pa.RecordBatch:
    """Return the result of a task."""
    return row("result", "", result.shard, msgspec.json.encode(result))


class CapturedFiles:
    """A storage that keeps files in memory, for the driver to write."""

    def __init__(self, uri: str) -> None:
        self._uri = uri
        self.files: dict[str, bytes] = {}

    @property
    def uri(self) -> str:
        """The index's location."""
        return self._uri

    def write(self, path: str, data: Buffers) -> None:
        """Keep a file."""
        self.files[path] = b"".join(as_views(data))

    def put_if_absent(self, path: str, data: Any) -> None:
        """Refuse: only the driver commits."""
        raise AssertionError("a task does not commit")

    def read(self, path: str) -> memoryview:
        """Return a file that was written."""
        return memoryview(self.files[path])

    def read_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> list[memoryview]:
        """Return parts of a file that was written."""
        view = memoryview(self.files[path])
        return [view[offset : offset + length] for offset, length in ranges]

    def list(self, prefix: str) -> Iterator[StoredFile]:
        """List nothing."""
        return iter(())

    def temporaries(self, prefix: str) -> Iterator[StoredFile]:
        """List nothing."""
        return iter(())

    def delete(self, path: str) -> None:
        """Forget a file."""
        self.files.pop(path, None)


def captured_rows(captured: CapturedFiles, result: ShardResult) -> Iterator[pa.RecordBatch]:
    """Yield the files that the driver must write: those of the segment, not those of a repeated attempt."""
    if result.segment is None:
        return
    for record in result.segment.files:
        yield row("file", record.path, result.shard, captured.files[record.path])
