"""Looking for keys in Spark, with and without lakebloom, with and without Parquet's own filters: `make bench-needle`.

What a query returned is checked before its time counts. Rounds alternate between the methods and the best of each
counts, so that a busy machine disturbs all of them alike. Every DataFrame is made, and its files listed, before; all
data is in the page cache. The data is written once and kept in .bench/needle; indexes are built anew.
"""

from __future__ import annotations

import random
import shutil
import sys
import uuid
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.needle.methods import BOTH, EMBEDDED, OURS, PLAIN, Method, Question, methods
from bench.needle.planning import planning_times
from bench.needle.source import SEED, Haystack, haystacks, many_tiny_files
from bench.session import session
from lakebloom import Lakebloom

WORK = Path(".bench").resolve() / "needle"
ROWS_PER_FILE = 25_000
ROUNDS = {100: 9, 1000: 6, 4000: 4}
PRESENT, ABSENT, MANY = "present key", "absent key", "100 keys"
SPEED_BARS = {(1000, PLAIN): 10, (1000, EMBEDDED): 4, (4000, PLAIN): 30, (4000, EMBEDDED): 8}
GROWTH_BAR = 2.5
TINY_FILES, PLANNING_ROUNDS, PLANNING_BAR_S = 10_000, 15, 0.150


@dataclass(frozen=True, slots=True)
class Search:
    """One table and all methods that search it."""

    table: Haystack
    methods: list[Method]

    def method(self, name: str) -> Method:
        return next(method for method in self.methods if method.name == name)

    def run(self, rounds: int) -> None:
        """Ask new keys in every round, the same ones of all methods."""
        for number in range(rounds + 1):
            for question in questions(self.table, number):
                for method in self.methods:
                    elapsed = method.search(question)
                    if number > 0:  # the first round only warms up
                        method.times.setdefault(question.name, []).append(elapsed)


def questions(table: Haystack, number: int) -> list[Question]:
    rng = random.Random(f"{SEED} {table.files} {number}")
    present = rng.choice(table.rows)
    absent = str(uuid.UUID(int=rng.getrandbits(128), version=4))
    many = rng.sample(table.rows, 100)
    return [
        Question(PRESENT, [present[0]], [present]),
        Question(ABSENT, [absent], []),
        Question(MANY, [key for key, _ in many], many),
    ]


def verdict(met: bool) -> str:
    return "[green]met[/]" if met else "[red]missed[/]"


def print_searches(console: Console, searches: list[Search]) -> None:
    for question in (PRESENT, ABSENT, MANY):
        printed = Table(title=f"{question}: seconds, best and worst round; files decoded", title_justify="left")
        printed.add_column("method")
        for search in searches:
            for heading in (f"{search.table.files:,} files", "worst", "decoded"):
                printed.add_column(heading, justify="right")
        for name in (PLAIN, EMBEDDED, OURS, BOTH):
            row = [name]
            for search in searches:
                method = search.method(name)
                times = method.times[question]
                row += [f"{min(times):.3f}", f"{max(times):.3f}", f"{method.decoded[question]:,}"]
            printed.add_row(*row)
        console.print(printed)


def print_bars(console: Console, searches: list[Search], without: list[float], with_index: list[float]) -> bool:
    printed = Table(title="bars: present key, ratios of the best", title_justify="left")
    printed.add_column("what")
    for heading in ("measured", "bar"):
        printed.add_column(heading, justify="right")
    printed.add_column("")
    all_met = True

    def add(what: str, measured: str, bar: str, met: bool) -> None:
        nonlocal all_met
        all_met &= met
        printed.add_row(what, measured, bar, verdict(met))

    ours = {search.table.files: search.method(OURS).best(PRESENT) for search in searches}
    for search in searches:
        for name in (PLAIN, EMBEDDED):
            bar = SPEED_BARS.get((search.table.files, name))
            if bar is not None:
                ratio = search.method(name).best(PRESENT) / ours[search.table.files]
                add(f"{search.table.files:,} files: {name} / {OURS}", f"{ratio:.1f}", f">= {bar}", ratio >= bar)
    few, many = min(ours), max(ours)
    growth = ours[many] / ours[few]
    add(f"{OURS}: {many:,} files / {few:,} files", f"{growth:.2f}", f"<= {GROWTH_BAR}", growth <= GROWTH_BAR)
    added_s = min(with_index) - min(without)
    console.print(
        f"planning over {TINY_FILES:,} files: {1e3 * min(without):.0f} ms without an index; with one "
        f"{1e3 * min(with_index):.0f} ms, the first time {1e3 * with_index[0]:.0f} ms"
    )
    add(
        f"planning over {TINY_FILES:,} files: added by an index",
        f"{1e3 * added_s:.0f} ms",
        f"< {1e3 * PLANNING_BAR_S:.0f} ms",
        added_s < PLANNING_BAR_S,
    )
    console.print(printed)
    return all_met


def main(sizes: list[int]) -> int:
    console = Console(width=140)
    tables = haystacks(WORK, sizes, ROWS_PER_FILE)
    tiny = many_tiny_files(WORK / "tiny", TINY_FILES)
    spark = session("needle")
    shutil.rmtree(WORK / "indexes", ignore_errors=True)
    lake = Lakebloom(spark, WORK / "indexes")
    searches = [Search(table, methods(spark, lake, table)) for table in tables]
    for search in searches:
        search.run(ROUNDS.get(search.table.files, 3))
        console.print(f"[dim]{search.table.files:,} files searched[/]")
    without, with_index = planning_times(spark, lake, tiny, PLANNING_ROUNDS)
    print_searches(console, searches)
    met = print_bars(console, searches, without, with_index)
    spark.stop()
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main([int(size) for size in sys.argv[1:]] or list(ROUNDS)))
