"""Tables whose values are spread differently: the same rows in parts, each of which is a unit."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.parameters import Size

UNIQUE = "unique keys"
IntArray: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True, slots=True)
class Parts:
    """Values of one column, part by part."""

    name: str
    values: tuple[IntArray, ...]

    @property
    def table(self) -> pa.Table:
        """All rows, with the number of their part."""
        numbers = np.repeat(np.arange(len(self.values), dtype=np.int32), len(self.values[0]))
        return pa.table({"part": numbers, "k": np.concatenate(self.values)})

    @property
    def distinct(self) -> int:
        """How many values there are, counted in each part."""
        return sum(len(np.unique(part)) for part in self.values)

    def zones(self, rows: int) -> Parts:
        """Return the same values in parts of at most so many rows, none across two parts."""
        cut = [part[start : start + rows] for part in self.values for start in range(0, len(part), rows)]
        return Parts(self.name, tuple(cut))

    def write_plain(self, folder: Path) -> Path:
        """Write a file for each part, without filters."""
        folder.mkdir(parents=True)
        for number, part in enumerate(self.values):
            pq.write_table(pa.table({"k": part}), folder / f"part-{number:05d}.parquet", use_dictionary=False)
        return folder


def all_parts() -> list[Parts]:
    """Return every table. Values are even numbers, so that odd ones are in none."""
    rng = np.random.default_rng(Size.seed)
    files, rows = Size.files, Size.rows_per_file
    skewed = [2 * (rng.zipf(Size.skew, rows) % Size.users) for _ in range(files)]
    return [
        Parts(UNIQUE, tuple(_unique(rng, rows) for _ in range(files))),
        Parts("skewed keys", tuple(skewed)),
        Parts("few distinct values", tuple(2 * rng.integers(0, Size.few_distinct, rows) for _ in range(files))),
        Parts("tiny files", tuple(_unique(rng, Size.tiny_rows) for _ in range(Size.tiny_files))),
    ]


def absent(count: int) -> IntArray:
    """Return values that are nowhere."""
    rng = np.random.default_rng([Size.seed, 1])
    values: IntArray = 2 * rng.integers(0, 2**61, count) + 1
    return values


def _unique(rng: np.random.Generator, rows: int) -> IntArray:
    values: IntArray = 2 * rng.integers(0, 2**61, rows)
    return values
