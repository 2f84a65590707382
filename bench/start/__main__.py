"""From nothing to a first result: the package, verbs that need no Spark, the first index: `make bench-start`.

Whole processes, in turn; the median counts.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console

from bench.parameters import WORK, Start
from bench.results import Outcome, Result, main, table
from bench.start.first_create import first_create

FOLDER = WORK / "start"
PYTHON, IMPORT = "python", "import lakebloom"


def commands(environment: dict[str, str]) -> dict[str, list[str]]:
    """Return what is started, by name. The index that some ask is built before, with Spark."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    lake, located = FOLDER / "keys", ["--location", str(FOLDER / "indexes")]
    lake.mkdir(parents=True)
    for i in range(Start.small_files):
        keys = pa.table({"k": range(i * Start.small_rows, (i + 1) * Start.small_rows)})
        pq.write_table(keys, lake / f"part-{i:05}.parquet", bloom_filter_options={"k": True})
    cli = [sys.executable, "-m", "lakebloom.cli.main"]
    subprocess.run([*cli, "create", "by_k", str(lake), "-c", "k", *located], env=environment, check=True)
    return {
        PYTHON: [sys.executable, "-c", ""],
        IMPORT: [sys.executable, "-c", "import lakebloom"],
        "lakebloom --help": [*cli, "--help"],
        "lakebloom list": [*cli, "list", *located],
        "lakebloom lookup": [*cli, "lookup", "by_k", "k = 42", *located],
        "lakebloom inspect": [*cli, "inspect", str(lake / "part-00000.parquet")],
    }


def run(console: Console) -> Outcome:
    """Measure everything."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its bytecode
    started = commands(environment)
    times: dict[str, list[float]] = {name: [] for name in started}
    for number in range(Start.rounds + 1):
        for name, command in started.items():
            before = time.perf_counter()
            subprocess.run(command, env=environment, capture_output=True, check=True)
            if number > 0:  # the first one may compile bytecode
                times[name].append(time.perf_counter() - before)
    typical = {name: 1e3 * statistics.median(each) for name, each in times.items()}
    printed = table("whole processes, ms", ["process"], ["median", "worst"])
    for name, each in times.items():
        printed.add_row(name, f"{typical[name]:.0f}", f"{1e3 * max(each):.0f}")
    console.print(printed)
    added = Result(f"{IMPORT}: added to a process", typical[IMPORT] - typical[PYTHON], "ms", bar=Start.import_bar_ms)
    verbs = [name for name in started if name not in (PYTHON, IMPORT)]
    results = [Result(name, typical[name], "ms", bar=Start.verb_bar_ms) for name in verbs]
    return Outcome([added, *results, *first_create(console)])


if __name__ == "__main__":
    main("how long processes take to start", run)
