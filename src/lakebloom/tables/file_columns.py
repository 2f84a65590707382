"""Many files as columns: no Python object for each of them, and comparisons of all at once."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

import lakebloom.arrow_compute as pc
from lakebloom.sbbf.hashing.buffers import bits
from lakebloom.tables.file_identity import TableFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    BoolArray = np.ndarray[Any, np.dtype[np.bool_]]
    IntArray = np.ndarray[Any, np.dtype[np.int64]]

__all__ = ["FileColumns", "FileRuns", "text_scalar", "texts", "whole_numbers"]

_UNSENDABLE = ""
_LONG = 64
"""Rows that follow each other are copied as runs, if these are so long on average: that is quicker than row by row."""


class FileRuns(Protocol):
    """Files that are read run by run."""

    @property
    def num_rows(self) -> int:
        """How many there are."""

    def chunks(self) -> Iterator[FileColumns]:
        """Yield all files, in their order."""


class FileColumns(NamedTuple):
    """Files, each with its identity. ``docs/FILE_IDENTITY.md`` says what that is."""

    uris: pa.Array
    """As large_string."""
    sizes: IntArray
    times: IntArray
    tags: pa.Array
    """As large_string, empty where there is none."""

    @classmethod
    def of(cls, files: Sequence[TableFile]) -> FileColumns:
        """Return these files as columns. A name that is not Unicode becomes an empty URI, which no indexed file has."""
        size, time = (np.fromiter(map(itemgetter(i), files), np.int64, len(files)) for i in (1, 2))
        return cls(texts([file[0] for file in files]), size, time, texts([file[3] for file in files]))

    @property
    def num_rows(self) -> int:
        """How many there are."""
        return len(self.sizes)

    def chunks(self) -> Iterator[FileColumns]:
        """Yield all files, in one run."""
        yield self

    def take(self, rows: IntArray) -> FileColumns:
        """Return some of the files."""
        ends = np.flatnonzero(np.diff(rows) != 1) + 1
        if _LONG * (len(ends) + 1) <= len(rows):
            runs = zip([0, *ends.tolist()], [*ends.tolist(), len(rows)], strict=True)
            return FileColumns.concat(self.slice(int(rows[start]), int(rows[end - 1]) + 1) for start, end in runs)
        chosen = whole_numbers(rows)
        return FileColumns(pc.take(self.uris, chosen), self.sizes[rows], self.times[rows], pc.take(self.tags, chosen))

    def slice(self, start: int, stop: int) -> FileColumns:
        """Return a run of the files."""
        count = stop - start
        return FileColumns(
            self.uris.slice(start, count), self.sizes[start:stop], self.times[start:stop], self.tags.slice(start, count)
        )

    def files(self) -> list[TableFile]:
        """Return the files as records."""
        return TableFile.stored(self.uris.to_pylist(), self.sizes.tolist(), self.times.tolist(), self.tags.to_pylist())

    def same_as(self, now: FileColumns) -> BoolArray:
        """Tell for each file whether it is the one in the same row of ``now``, as ``file_identity.is_same`` does."""
        nothing = text_scalar("")
        empty = pc.or_(pc.equal(self.tags, nothing), pc.equal(now.tags, nothing))
        tags = pc.or_(pc.equal(self.tags, now.tags), empty)
        uris = pc.equal(self.uris, now.uris)
        same: BoolArray = bits(pc.and_(uris, tags)) & (self.sizes == now.sizes) & (self.times == now.times)
        return same

    @classmethod
    def concat(cls, parts: Iterable[FileColumns]) -> FileColumns:
        """Return all files of several tables."""
        found = list(parts) or [cls.of([])]
        if len(found) == 1:
            return found[0]
        return cls(
            pa.concat_arrays([part.uris for part in found]),
            np.concatenate([part.sizes for part in found]),
            np.concatenate([part.times for part in found]),
            pa.concat_arrays([part.tags for part in found]),
        )


def texts(values: list[str]) -> pa.Array:
    """Return texts as an Arrow array of large_string; ``pa.array`` would load pandas. What is not Unicode is empty."""
    joined = "".join(values)
    if joined.isascii():
        data, sizes = joined.encode(), np.fromiter(map(len, values), np.int64, len(values))
    else:
        encoded = [_encoded(value) for value in values]
        data, sizes = b"".join(encoded), np.fromiter(map(len, encoded), np.int64, len(values))
    offsets = np.zeros(len(values) + 1, dtype=np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return pa.Array.from_buffers(pa.large_string(), len(values), [None, pa.py_buffer(offsets), pa.py_buffer(data)])


def text_scalar(value: str) -> pa.Scalar:
    """Return a large_string; a str given to a function of Arrow would load pandas."""
    return texts([value])[0]


def whole_numbers(values: IntArray) -> pa.Array:
    """Return numbers as an Arrow array of int64, without a copy."""
    values = np.ascontiguousarray(values, dtype=np.int64)
    return pa.Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(values)])


def _encoded(value: str) -> bytes:
    try:
        return value.encode()
    except UnicodeEncodeError:
        return _UNSENDABLE.encode()
