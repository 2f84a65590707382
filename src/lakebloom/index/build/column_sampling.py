"""Samples columns of Parquet files with PyArrow, to advise on them. Each chosen file is read once.

For each file and column: rows, NULLs, distinct values, minimum and maximum, and some values. Values are chosen by
their hash, the smallest first: a value that is chosen in one file is chosen in every file that holds it, so the
samples of two files show the share of values that they have in common.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakebloom.errors import LakebloomError
from lakebloom.index.build.column_advice import ColumnSample, FileSample
from lakebloom.index.threads import CORES, pool
from lakebloom.sbbf.hashing.hash_values import hash_array
from lakebloom.tables.columns import format_name
from lakebloom.tables.parquet.columns import ParquetColumns
from lakebloom.tuning import ADVISED_FILES, ADVISED_HASHES, ADVISED_KEYS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakebloom.tables.access import TableAccess
    from lakebloom.tables.file_identity import TableFile
    from lakebloom.tables.parquet.columns import ColumnSpec

__all__ = ["chosen_files", "sampled_columns"]


def chosen_files(files: Sequence[TableFile], most_bytes: int) -> list[TableFile]:
    """Choose evenly spaced files, at least two, within the limits."""
    mean_bytes = max(1, sum(file.size_bytes for file in files) // len(files))
    count = min(len(files), ADVISED_FILES, max(2, most_bytes // mean_bytes))
    return [files[number * len(files) // count] for number in range(count)]


def sampled_columns(
    files: Sequence[TableFile], columns: Sequence[ColumnSpec], access: TableAccess
) -> list[ColumnSample]:
    """Return a sample of each column in these files. A column that cannot be read in a file is omitted there."""

    def tallies(file: TableFile) -> list[_Tally | None]:
        return _tallies(file, columns, access)

    by_file = list(pool(CORES).map(tallies, files))
    return [
        ColumnSample(format_name(column.path), column.type, _samples([found[number] for found in by_file]))
        for number, column in enumerate(columns)
    ]


def _samples(tallies: Sequence[_Tally | None]) -> tuple[FileSample, ...]:
    read = [tally for tally in tallies if tally is not None]
    one_in = max([1, *(len(tally.hashes) // ADVISED_KEYS for tally in read)])
    return tuple(tally.sample(np.uint64((1 << 64) // one_in - 1)) for tally in read)


@dataclass(slots=True)
class _Tally:
    """The part of one column in one file that was read."""

    rows: int = 0
    nulls: int = 0
    hashes: Any = field(default_factory=lambda: np.empty(0, dtype=np.uint64))
    """The hashes of the distinct values, in order."""
    held: dict[int, Any] = field(default_factory=dict)
    """Values with the smallest hashes."""
    least: Any = None
    greatest: Any = None

    def add(self, array: pa.Array) -> None:
        plain = array.dictionary_decode() if pa.types.is_dictionary(array.type) else array
        self.rows += len(plain)
        self.nulls += plain.null_count
        known = plain.drop_null()
        if not len(known):
            return
        hashes, _ = hash_array(known)
        unique, places = np.unique(hashes, return_index=True)
        fresh = zip(unique[:ADVISED_HASHES].tolist(), places[:ADVISED_HASHES].tolist(), strict=True)
        for number, place in fresh:
            if number not in self.held:
                self.held[number] = known[place].as_py()
        self.held = dict(sorted(self.held.items())[:ADVISED_HASHES])
        self.hashes = np.union1d(self.hashes, unique)
        extremes = pc.min_max(known).as_py()
        self.least = extremes["min"] if self.least is None else min(self.least, extremes["min"])
        self.greatest = extremes["max"] if self.greatest is None else max(self.greatest, extremes["max"])

    def sample(self, below: np.uint64) -> FileSample:
        keys = frozenset(value for number, value in self.held.items() if number <= int(below))
        return FileSample(self.rows, self.nulls, len(self.hashes), self.least, self.greatest, keys)


def _tallies(file: TableFile, columns: Sequence[ColumnSpec], access: TableAccess) -> list[_Tally | None]:
    try:
        return list(_read(file, columns, access))
    except LakebloomError:
        if len(columns) == 1:
            return [None]
    return [_tallies(file, [column], access)[0] for column in columns]


def _read(file: TableFile, columns: Sequence[ColumnSpec], access: TableAccess) -> list[_Tally]:
    tallies = [_Tally() for _ in columns]
    with ParquetColumns(file.uri, columns, access) as reader:
        for number in range(len(reader.row_groups)):
            for _, arrays in reader.batches(number):
                for tally, array in zip(tallies, arrays, strict=True):
                    tally.add(array)
    return tallies
