"""The files of real size: the same rows twice, without and with Parquet's own filters, and one row of each file."""

from __future__ import annotations

import json
import multiprocessing
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
from bench.parameters import PROCESSES, Large


@dataclass(frozen=True, slots=True)
class LargeFiles:
    """A table, its copy with embedded filters, and some rows of each file: key, amount, file and row group."""

    plain: Path
    embedded: Path
    rows: list[tuple[str, int, str, int]]


def large_files(work: Path, *, key: str = "key", files: int = Large.files, rows: int = 1) -> LargeFiles:
    """Return the table, which is written first if it is not there, with so many of the rows of each file."""
    truth = work / f"truth-{files}-{rows}.json"
    if not truth.exists():
        shutil.rmtree(work, ignore_errors=True)
        for copy in ("plain", "embedded"):
            (work / copy).mkdir(parents=True)
        with ProcessPoolExecutor(PROCESSES, multiprocessing.get_context("spawn")) as pool:
            found = [row for some in pool.map(partial(_write_both, work, key, rows), range(files)) for row in some]
            truth.write_text(json.dumps(found))
    known = [(text, amount, path, group) for text, amount, path, group in json.loads(truth.read_text())]
    return LargeFiles(work / "plain", work / "embedded", known)


def _write_both(work: Path, key: str, sampled: int, number: int) -> list[tuple[str, int, str, int]]:
    """Write one file twice; return some of its rows."""
    rng = np.random.default_rng([Large.seed, number])
    rows = Large.rows_per_file
    columns: dict[str, Any] = {key: uuids(rng, rows), "amount": rng.integers(0, 2**40, rows)}
    columns |= {f"number_{i}": rng.integers(0, 1000, rows) for i in range(4)}
    columns |= {f"measure_{i}": rng.random(rows) for i in range(4)}
    columns |= {f"label_{i}": pa.array([f"label-{n}" for n in range(200)]).take(
        pa.array(rng.integers(0, 200, rows))) for i in range(2)}  # fmt: skip
    table = pa.table(columns)
    name = f"part-{number:05d}.snappy.parquet"
    write = _as_spark if number % 2 == 0 else _as_pyarrow
    write(table, work / "plain" / name)
    write(table, work / "embedded" / name, bloom_filter_options={key: {"ndv": Large.rows_per_group, "fpp": 0.01}})
    chosen = rng.choice(rows, sampled, replace=False).tolist()
    found = zip(*(table[column].take(pa.array(chosen)).to_pylist() for column in (key, "amount")), strict=True)
    path, groups = str(work / "plain" / name), [row // Large.rows_per_group for row in chosen]
    return [(*row, path, group) for row, group in zip(found, groups, strict=True)]


def _as_spark(table: pa.Table, path: Path, **options: Any) -> None:
    """Unique keys are stored plain, pages end at 20,000 rows, and there are page indexes."""
    dictionaries = [name for name in table.column_names if name.startswith(("number", "label"))]
    pq.write_table(
        table,
        path,
        row_group_size=Large.rows_per_group,
        use_dictionary=dictionaries,
        max_rows_per_page=20_000,
        write_page_index=True,
        store_schema=False,
        **options,
    )


def _as_pyarrow(table: pa.Table, path: Path, **options: Any) -> None:
    """PyArrow's defaults: dictionaries until they are too large, no page indexes."""
    pq.write_table(table, path, row_group_size=Large.rows_per_group, **options)
