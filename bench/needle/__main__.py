"""Looking for keys in Spark, with and without lakebloom, with and without Parquet's own filters: `make bench-needle`.

What a query returned is checked before its time counts. Rounds alternate between the methods and the best of each
counts, so that a busy machine disturbs all of them alike. Every DataFrame is made, and its files listed, before; all
data is in the page cache. The data is written once and kept in .bench/needle; indexes are built anew.
"""

from __future__ import annotations

import random
import shutil
import uuid
from dataclasses import dataclass

from rich.console import Console

from bench.needle.methods import BOTH, EMBEDDED, OURS, PLAIN, Method, Question, methods
from bench.needle.planning import first_times, planning_times
from bench.needle.source import Haystack, haystacks, many_tiny_files
from bench.parameters import WORK, Needle
from bench.results import Outcome, Point, Result, main, table
from bench.session import session
from lakebloom import Lakebloom

FOLDER = WORK / "needle"
PRESENT, ABSENT, MANY = "present key", "absent key", "100 keys"


@dataclass(frozen=True, slots=True)
class Search:
    """One table and all methods that search it."""

    table: Haystack
    methods: list[Method]

    def method(self, name: str) -> Method:
        return next(method for method in self.methods if method.name == name)

    def run(self, rounds: int) -> None:
        """Ask new keys in every round, the same ones of all methods; slow ones are asked fewer."""
        for number in range(rounds + 1):
            for question in questions(self.table, number):
                for method in self.methods:
                    times = method.times.setdefault(question.name, [])
                    if sum(times) > Needle.case_s:
                        continue
                    elapsed = method.search(question)
                    if number > 0 or elapsed > Needle.case_s:  # the first round only warms up what is quick
                        times.append(elapsed)


def questions(table: Haystack, number: int) -> list[Question]:
    rng = random.Random(f"{Needle.seed} {table.files} {number}")
    present = rng.choice(table.rows)
    absent = str(uuid.UUID(int=rng.getrandbits(128), version=4))
    many = rng.sample(table.rows, 100)
    return [
        Question(PRESENT, [present[0]], [present]),
        Question(ABSENT, [absent], []),
        Question(MANY, [key for key, _ in many], many),
    ]


def print_searches(console: Console, searches: list[Search]) -> None:
    for question in (PRESENT, ABSENT, MANY):
        headings = [heading for search in searches for heading in (f"{search.table.files:,} files", "worst", "decoded")]
        printed = table(f"{question}: seconds, best and worst round; files decoded", ["method"], headings)
        for name in (PLAIN, EMBEDDED, OURS, BOTH):
            row = [name]
            for search in searches:
                method = search.method(name)
                times = method.times[question]
                row += [f"{min(times):.3f}", f"{max(times):.3f}", f"{method.decoded[question]:,}"]
            printed.add_row(*row)
        console.print(printed)


def compared(searches: list[Search]) -> list[Result]:
    """Return our times for a present key beside Spark's, and those of many files beside those of few."""
    results = []
    ours = {search.table.files: search.method(OURS).best(PRESENT) for search in searches}
    for search in searches:
        files = search.table.files
        for name, bars in ((PLAIN, Needle.plain_bars), (EMBEDDED, Needle.embedded_bars)):
            theirs = search.method(name).best(PRESENT)
            what = f"{files:,} files in Spark, {PRESENT}"
            results.append(Result(what, 1e3 * ours[files], "ms", name, 1e3 * theirs, bars.get(files), "at least"))
    few, many = min(ours), max(ours)
    what = f"{many:,} files in Spark, beside {few:,}"
    results.append(Result(what, 1e3 * ours[many], "ms", f"{few:,} files", 1e3 * ours[few], Needle.growth_bar))
    return results


def planned(console: Console, without: list[float], with_index: list[float]) -> Result:
    console.print(
        f"planning over {Needle.tiny_files:,} files: {1e3 * min(without):.0f} ms without an index; with one "
        f"{1e3 * min(with_index):.0f} ms, the first time {1e3 * with_index[0]:.0f} ms"
    )
    added_ms = 1e3 * (min(with_index) - min(without))
    what = f"planning over {Needle.tiny_files:,} files: added by an index"
    return Result(what, added_ms, "ms", bar=1e3 * Needle.planning_bar_s)


def run(console: Console) -> Outcome:
    """Measure everything."""
    tables = haystacks(FOLDER, list(Needle.sizes), Needle.rows_per_file)
    tiny = many_tiny_files(FOLDER / "tiny", Needle.tiny_files)
    spark = session("needle")
    for indexes in ("indexes", "first-indexes"):
        shutil.rmtree(FOLDER / indexes, ignore_errors=True)
    lake = Lakebloom(spark, FOLDER / "indexes")
    searches = [Search(table, methods(spark, lake, table)) for table in tables]
    for search in searches:
        search.run(Needle.rounds.get(search.table.files, 3))
        console.print(f"[dim]{search.table.files:,} files searched[/]")
    first_s = first_times(spark, FOLDER / "first-indexes", tiny, Needle.first_rounds)
    without, with_index = planning_times(spark, lake, tiny, Needle.planning_rounds)
    spark.stop()
    print_searches(console, searches)
    points = [
        Point(
            method.name if method.lake is None else f"Spark: {method.name}",
            search.table.files,
            1e3 * method.best(PRESENT),
        )
        for search in searches
        for method in search.methods
    ]
    what = f"planning over {Needle.tiny_files:,} files: added to the first query of a session that has opened the index"
    first = Result(what, 1e3 * min(first_s), "ms", bar=1e3 * Needle.first_bar_s)
    return Outcome([*compared(searches), planned(console, without, with_index), first], points)


if __name__ == "__main__":
    main("keys in Spark", run)
