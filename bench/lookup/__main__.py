"""Rows by key without Spark, against engines on the same Parquet files and against Lance: `make bench-lookup`.

Each answer is compared before any time is. The methods answer the same questions in turn, each question has keys that
were not asked before, and the median counts; all data is in the page cache. Data and indexes are made once and kept in
.bench/lookup; index files of ours are made anew where they do not fit the tables any more.
"""

from __future__ import annotations

import random
import statistics
import time
import uuid
import warnings

from rich.console import Console

from bench.lookup.large import large_results
from bench.lookup.race import BLOOM, LIMIT, LOADING, OURS, Method, cold, methods, too_slow, warm
from bench.lookup.source import ABSENT, CASES, INDEXES, MANY, PRESENT, questions, tables
from bench.parameters import Lookup
from bench.phases import phase
from bench.results import Kind, Outcome, Point, Result, main, table
from bench.scale.probe import probe_results
from lakebloom import Lakebloom, col


def run(console: Console) -> Outcome:
    """Measure everything."""
    races: dict[int, list[Method]] = {}
    loading_s: dict[int, float] = {}
    with phase(console, "lakes"):
        made = tables()
    for searched in made:
        contenders = methods(searched)
        smaller = races.get(max(races, default=0), [])
        growth = searched.files / max(races, default=searched.files)
        left_out = {
            (method.name, case) for method in contenders for case in CASES if too_slow(method, smaller, growth, case)
        }
        asked = questions(searched, Lookup.questions + 1)
        with phase(console, f"{searched.files:,} files: questions"):
            warm(contenders, asked, left_out)
        if searched.files in Lookup.cold_bars:
            with phase(console, f"{searched.files:,} files: new processes"):
                loading_s[searched.files] = statistics.median(cold(contenders, asked[PRESENT]))
        races[searched.files] = contenders
    print_times(console, races)
    points = [
        Point(method.name, files, 1e3 * typical)
        for files, contenders in races.items()
        for method in contenders
        if (typical := method.typical(PRESENT)) is not None
    ]
    many = [
        Result(
            f"{max(races):,} files asked for {count:,} keys",
            1e3 * very_many_keys(f"files_{max(races)}", count),
            "ms",
            bar=1e3 * bar_s,
        )
        for count, bar_s in Lookup.very_many.items()
    ]
    probes = [result for result in probe_results(console) if result.bar is not None]
    return Outcome([*compared(races, loading_s), *many, *large_results(console), *probes], points)


def very_many_keys(index: str, count: int) -> float:
    """Return how long it takes to find the files that may hold one of very many keys, as for a join."""
    lake = Lakebloom(location=INDEXES)
    rng = random.Random(Lookup.seed)
    times = []
    for _ in range(Lookup.very_many_rounds + 1):
        keys = [str(uuid.UUID(int=rng.getrandbits(128), version=4)) for _ in range(count)]
        condition = col("uuid").isin(keys)
        started = time.perf_counter()
        lake.candidates(index, condition)
        times.append(time.perf_counter() - started)
    return statistics.median(times[1:])  # the first one loads numba, and the rows of the index


def print_times(console: Console, races: dict[int, list[Method]]) -> None:
    for case in (*CASES, "whole process, present key"):
        printed = table(
            f"{case}: ms, median (number of questions)", ["method"], [f"{files:,} files" for files in races]
        )
        names = dict.fromkeys(method.name for contenders in races.values() for method in contenders)
        for name in names:
            cells = []
            for contenders in races.values():
                method = next((method for method in contenders if method.name == name), None)
                times = [] if method is None else method.times.get(case, []) if case in CASES else method.cold
                cells.append(f"{1e3 * statistics.median(times):,.1f} ({len(times)})" if times else "")
            printed.add_row(name, *cells)
        console.print(printed)


def compared(races: dict[int, list[Method]], loading_s: dict[int, float]) -> list[Result]:
    """Return our times beside those of the fastest peers, and beside what could not be less."""
    results = []
    for files, contenders in races.items():
        ours = next(method for method in contenders if method.name == OURS)
        peers = [method for method in contenders if method is not ours]
        limit = next(peer for peer in peers if peer.name == LIMIT)
        for number, case in enumerate(CASES):
            bar = Lookup.warm_bars[files][number] if files in Lookup.warm_bars else None
            fastest = _fastest([peer for peer in peers if peer.on_parquet], case)
            results.append(_result(f"{files:,} files, {case}", ours, fastest, case, bar, "at least"))
            lance_bar = Lookup.lance_bars[number] if files in Lookup.warm_bars else None
            bloom = next(peer for peer in peers if peer.name == BLOOM)
            results.append(_result(f"{files:,} files, {case}", ours, bloom, case, lance_bar, "at most"))
            if limit.typical(case) is not None:
                results.append(_result(f"{files:,} files, {case}", ours, limit, case, None, "at most"))
        if ours.cold:
            peer = min((peer for peer in peers if peer.on_parquet and peer.cold), key=lambda peer: min(peer.cold))
            times = [1e3 * statistics.median(method.cold) for method in (ours, peer)]
            name = f"{files:,} files, whole process"
            results.append(Result(name, times[0], "ms", peer.name, times[1], Lookup.cold_bars[files]))
            results.append(Result(name, times[0], "ms", LOADING, 1e3 * loading_s[files]))
    few, many = (_ours(races[files]) for files in (min(races), max(races)))
    name = f"{max(races):,} files, beside {min(races):,} files"
    for case in (PRESENT, ABSENT, MANY):
        results.append(_result(f"{name}, {case}", many, few, case, Lookup.growth_bar, "at most"))
    return results


def _ours(contenders: list[Method]) -> Method:
    return next(method for method in contenders if method.name == OURS)


def _fastest(peers: list[Method], case: str) -> Method:
    return min(peers, key=lambda peer: peer.typical(case) or float("inf"))


def _result(name: str, ours: Method, peer: Method, case: str, bar: float | None, kind: Kind) -> Result:
    mine, theirs = (1e3 * (method.typical(case) or float("nan")) for method in (ours, peer))
    return Result(name, mine, "ms", peer.name, theirs, bar, kind)


if __name__ == "__main__":
    warnings.filterwarnings("ignore", "lance is not fork-safe")
    main("rows by key without Spark", run)
