"""The tables: the same files as a directory and as a Delta table, each with an index on the key. They are kept."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import convert_to_deltalake

from bench.parameters import WORK, Tables
from bench.session import session
from lakebloom import BloomIndexConfig, Lakebloom

FOLDER = WORK / "tables"
INDEXES = FOLDER / "indexes"


@dataclass(frozen=True, slots=True)
class BothTables:
    """One table in both forms, and the names of their indexes."""

    files: int
    rows_per_file: int
    plain: str
    delta: str

    @property
    def plain_index(self) -> str:
        """The index of the directory."""
        return f"plain_{self.files}"

    @property
    def delta_index(self) -> str:
        """The index of the Delta table."""
        return f"delta_{self.files}"

    def keys(self, count: int, seed: int) -> list[str]:
        """Return distinct keys of rows all over the table."""
        rng = np.random.default_rng(seed)
        places = rng.choice(self.files * self.rows_per_file, count, replace=False)
        return [_keys(self.files, place // self.rows_per_file, self.rows_per_file)[place % self.rows_per_file].as_py()
                for place in places.tolist()] if count <= 1000 else self._many(places)  # fmt: skip

    def _many(self, places: np.ndarray) -> list[str]:
        found: list[str] = []
        numbers = np.sort(places)
        for number in np.unique(numbers // self.rows_per_file).tolist():
            inside = numbers[numbers // self.rows_per_file == number] % self.rows_per_file
            found += _keys(self.files, number, self.rows_per_file).take(pa.array(inside)).to_pylist()
        return found


def absent_keys(count: int) -> list[str]:
    """Return keys that no table has, between the smallest and the largest of each file."""
    rng = np.random.default_rng(Tables.seed)
    return [f"{number}-" for number in rng.integers(1 << 60, 1 << 62, count).tolist()]


def both_tables() -> list[BothTables]:
    """Return a table for lookups and one for erasure; what is not there is made first."""
    sizes = ((Tables.files, Tables.rows_per_file), (Tables.erased_files, Tables.erased_rows_per_file))
    made = [
        BothTables(files, rows, str(FOLDER / f"plain-{files}"), str(FOLDER / f"delta-{files}")) for files, rows in sizes
    ]
    missing = [each for each in made if not _done(each).exists()]
    if missing:
        spark = session("tables")
        lake = Lakebloom(spark, INDEXES)
        for each in missing:
            _make(each)
            for name, place in ((each.plain_index, each.plain), (each.delta_index, each.delta)):
                lake.create_index(place, BloomIndexConfig(name, ["user"]), replace=True)
            _done(each).touch()
        spark.stop()
    return made


def _done(table: BothTables) -> Path:
    return FOLDER / f"{table.files}.done"


def _make(table: BothTables) -> None:
    make_plain(table)
    shutil.rmtree(table.delta, ignore_errors=True)
    shutil.copytree(table.plain, table.delta)
    convert_to_deltalake(table.delta)


def make_plain(table: BothTables) -> None:
    """Write the files of the directory."""
    shutil.rmtree(table.plain, ignore_errors=True)
    Path(table.plain).mkdir(parents=True)
    for number in range(table.files):
        keys = _keys(table.files, number, table.rows_per_file)
        amounts = pa.array(np.arange(table.rows_per_file) % 1000)
        rows = pa.table({"user": keys, "amount": amounts, "note": pc.utf8_reverse(keys)})
        pq.write_table(rows, f"{table.plain}/{number:05}.parquet", row_group_size=table.rows_per_file)


def _keys(files: int, number: int, count: int) -> pa.Array:
    rng = np.random.default_rng([Tables.seed, files, number])
    return pc.cast(pa.array(rng.integers(1 << 60, 1 << 62, count)), pa.string())
