"""The first index of a session, and the first explanation, against starting Spark and doing nothing.

Each is a whole process, from its start to its end. *Bare* is one that starts a session as the command line does
(``local[*]``, no web page), and stops it: it runs no job. Beside the wall clock the time of all processors is taken,
Java's and that of Spark's Python workers included, because a busy machine changes the one and not the other.
"""

from __future__ import annotations

import ctypes
import os
import resource
import shutil
import statistics
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console

from bench.parameters import WORK, Start
from bench.results import Result, table

FOLDER = WORK / "first-create"
BARE = "bare session"
_SESSION = """
import os, sys
from pyspark.sql import SparkSession
os.environ["PYSPARK_PYTHON"] = sys.executable
spark = (SparkSession.builder.master("local[*]").config("spark.ui.enabled", "false").config("spark.log.level", "ERROR")
    .config("spark.ui.showConsoleProgress", "false").config("spark.driver.host", "127.0.0.1").getOrCreate())
"""
_CREATE = """
from lakebloom import BloomIndexConfig, Lakebloom
Lakebloom(spark, {location!r}).create_index({table!r}, BloomIndexConfig("by_user", ["user_id"]))
"""
_SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER: processes whose parent ends become ours, so that their time is counted, too."""


def commands() -> dict[str, list[str]]:
    """Return what is started, by name: one that does nothing, and ours."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    lake, location = FOLDER / "events", FOLDER / "indexes"
    lake.mkdir(parents=True)
    for i in range(Start.small_files):
        rows = range(i * Start.small_rows, (i + 1) * Start.small_rows)
        columns = {"user_id": [f"user-{row}" for row in rows], "amount": list(rows)}
        pq.write_table(pa.table(columns), lake / f"part-{i:05}.parquet")
    python, cli = [sys.executable, "-c"], [sys.executable, "-m", "lakebloom.cli.main"]
    create = _CREATE.format(location=str(location), table=str(lake))
    query = f"SELECT * FROM parquet.`{lake}` WHERE user_id = 'user-42'"
    return {
        BARE: [*python, _SESSION + "spark.stop()"],
        "create_index of a new session": [*python, _SESSION + create + "spark.stop()"],
        "lakebloom create": [*cli, "create", "by_user", str(lake), "-c", "user_id", "--location", str(location)],
        "lakebloom explain": [*cli, "explain", query, "--location", str(location)],
    }


def first_create(console: Console) -> list[Result]:
    """Measure everything, in turn."""
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src"), "SPARK_LOCAL_IP": "127.0.0.1"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    started = commands()
    wall: dict[str, list[float]] = {name: [] for name in started}
    processors: dict[str, list[float]] = {name: [] for name in started}
    for _ in range(Start.spark_rounds):
        for name, command in started.items():
            if "create" in name:
                shutil.rmtree(FOLDER / "indexes", ignore_errors=True)
            wall_s, processor_s = _taken(command, environment)
            wall[name].append(wall_s)
            processors[name].append(processor_s)
    printed = table("whole processes with Spark, s", ["process"], ["wall clock, least", "median", "processors, median"])
    for name in started:
        shown = (min(wall[name]), statistics.median(wall[name]), statistics.median(processors[name]))
        printed.add_row(name, *(f"{seconds:.1f}" for seconds in shown))
    console.print(printed)
    results = []
    for name in started:
        if name != BARE:
            bar = Start.explain_bar if "explain" in name else Start.create_bar
            for what, times in (("wall clock", wall), ("processors", processors)):
                ours, theirs = statistics.median(times[name]), statistics.median(times[BARE])
                results.append(Result(f"{name}: {what}", ours, "s", BARE, theirs, bar))
    return results


def _taken(command: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """Return the seconds from the start of a process to its end, and those of all processors until all have ended."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began_s = time.perf_counter()
    subprocess.run(command, env=environment, capture_output=True, check=True)
    wall_s = time.perf_counter() - began_s
    with suppress(ChildProcessError):
        while True:
            os.wait()  # Java ends a moment after Python
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall_s, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
