"""The tables: the same files as a directory, a Delta table and an Iceberg table, with indexes on the key.

They are made once and kept.
"""

from __future__ import annotations

import multiprocessing
import shutil
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import convert_to_deltalake

from bench.parameters import PROCESSES, WORK, Tables
from lakebloom import BloomIndexConfig, Lakebloom

FOLDER = WORK / "tables"
INDEXES = FOLDER / "indexes"
Form = Literal["plain", "delta", "iceberg"]


@dataclass(frozen=True, slots=True)
class SameRows:
    """One table in several forms."""

    files: int
    rows_per_file: int

    def place(self, form: Form) -> Path:
        """Return the folder of a form."""
        return FOLDER / f"{form}-{self.files}"

    def index(self, form: Form) -> str:
        """Return the name of the index of a form."""
        return f"{form}_{self.files}"

    @property
    def names(self) -> list[str]:
        """The names of the files, the same in all forms."""
        return [f"{number:05}.parquet" for number in range(self.files)]

    def keys(self, count: int, seed: int) -> list[str]:
        """Return distinct keys of rows all over the table."""
        rng = np.random.default_rng(seed)
        places = rng.choice(self.files * self.rows_per_file, count, replace=False)
        return [_keys(self.files, place // self.rows_per_file, self.rows_per_file)[place % self.rows_per_file].as_py()
                for place in places.tolist()] if count <= 1000 else self._many(places)  # fmt: skip

    def _many(self, places: np.ndarray[Any, np.dtype[np.int64]]) -> list[str]:
        found: list[str] = []
        numbers = np.sort(places)
        for number in np.unique(numbers // self.rows_per_file).tolist():
            inside = numbers[numbers // self.rows_per_file == number] % self.rows_per_file
            found += _keys(self.files, number, self.rows_per_file).take(pa.array(inside)).to_pylist()
        return found


SEARCHED = SameRows(Tables.files, Tables.rows_per_file)
ERASED = SameRows(Tables.erased_files, Tables.erased_rows_per_file)


def absent_keys(count: int) -> list[str]:
    """Return keys that no table has, between the smallest and the largest of each file."""
    rng = np.random.default_rng(Tables.seed)
    return [f"{number}-" for number in rng.integers(1 << 60, 1 << 62, count).tolist()]


def is_ready(table: SameRows, form: Form) -> bool:
    """Tell whether a form and its index are there."""
    return _done(table, form).exists()


def make(lake: Lakebloom, table: SameRows, form: Form) -> None:
    """Make a form of a table and its index, if they are not there; the lake needs Spark."""
    if is_ready(table, form):
        return
    place = table.place(form)
    shutil.rmtree(place, ignore_errors=True)
    if form == "iceberg":
        make(lake, table, "plain")
        take_over([table.place("plain") / name for name in table.names], place)
    else:
        _write(table, place)
    if form == "delta":
        convert_to_deltalake(str(place))
    lake.create_index(str(place), BloomIndexConfig(table.index(form), ["user"]), replace=True)
    _done(table, form).touch()


def newest_metadata(home: Path) -> str:
    """Return the newest metadata file of an Iceberg table."""
    return str(max(home.glob("metadata/*.metadata.json")))


def take_over(files: list[Path], home: Path) -> None:
    """Make an Iceberg table of Parquet files, which stay where they are."""
    from pyiceberg.catalog.sql import SqlCatalog

    home.mkdir(parents=True, exist_ok=True)
    catalog = SqlCatalog("bench", uri="sqlite:///:memory:", warehouse=f"file://{home}")
    catalog.create_namespace("bench")
    made = catalog.create_table("bench.events", pq.read_schema(files[0]), location=f"file://{home}")
    made.add_files([f"file://{file}" for file in files])


def _done(table: SameRows, form: Form) -> Path:
    return FOLDER / f"{table.index(form)}.done"


def _write(table: SameRows, folder: Path) -> None:
    """Write the files."""
    folder.mkdir(parents=True)
    with ProcessPoolExecutor(PROCESSES, multiprocessing.get_context("spawn")) as pool:
        write = partial(_write_file, table, folder)
        list(pool.map(write, range(table.files), chunksize=max(1, table.files // 100)))


def _write_file(table: SameRows, folder: Path, number: int) -> None:
    keys = _keys(table.files, number, table.rows_per_file)
    amounts = pa.array(np.arange(table.rows_per_file) % 1000)
    rows = pa.table({"user": keys, "amount": amounts, "note": pc.utf8_reverse(keys)})
    pq.write_table(rows, folder / table.names[number], row_group_size=table.rows_per_file)


def _keys(files: int, number: int, count: int) -> pa.Array:
    rng = np.random.default_rng([Tables.seed, files, number])
    return pc.cast(pa.array(rng.integers(1 << 60, 1 << 62, count)), pa.string())
