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
    """A table, its copy with embedded filters, and one row of each file: key and amount."""

    plain: Path
    embedded: Path
    rows: list[tuple[str, int]]


def large_files(work: Path) -> LargeFiles:
    """Return the table, which is written first if it is not there."""
    truth = work / "truth.json"
    if not truth.exists():
        shutil.rmtree(work, ignore_errors=True)
        for copy in ("plain", "embedded"):
            (work / copy).mkdir(parents=True)
        with ProcessPoolExecutor(PROCESSES, multiprocessing.get_context("spawn")) as pool:
            truth.write_text(json.dumps(list(pool.map(partial(_write_both, work), range(Large.files)))))
    return LargeFiles(work / "plain", work / "embedded", [(key, n) for key, n in json.loads(truth.read_text())])


def _write_both(work: Path, number: int) -> tuple[str, int]:
    """Write one file twice; return one of its rows."""
    rng = np.random.default_rng([Large.seed, number])
    rows = Large.rows_per_file
    columns: dict[str, Any] = {"key": uuids(rng, rows), "amount": rng.integers(0, 2**40, rows)}
    columns |= {f"number_{i}": rng.integers(0, 1000, rows) for i in range(4)}
    columns |= {f"measure_{i}": rng.random(rows) for i in range(4)}
    columns |= {f"label_{i}": pa.array([f"label-{n}" for n in range(200)]).take(
        pa.array(rng.integers(0, 200, rows))) for i in range(2)}  # fmt: skip
    table = pa.table(columns)
    name = f"part-{number:05d}.snappy.parquet"
    _write(table, work / "plain" / name)
    _write(table, work / "embedded" / name, bloom_filter_options={"key": {"ndv": Large.rows_per_group, "fpp": 0.01}})
    chosen = int(rng.integers(0, rows))
    return table["key"][chosen].as_py(), table["amount"][chosen].as_py()


def _write(table: pa.Table, path: Path, **options: Any) -> None:
    """As Spark would write it: unique keys are stored plain, pages end at 20,000 rows."""
    dictionaries = [name for name in table.column_names if name.startswith(("number", "label"))]
    pq.write_table(
        table,
        path,
        row_group_size=Large.rows_per_group,
        use_dictionary=dictionaries,
        max_rows_per_page=20_000,
        store_schema=False,
        **options,
    )
