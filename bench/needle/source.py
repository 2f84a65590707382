"""The tables that are searched: the same rows twice, without and with Parquet's own filters, with the truth about them.

Written once and kept. The smaller tables are the first files of the largest one. Files without filters are real copies,
because lookups search them too, and files with several names are not watched; those with filters are other names of the
same files.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.build.source import uuids
from bench.parameters import PROCESSES, Needle

_WORDS = [f"payload-{number:03d}" for number in range(200)]


@dataclass(frozen=True, slots=True)
class Haystack:
    """A table, its copy with embedded filters, and one row of each file."""

    files: int
    rows_per_file: int
    plain: str
    embedded: str
    rows: list[tuple[str, int]]
    """Key and amount."""


def haystacks(work: Path, sizes: list[int], rows_per_file: int) -> list[Haystack]:
    """Return tables of these numbers of files, which are written first if they are not there."""
    largest = _largest(work / f"files-{max(sizes)}", max(sizes), rows_per_file)
    return [_first(largest, work / f"files-{size}", size) for size in sizes]


def _largest(work: Path, files: int, rows_per_file: int) -> Haystack:
    truth = work / "truth.json"
    if not truth.exists():
        shutil.rmtree(work, ignore_errors=True)
        for copy in ("plain", "embedded"):
            (work / copy).mkdir(parents=True)
        with ProcessPoolExecutor(PROCESSES, multiprocessing.get_context("spawn")) as pool:
            write = partial(_write_both, work, rows_per_file)
            rows = list(pool.map(write, range(files), chunksize=max(1, files // 100)))
        truth.write_text(json.dumps(rows))
    rows = [(key, amount) for key, amount in json.loads(truth.read_text())]
    return Haystack(files, rows_per_file, str(work / "plain"), str(work / "embedded"), rows)


def _first(largest: Haystack, work: Path, files: int) -> Haystack:
    if files == largest.files:
        return largest
    done = work / "done"
    if not done.exists():
        shutil.rmtree(work, ignore_errors=True)
        for copy, put in ((largest.plain, shutil.copyfile), (largest.embedded, os.link)):
            folder = work / Path(copy).name
            folder.mkdir(parents=True)
            for file in sorted(Path(copy).iterdir())[:files]:
                put(file, folder / file.name)
        done.touch()
    return Haystack(files, largest.rows_per_file, str(work / "plain"), str(work / "embedded"), largest.rows[:files])


def _write_both(work: Path, rows: int, number: int) -> tuple[str, int]:
    """Write one file twice; return one of its rows."""
    table = _rows(number, rows)
    name = f"part-{number:05d}.snappy.parquet"
    _write(table, work / "plain" / name)
    _write(table, work / "embedded" / name, bloom_filter_options={"uuid": {"ndv": rows, "fpp": Needle.embedded_fpp}})
    chosen = number % rows
    return table["uuid"][chosen].as_py(), table["amount"][chosen].as_py()


def _rows(number: int, rows: int) -> pa.Table:
    rng = np.random.default_rng([Needle.seed, number])
    words = pa.DictionaryArray.from_arrays(rng.integers(0, len(_WORDS), rows, dtype=np.int32), pa.array(_WORDS))
    return pa.table({"uuid": uuids(rng, rows), "amount": rng.integers(0, 2**40, rows), "payload": words})


def _write(table: pa.Table, path: Path, **options: Any) -> None:
    """As Spark would write it: unique keys are stored plain, pages end at 20,000 rows."""
    pq.write_table(
        table,
        path,
        compression="snappy",
        use_dictionary=["payload"],
        max_rows_per_page=20_000,
        store_schema=False,
        **options,
    )


def many_tiny_files(folder: Path, files: int, rows: int = 10) -> Path:
    """Return a table of many small files, for which only planning takes time."""
    done = folder.with_suffix(".done")
    if not done.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for number in range(files):
            _write(_rows(number, rows), folder / f"part-{number:05d}.parquet")
        done.touch()
    return folder
