"""Building an index, side by side with every other way to get filters: `make bench-build`.

Every method has had a small run before, to load what it needs. The data is written once and kept in .bench/build.
"""

from __future__ import annotations

from pyspark.sql import SparkSession
from rich.console import Console

from bench.build import spark_jobs, without_spark
from bench.build.refresh import Growing
from bench.build.source import Source, source
from bench.parameters import WORK, Build
from bench.race import Contestant, Race, print_races
from bench.results import Outcome, Result, main
from bench.session import session

FOLDER = WORK / "build"


def races(spark: SparkSession) -> list[Race[Source]]:
    def ours() -> list[Contestant[Source]]:
        return [spark_jobs.ours(spark, "ours, auto", "auto"), spark_jobs.ours(spark, "ours, 1 %", 0.01)]

    fast = [
        without_spark.pyarrow_reads(),
        spark_jobs.scan_and_hash(spark, Build.scan_bar),
        without_spark.lance_index(Build.lance_bar),
    ]
    slow = [
        without_spark.duckdb_rewrites(Build.rewrite_bar),
        spark_jobs.rewrite(spark, Build.rewrite_bar),
        spark_jobs.group_by_file(spark, Build.rewrite_bar),
    ]
    return [Race(ours(), fast, Build.rounds), Race(ours(), slow, Build.slow_rounds)]


def refreshed(spark: SparkSession) -> list[Result]:
    """Return what a quick refresh of a large table takes beside that of a small one."""
    few, many = (Growing.create(spark, FOLDER / f"growing-{files}", files) for files in (Build.few, Build.many))
    for _ in range(Build.refresh_rounds):
        for growing in (few, many):
            growing.refresh()
    name = f"refresh, {Build.new_files} new of {many.files:,} files"
    peer = f"the same of {few.files:,} files"
    listing, rest = ([1e3 * min(times) for times in pair] for pair in _phases(few, many))
    return [
        Result(f"{name}: list and compare", listing[1], "ms", peer, listing[0]),
        Result(f"{name}: the rest", rest[1], "ms", peer, rest[0], Build.refresh_bar),
    ]


def _phases(few: Growing, many: Growing) -> list[tuple[list[float], list[float]]]:
    return [(few.list_s, many.list_s), (few.rest_s, many.rest_s)]


def run(console: Console) -> Outcome:
    """Measure everything."""
    warm_up = source(FOLDER / "warm-up", Build.warm_up_files, Build.rows_per_file)
    table = source(FOLDER / "table", Build.files, Build.rows_per_file)
    spark = session("build")
    held = races(spark)
    for race in held:
        race.warm_up(warm_up, FOLDER / "out")
    for race in held:
        race.run(console, table, FOLDER / "out", Build.race_s)
    print_races(console, f"{table.files:,} files, {table.rows:,} keys", held)
    results = [result for race in held for result in race.results()] + refreshed(spark)
    spark.stop()
    return Outcome(results)


if __name__ == "__main__":
    main("building an index", run)
