"""Spark's queries of an Iceberg table for one key, with and without an index: `python -m bench.tables.iceberg`.

The files are those of the plain table, taken over by pyiceberg. Spark needs Iceberg's connector when it starts, so this
runs in a process of its own, which prints its results as JSON. The connector of the package index is made for Spark
3.5. On newer versions it opens the table from its metadata file, as here; what it plans and reads is the same.

A small one: `python -m bench.tables.iceberg --files 50`. On Spark 3.5: `tools/compat` makes .compat/3.5.9, whose Python
runs the same command.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from bench.parameters import Tables
from bench.results import Result
from bench.session import session
from bench.tables.source import INDEXES, SameRows, make, newest_metadata
from lakebloom import Lakebloom

_ROOT = Path(__file__).resolve().parents[2]


def spark_on_iceberg(files: int = Tables.files) -> list[Result]:
    """Return what a process with the connector measured; nothing where there is no connector."""
    ran = subprocess.run(
        [sys.executable, "-m", "bench.tables.iceberg", "--files", str(files)],
        cwd=_ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found = json.loads(ran.stdout.splitlines()[-1])
    return [Result(*found)] if found else []


def main() -> None:
    """Measure, and print the fields of a result."""
    from tests.spark.iceberg_connector import connector_jar

    parser = argparse.ArgumentParser()
    parser.add_argument("--files", type=int, default=Tables.files)
    files = parser.parse_args().files
    found = [] if connector_jar() is None else _measured(files)
    sys.stdout.write(json.dumps(found) + "\n")


def _measured(files: int) -> list[Any]:
    table = SameRows(files, Tables.rows_per_file)
    spark = _session()
    lake = Lakebloom(spark, INDEXES)
    make(lake, table, "iceberg")
    metadata = newest_metadata(table.place("iceberg"))
    times: dict[bool, list[float]] = {True: [], False: []}
    for number, key in enumerate(table.keys(Tables.slow_questions + 1, Tables.seed)):
        rows = []
        for enabled in (True, False) if number % 2 else (False, True):
            (lake.enable if enabled else lake.disable)()
            started = time.perf_counter()
            rows.append(_frame(spark, metadata).where(f"user = '{key}'").collect())
            times[enabled].append(time.perf_counter() - started)
            last = lake.last_query() if enabled else None
            assert last is None or (last.scans[0].files_kept or 0) < 5, last  # one, and false positives
        assert rows[0] == rows[1], (key, rows)
        assert len(rows[0]) == 1, (key, rows)
    lake.close()
    spark.stop()
    ours, theirs = (1e3 * statistics.median(times[enabled][1:]) for enabled in (True, False))
    what = f"{files:,} files, present key, Spark on Iceberg"
    return [what, ours, "ms", "Iceberg without an index", theirs, Tables.spark_bar, "at least"]


def _session() -> Any:
    import pyspark
    from tests.spark.iceberg_connector import connector_jar, without_cache

    is_old = pyspark.__version__.startswith("3.5")
    spark = session("iceberg", spark_driver_extraClassPath=str(connector_jar("2.12" if is_old else "2.13")))
    if not is_old:
        without_cache(spark)
    return spark


def _frame(spark: Any, metadata: str) -> Any:
    from tests.spark.iceberg_connector import table_frame

    return table_frame(spark, metadata)


if __name__ == "__main__":
    main()
