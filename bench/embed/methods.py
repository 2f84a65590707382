"""What takes part: embedding, the least that embedding could cost, and writing the files anew with filters."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from bench.embed.source import KEYS, ROWS_PER_GROUP, Lake
from bench.parameters import PROCESSES
from bench.race import Contestant
from lakebloom.parquet import embed

FPP = 0.01
MOST_WASTED = 0.03


def ours() -> Contestant[Lake]:
    """Two files at a time: one is hashed while the other one waits for the disk to have it."""

    def run(lake: Lake, work: Path) -> int:
        with ThreadPoolExecutor(PROCESSES) as threads:
            reports = threads.map(lambda path: embed(path, work / path.name, KEYS, FPP), lake.paths)
            return sum(report.rows for report in reports)

    def check(lake: Lake, work: Path, rows: int) -> None:
        assert rows == lake.rows
        for path in lake.paths:
            assert pq.read_metadata(path).num_rows == pq.read_metadata(work / path.name).num_rows
        require_filters(lake, work)

    return Contestant("lakebloom: embed", run, check)


def copy_and_read(bar: float) -> Contestant[Lake]:
    """Every byte has to be copied and the two columns have to be read: nothing can do with less."""

    def run(lake: Lake, work: Path) -> int:
        rows = 0
        for path in lake.paths:
            subprocess.run(["cp", str(path), str(work)], check=True)
            rows += pq.read_table(path, columns=list(KEYS)).num_rows
        return rows

    def check(lake: Lake, work: Path, rows: int) -> None:
        assert rows == lake.rows

    return Contestant("the limit: cp, and PyArrow reads two columns", run, check, bar)


def synced_copy_and_read() -> Contestant[Lake]:
    """The same, but as safe from a power cut as what lakebloom writes."""
    limit = copy_and_read(0)

    def run(lake: Lake, work: Path) -> int:
        rows = limit.run(lake, work)
        assert isinstance(rows, int)
        subprocess.run(["sync", *map(str, work.iterdir())], check=True)
        return rows

    return Contestant("the limit, with the copy synced to disk", run, limit.check)


def duckdb_rewrites(bar: float) -> Contestant[Lake]:
    """One file at a time on each core. DuckDB makes filters only where it keeps a dictionary, so that must be large."""
    options = (
        f"FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {ROWS_PER_GROUP}, "
        f"DICTIONARY_SIZE_LIMIT {ROWS_PER_GROUP}, STRING_DICTIONARY_PAGE_SIZE_LIMIT 1000000000"
    )

    def run(lake: Lake, work: Path) -> None:
        with duckdb.connect(config={"threads": 1}) as connection, ThreadPoolExecutor(PROCESSES) as threads:

            def copy(path: Path) -> None:
                with connection.cursor() as cursor:
                    cursor.execute(f"COPY (FROM '{path}') TO '{work / path.name}' ({options})")

            list(threads.map(copy, lake.paths))

    return Contestant("DuckDB: rewrite with filters", run, require_all_rows, bar)


def spark_rewrites(spark: SparkSession, bar: float) -> Contestant[Lake]:
    def run(lake: Lake, work: Path) -> None:
        writer = spark.read.parquet(lake.folder).write.mode("overwrite").option("compression", "zstd")
        writer = writer.option("maxRecordsPerFile", lake.rows_per_file)
        # The default of 1 MiB is too little for so many values: one lookup in twelve would be in vain.
        writer = writer.option("parquet.bloom.filter.max.bytes", 4 << 20)
        for name in KEYS:
            writer = writer.option(f"parquet.bloom.filter.enabled#{name}", "true")
            writer = writer.option(f"parquet.bloom.filter.expected.ndv#{name}", lake.rows_per_file)
            writer = writer.option(f"parquet.bloom.filter.fpp#{name}", FPP)
        writer.parquet(str(work))

    return Contestant("Spark: rewrite with filters", run, require_all_rows, bar)


def require_all_rows(lake: Lake, work: Path, result: Any) -> None:
    """Check rewritten files."""
    with duckdb.connect() as connection:
        assert connection.sql(f"SELECT count(*) FROM '{work}/*.parquet'").fetchall() == [(lake.rows,)]
    require_filters(lake, work)


def require_filters(lake: Lake, work: Path) -> None:
    """Check that filters keep each sampled key's row group, and hardly any other."""
    files = f"{work}/*.parquet"
    with duckdb.connect() as connection:
        for column, values in lake.keys.items():
            asked = wasted = 0
            for value in values:
                probe = f"SELECT bloom_filter_excludes FROM parquet_bloom_probe('{files}', '{column}', {value})"
                excluded = [answer for (answer,) in connection.sql(probe).fetchall()]
                found = connection.sql(f"SELECT count(*) FROM '{files}' WHERE {column} = {value}").fetchall()
                assert found == [(1,)], f"{column} = {value} is lost"
                asked, wasted = asked + len(excluded), wasted + excluded.count(False) - 1
            assert wasted <= MOST_WASTED * asked, f"the filters of {column} kept {wasted} of {asked} in vain"
