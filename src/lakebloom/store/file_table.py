"""The files of a segment, read batch by batch. Only files that a caller needs become Python objects."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

import lakebloom.arrow_compute as pc
from lakebloom.sbbf.hashing.buffers import numbers
from lakebloom.store.batched_file import ROWS, BatchedFile, parse_hex_numbers
from lakebloom.store.unit_columns import FILES, FIRST_UNITS
from lakebloom.tables.file_columns import FileColumns, text_scalar, whole_numbers
from lakebloom.tables.file_identity import TableFile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakebloom.storage import Storage
    from lakebloom.store.records import SegmentRecord

    IntArray = np.ndarray[Any, np.dtype[np.int64]]

__all__ = ["FileTable"]

_FEW = 4
"""Up to so many files are read value by value."""
_IDENTITY = ("directory", "name", "size_bytes", "mtime_ms", "tag")


class FileTable:
    """The files of a segment, numbered by their rows. All methods that read raise CorruptIndexError."""

    def __init__(self, storage: Storage, record: SegmentRecord) -> None:
        self._file = BatchedFile(storage, record.table_files, FILES, record.num_files, self._contradiction)
        self._num_units = record.num_units

    def __len__(self) -> int:
        return self._file.num_rows

    @cached_property
    def _starts(self) -> IntArray:
        """The first unit of each batch."""
        try:
            starts = parse_hex_numbers(self._file.metadata.get(FIRST_UNITS.encode(), b""))
        except ValueError as error:
            raise self._file.corrupt(str(error)) from error
        if len(starts) != -(-len(self) // ROWS) or (len(starts) and not self._in_order(starts, self._num_units)):
            raise self._file.corrupt(f"first units {starts[:3].tolist()} ...")
        return starts

    @staticmethod
    def _in_order(starts: IntArray, end: int) -> bool:
        return bool(starts[0] >= 0 and (np.diff(starts) > 0).all() and starts[-1] < end)

    def _contradiction(self, number: int, batch: pa.RecordBatch) -> str | None:
        firsts = numbers(batch["first_unit"], 4)
        end = self._starts[number + 1] if number + 1 < len(self._starts) else self._num_units
        if firsts[0] != self._starts[number] or not self._in_order(firsts, int(end)):
            return f"first units that are not in order in batch {number}"
        if len(self) == self._num_units and firsts[0] != number * ROWS:
            return f"a file without a unit in batch {number}"
        if not (np.diff(_offsets(batch["name"])) > 0).all():
            return f"a file without a name in batch {number}"
        return None

    def of_units(self, units: IntArray) -> IntArray:
        """Return the number of the file of each of these units."""
        if len(self) == self._num_units:
            return units  # each file has one
        places = np.searchsorted(self._starts, units, side="right") - 1
        found = np.empty(len(units), dtype=np.int64)
        for number in sorted(set(places.tolist())):
            here = places == number
            firsts = numbers(self._file.batch(number)["first_unit"], 4)
            found[here] = number * ROWS + np.searchsorted(firsts, units[here], side="right") - 1
        return found

    @cached_property
    def first_units(self) -> IntArray:
        """The number of each file's first unit."""
        if len(self) == self._num_units:
            return np.arange(len(self))
        firsts = (numbers(batch["first_unit"], 4) for batch in self._file.scan())
        return np.concatenate([np.empty(0, np.int64), *firsts])

    def rows(self, wanted: IntArray) -> list[TableFile]:
        """Return some of the files."""
        if len(wanted) <= _FEW:
            return [self._row(number) for number in wanted.tolist()]
        places = wanted // ROWS
        found: list[TableFile | None] = [None] * len(wanted)
        for number in sorted(set(places.tolist())):
            here = np.flatnonzero(places == number)
            files = _columns(_taken(self._file.batch(number), wanted[here] - number * ROWS)).files()
            for at, file in zip(here.tolist(), files, strict=True):
                found[at] = file
        return found  # type: ignore[return-value]

    def uris(self, wanted: IntArray) -> list[str]:
        """Return the URIs of some of the files, given in ascending order."""
        if len(wanted) <= _FEW:
            return [self._row(number).uri for number in wanted.tolist()]
        places = wanted // ROWS
        found: list[str] = []
        for number in sorted(set(places.tolist())):
            rows = wanted[places == number] - number * ROWS
            found += _uris(_taken(self._file.batch(number), rows)).to_pylist()
        return found

    def _row(self, number: int) -> TableFile:
        """Return one file."""
        batch, row = self._file.batch(number // ROWS), number % ROWS
        directory, name, size_bytes, mtime_ms, tag = (batch[field][row].as_py() for field in _IDENTITY)
        (found,) = TableFile.stored([directory + name], [size_bytes], [mtime_ms], [tag])
        return found

    def chunks(self) -> Iterator[FileColumns]:
        """Yield all files, batch by batch."""
        yield from map(_columns, self._file.scan())

    def table(self) -> pa.Table:
        """Return all files as they are stored."""
        return pa.Table.from_batches(list(self._file.scan()), FILES)


def _taken(batch: pa.RecordBatch, rows: IntArray) -> pa.RecordBatch:
    return batch.slice(int(rows[0]), 1) if len(rows) == 1 else pc.take(batch, whole_numbers(rows))


def _columns(batch: pa.RecordBatch) -> FileColumns:
    return FileColumns(
        _uris(batch),
        numbers(batch["size_bytes"], 8),
        numbers(batch["mtime_ms"], 8),
        pc.cast(batch["tag"], pa.large_string()),
    )


def _uris(batch: pa.RecordBatch) -> pa.Array:
    parts = (pc.cast(batch[name], pa.large_string()) for name in ("directory", "name"))
    return pc.binary_join_element_wise(*parts, text_scalar(""))


def _offsets(texts: pa.Array) -> IntArray:
    found: IntArray = np.frombuffer(texts.buffers()[1], dtype="<i4")[texts.offset : texts.offset + len(texts) + 1]
    return found
