"""One key in files of real size, with and without Spark: `make bench-large`.

Files of 2,000,000 rows and twelve columns, about 160 MB each. Every result is checked before its time counts. Rounds
alternate between the methods, and the best of each counts. The data is written once and kept in .bench/large.
"""

from __future__ import annotations

import random
import shutil
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import duckdb
from pyspark.sql import SparkSession
from rich.console import Console

from bench.large.source import LargeFiles, large_files
from bench.parameters import WORK, Large
from bench.results import Outcome, Result, main, table
from bench.session import session
from lakebloom import BloomIndexConfig, Lakebloom, col

FOLDER = WORK / "large"
PRESENT, ABSENT = "present key", "absent key"
SPARK, SPARK_EMBEDDED, OURS = "Spark", "Spark, embedded filters", "Spark, lakebloom"
DUCKDB, LOOKUP = "DuckDB, embedded filters", "lakebloom, lookup"
Search = Callable[[str], list[int]]


def searches(spark: SparkSession, lake: Lakebloom, files: LargeFiles) -> dict[str, Search]:
    """Return the methods: each takes a key and returns the amounts of its rows."""
    frames = {SPARK: spark.read.parquet(str(files.plain)), SPARK_EMBEDDED: spark.read.parquet(str(files.embedded))}
    connection = duckdb.connect()
    connection.execute(f"SET threads = {Large.threads}")
    pattern = files.embedded / "*.parquet"

    def by_spark(name: str, key: str) -> list[int]:
        return [row.amount for row in frames[name].where(f"key = '{key}'").collect()]

    def by_lakebloom(key: str) -> list[int]:
        lake.enable()
        try:
            return by_spark(SPARK, key)
        finally:
            lake.disable()

    def by_duckdb(key: str) -> list[int]:
        query = f"SELECT * FROM read_parquet('{pattern}') WHERE key = '{key}'"
        return list(connection.execute(query).to_arrow_table()["amount"].to_pylist())

    def by_lookup(key: str) -> list[int]:
        return list(lake.lookup("by_key", col("key") == key)["amount"].to_pylist())

    return {
        SPARK: lambda key: by_spark(SPARK, key),
        SPARK_EMBEDDED: lambda key: by_spark(SPARK_EMBEDDED, key),
        OURS: by_lakebloom,
        DUCKDB: by_duckdb,
        LOOKUP: by_lookup,
    }


def measure(methods: dict[str, Search], files: LargeFiles) -> dict[tuple[str, str], float]:
    """Return the best time of each method and question."""
    rng = random.Random(Large.seed)
    best: dict[tuple[str, str], float] = {}
    for number in range(Large.rounds + 1):
        key, amount, *_ = rng.choice(files.rows)
        nowhere = str(uuid.UUID(int=rng.getrandbits(128), version=4))
        for question, wanted, expected in ((PRESENT, key, [amount]), (ABSENT, nowhere, [])):
            for name, search in methods.items():
                started = time.perf_counter()
                found = search(wanted)
                elapsed = time.perf_counter() - started
                assert found == expected, f"{name}: wrong rows"
                if number > 0:  # the first round only warms up
                    best[name, question] = min(elapsed, best.get((name, question), elapsed))
    return best


def run(console: Console) -> Outcome:
    """Measure everything."""
    files = large_files(FOLDER)
    spark = session("large")
    shutil.rmtree(FOLDER / "indexes", ignore_errors=True)
    lake = Lakebloom(spark, FOLDER / "indexes")
    started = time.perf_counter()
    lake.create_index(files.plain, BloomIndexConfig("by_key", ["key"], granularity="row_group"))
    built_s = time.perf_counter() - started
    size_bytes = lake.index("by_key").size_bytes
    methods = searches(spark, lake, files)
    best = measure(methods, files)
    spark.stop()
    printed = table(f"{_described(files.plain)}: milliseconds, best round", ["method"], [PRESENT, ABSENT])
    for name in methods:
        printed.add_row(name, f"{1e3 * best[name, PRESENT]:,.1f}", f"{1e3 * best[name, ABSENT]:,.1f}")
    console.print(printed)
    console.print(f"index built in {built_s:.1f} s, {size_bytes / 1e6:.0f} MB")
    pairs = ((OURS, SPARK), (OURS, SPARK_EMBEDDED), (LOOKUP, DUCKDB))
    return Outcome(
        [
            Result(f"{question}, {mine}", 1e3 * best[mine, question], "ms", other, 1e3 * best[other, question])
            for question in (PRESENT, ABSENT)
            for mine, other in pairs
        ]
    )


def _described(folder: Path) -> str:
    sizes = [path.stat().st_size for path in folder.iterdir()]
    return f"{len(sizes)} files of {Large.rows_per_file:,} rows, {sum(sizes) / len(sizes) / 1e6:.0f} MB each"


if __name__ == "__main__":
    main("keys in files of real size", run)
