"""Building an index, side by side with every other way to get filters: `make bench-build`.

What a method made is checked before its time counts. Rounds alternate between the methods and the best of each counts,
so that a busy machine disturbs all of them alike; every method has had a small run before, to load what it needs. The
data is written once and kept in .bench/build.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

from bench.build import spark_jobs, without_spark
from bench.build.contestant import Contestant
from bench.build.refresh import NEW_FILES, Growing
from bench.build.source import Source, source
from bench.session import session

WORK = Path(".bench").resolve() / "build"
FILES, ROWS_PER_FILE, WARM_UP_FILES = 1000, 25_000, 20
ROUNDS, SLOW_ROUNDS, REFRESH_ROUNDS = 7, 2, 12
RACE_S = 100
SCAN_BAR, LANCE_BAR, REWRITE_BAR = 0.95, 0.80, 0.25
FEW, MANY, REFRESH_BAR = 1000, 10_000, 1.2


@dataclass(frozen=True, slots=True)
class Race:
    """Methods that run in turn, several times. Only times of one race are compared."""

    ours: list[Contestant]
    others: list[Contestant]
    rounds: int

    @property
    def all(self) -> list[Contestant]:
        return [*self.ours, *self.others]

    def run(self, console: Console, table: Source) -> None:
        """Run all rounds; when time is up, no further one begins."""
        started = time.perf_counter()
        for _ in range(self.rounds):
            for contestant in self.all:
                contestant.times.append(contestant.compete(table, WORK / "out"))
                console.print(f"[dim]{contestant.name}: {contestant.times[-1]:.2f} s[/]")
            if time.perf_counter() - started > RACE_S:
                return


def races(spark: SparkSession) -> list[Race]:
    def ours() -> list[Contestant]:
        return [spark_jobs.ours(spark, "ours, auto", "auto"), spark_jobs.ours(spark, "ours, 1 %", 0.01)]

    fast = [
        without_spark.pyarrow_reads(),
        spark_jobs.scan_and_hash(spark, SCAN_BAR),
        without_spark.lance_index(LANCE_BAR),
    ]
    slow = [
        without_spark.duckdb_rewrites(REWRITE_BAR),
        spark_jobs.rewrite(spark, REWRITE_BAR),
        spark_jobs.group_by_file(spark, REWRITE_BAR),
    ]
    return [Race(ours(), fast, ROUNDS), Race(ours(), slow, SLOW_ROUNDS)]


def verdict(met: bool) -> str:
    return "[green]met[/]" if met else "[red]missed[/]"


def print_races(console: Console, run: list[Race], table: Source) -> bool:
    title = f"{table.files:,} files, {table.rows:,} keys; seconds, best and worst round; ratios of the best"
    printed = Table(title=title, title_justify="left")
    printed.add_column("method")
    for heading in ("best", "worst", *(f"{mine.name} /" for mine in run[0].ours), "bar"):
        printed.add_column(heading, justify="right")
    printed.add_column("")
    all_met = True
    for race in run:
        for contestant in race.all:
            row = [contestant.name, f"{contestant.best:.2f}", f"{max(contestant.times):.2f}"]
            if contestant in race.others:
                ratios = [mine.best / contestant.best for mine in race.ours]
                row += [f"{ratio:.2f}" for ratio in ratios]
            if contestant.bar is not None:
                met = max(ratios) <= contestant.bar
                all_met &= met
                row += [f"{contestant.bar:.2f}", verdict(met)]
            printed.add_row(*row)
        printed.add_section()
    console.print(printed)
    return all_met


def print_refreshes(console: Console, few: Growing, many: Growing) -> bool:
    printed = Table(
        title=f"quick refresh after {NEW_FILES} new files, best of {REFRESH_ROUNDS}, ms", title_justify="left"
    )
    printed.add_column("phase")
    for heading in (f"{few.files:,} files", f"{many.files:,} files", "ratio", "bar"):
        printed.add_column(heading, justify="right")
    printed.add_column("")
    ratio = min(many.rest_s) / min(few.rest_s)
    listing = [min(few.list_s), min(many.list_s)]
    printed.add_row("list and compare", *(f"{1e3 * s:.0f}" for s in listing), f"{listing[1] / listing[0]:.2f}")
    rest = [f"{1e3 * min(growing.rest_s):.0f}" for growing in (few, many)]
    printed.add_row("the rest", *rest, f"{ratio:.2f}", f"{REFRESH_BAR:.2f}", verdict(ratio <= REFRESH_BAR))
    console.print(printed)
    return ratio <= REFRESH_BAR


def main() -> int:
    console = Console(width=120)
    warm_up = source(WORK / "warm-up", WARM_UP_FILES, ROWS_PER_FILE)
    table = source(WORK / "table", FILES, ROWS_PER_FILE)
    spark = session("build")
    run = races(spark)
    for contestant in (contestant for race in run for contestant in race.all):
        contestant.prepare(warm_up)
        contestant.prepare(table)
        contestant.compete(warm_up, WORK / "out")
    for race in run:
        race.run(console, table)
    met = print_races(console, run, table)
    few, many = (Growing.create(spark, WORK / f"growing-{files}", files) for files in (FEW, MANY))
    for _ in range(REFRESH_ROUNDS):
        for growing in (few, many):
            growing.refresh()
    met &= print_refreshes(console, few, many)
    spark.stop()
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
