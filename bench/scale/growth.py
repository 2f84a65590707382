"""How building, refreshing, asking and explaining grow with the number of files and of columns, as exponents.

Files are tiny, so what is measured is what lakebloom does for each file or column, and hardly the reading of data.
"""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812
from rich.console import Console

from bench.parameters import WORK, Build, Scale
from bench.results import Result, table
from lakebloom import BloomIndexConfig, Lakebloom, col

FOLDER = WORK / "scale"
BUILD, REFRESH, PROBE, EXPLAIN = "build", f"refresh, {Build.new_files} new files", "probe", "explain"
WHAT = (BUILD, REFRESH, PROBE, EXPLAIN)


def growth_results(console: Console, spark: SparkSession) -> list[Result]:
    """Return the exponents, each of the step between the two largest sizes."""
    by_files = {files: _measure(spark, files, 1) for files in Scale.files}
    by_columns = {columns: _measure(spark, Scale.files_of_columns, columns) for columns in Scale.columns}
    results = []
    for unit, times, bar in (("files", by_files, Scale.files_bar), ("columns", by_columns, Scale.columns_bar)):
        printed = table(f"ms against the number of {unit}", ["what"], [*(f"{n:,}" for n in times), "exponent"])
        for what in WHAT:
            measured = [each[what] for each in times.values()]
            slope = _exponent(list(times), measured)
            printed.add_row(what, *(f"{1e3 * s:.1f}" for s in measured), f"{slope:.2f}")
            least, most = 1e3 * measured[0], 1e3 * measured[-1]
            detail = f"{least:.3g} ms for {min(times):,}, {most:.3g} ms for {max(times):,}"
            results.append(Result(f"{what}: exponent of {unit}", slope, "", bar=bar, limited_by=detail))
        console.print(printed)
    return results


def _exponent(sizes: list[int], times: list[float]) -> float:
    """Return the exponent between the two largest sizes; between small ones all time is spent on starting."""
    return math.log(times[-1] / times[-2]) / math.log(sizes[-1] / sizes[-2])


def _measure(spark: SparkSession, files: int, columns: int) -> dict[str, float]:
    folder = _table(files, columns)
    _remove_new(folder)
    times: dict[str, list[float]] = {}
    config = BloomIndexConfig("grow", [f"c{number:02d}" for number in range(columns)])
    for _ in range(2):
        shutil.rmtree(FOLDER / "indexes", ignore_errors=True)
        lake = Lakebloom(spark, FOLDER / "indexes")
        times.setdefault(BUILD, []).append(_timed(partial(lake.create_index, str(folder), config))[0])
    for number in range(Scale.rounds):
        for new in range(Build.new_files):
            _write(folder / f"new-{number}-{new}.parquet", files + 1000 * number + new, columns)
        times.setdefault(REFRESH, []).append(_timed(partial(lake.refresh_index, config.name))[0])
    assert lake.index(config.name).files == files + Scale.rounds * Build.new_files
    frame = spark.read.parquet(str(folder))
    for number in range(4 * Scale.rounds):
        key = int(_values(number, 1)[0][0])
        elapsed_s, found = _timed(partial(lake.candidates, config.name, col("c00") == key))
        assert any(path.endswith(f"part-{number:05d}.parquet") for path in found["path"].to_pylist())
        times.setdefault(PROBE, []).append(elapsed_s)
    for number in range(Scale.rounds):
        query = frame.where(F.col("c00") == int(_values(number, 1)[0][0]))
        elapsed_s, report = _timed(partial(lake.explain, query))
        assert 1 <= report.scans[0].files_kept < 10, report
        times.setdefault(EXPLAIN, []).append(elapsed_s)
    _remove_new(folder)
    return {what: min(measured) for what, measured in times.items()}


def _remove_new(folder: Path) -> None:
    for path in folder.glob("new-*"):
        path.unlink()


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    started = time.perf_counter()
    result = work()
    return time.perf_counter() - started, result


def _table(files: int, columns: int) -> Path:
    folder = FOLDER / f"files-{files}-{columns}"
    done = folder.with_suffix(".done")
    if not done.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for number in range(files):
            _write(folder / f"part-{number:05d}.parquet", number, columns)
        done.touch()
    return folder


def _write(path: Path, number: int, columns: int) -> None:
    values = _values(number, columns)
    pq.write_table(pa.table({f"c{column:02d}": values[column] for column in range(columns)}), path)


def _values(number: int, columns: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    rngs = (np.random.default_rng([Scale.seed, number, column]) for column in range(columns))
    return np.stack([rng.integers(0, 2**62, Scale.rows_per_file) for rng in rngs])
