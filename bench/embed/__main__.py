"""Embedding filters into a lake, side by side with the limit and with writing it anew: `make bench-embed`.

What a method made is checked before its time counts. Rounds alternate between the methods and the best of each counts,
so that a busy machine disturbs all of them alike; every method has had a small run before, to load what it needs. The
lake is written once and kept in .bench/embed.
"""

from __future__ import annotations

import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.build.__main__ import session, verdict
from bench.build.contestant import Contestant
from bench.embed import methods
from bench.embed.source import KEYS, Lake, lake

WORK = Path(".bench").resolve() / "embed"
FILES, ROWS_PER_FILE = 10, 1_330_000
WARM_UP_FILES, WARM_UP_ROWS = 2, 20_000
ROUNDS, SLOW_ROUNDS = 7, 1
LIMIT_BAR, REWRITE_BAR = 1.5, 1 / 3


def run(console: Console, table: Lake, contestants: list[Contestant], rounds: int) -> None:
    for _ in range(rounds):
        for contestant in contestants:
            contestant.times.append(contestant.compete(table, WORK / "out"))
            console.print(f"[dim]{contestant.name}: {contestant.times[-1]:.2f} s[/]")


def print_races(console: Console, table: Lake, races: list[list[Contestant]]) -> bool:
    """Print the times; only those of one race are compared, with the race's first method, which is ours."""
    size_bytes = sum(path.stat().st_size for path in table.paths)
    title = (
        f"filters for {' and '.join(KEYS)}: {table.files} files, {size_bytes / 1e6:,.0f} MB, {table.rows:,} rows; "
        "seconds, best and worst round"
    )
    printed = Table(title=title, title_justify="left")
    printed.add_column("method")
    for heading in ("best", "worst", "ours /", "bar"):
        printed.add_column(heading, justify="right")
    printed.add_column("")
    all_met = True
    for ours, *others in races:
        printed.add_row(ours.name, f"{ours.best:.2f}", f"{max(ours.times):.2f}")
        for other in others:
            ratio = ours.best / other.best
            row = [other.name, f"{other.best:.2f}", f"{max(other.times):.2f}", f"{ratio:.2f}"]
            if other.bar is not None:
                all_met &= ratio <= other.bar
                row += [f"{other.bar:.2f}", verdict(ratio <= other.bar)]
            printed.add_row(*row)
        printed.add_section()
    console.print(printed)
    return all_met


def main() -> int:
    console = Console(width=120)
    warm_up = lake(WORK / "warm-up", WARM_UP_FILES, WARM_UP_ROWS)
    table = lake(WORK / "lake", FILES, ROWS_PER_FILE)
    spark = session()
    fast = [methods.ours(), methods.copy_and_read(LIMIT_BAR), methods.synced_copy_and_read()]
    slow = [methods.ours(), methods.duckdb_rewrites(REWRITE_BAR), methods.spark_rewrites(spark, REWRITE_BAR)]
    for contestant in (*fast, *slow):
        contestant.compete(warm_up, WORK / "out")
    run(console, table, fast, ROUNDS)
    run(console, table, slow, SLOW_ROUNDS)
    met = print_races(console, table, [fast, slow])
    spark.stop()
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
