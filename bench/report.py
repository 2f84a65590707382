"""docs/BENCHMARKS.md: what all benches found, as a page."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Iterable
from pathlib import Path

from bench.results import HEADINGS, Outcome, Result, versions

_INTRODUCTION = """# Benchmarks

Written by `make bench`; not edited by hand. Every answer is compared before any time is. Methods that are compared ran
in turn in one run, on the same generated data, which was in the page cache. Parameters and seeds are in
`bench/parameters.py`. A bar with <= is for ours / theirs, one with >= for theirs / ours; where there is no peer it is
for our own figure. Rows without a bar only inform.
"""
_TITLES = {
    "kernels": "Hashing and filtering, one thread",
    "build": "Building and refreshing an index",
    "needle": "Keys in Spark",
    "lookup": "Rows by key without Spark",
    "join": "A join of which nine rows in ten have no partner",
    "embed": "Embedding filters into a lake",
    "scale": "How costs grow",
    "size": "Bytes for each distinct value",
}


def page(outcomes: dict[str, Outcome]) -> str:
    """Return the page."""
    results = [result for outcome in outcomes.values() for result in outcome.results if result.bar is not None]
    met = sum(result.met for result in results)
    taken_s = sum(outcome.elapsed_s for outcome in outcomes.values())
    parts = [
        _INTRODUCTION,
        f"{met} of {len(results)} bars are met. {_machine()}; {taken_s / 60:.0f} minutes.\n",
        "\n".join(_table(("", "version"), versions().items())) + "\n",
        "![Latency of one present key against the number of files](latency.svg)\n",
    ]
    for name, outcome in outcomes.items():
        parts.append(f"## {_TITLES[name]}\n\n`make bench-{name}`, {outcome.elapsed_s:.0f} s\n")
        parts.append("\n".join(_table((*HEADINGS, ""), map(_row, outcome.results))) + "\n")
    return "\n".join(parts)


def _row(result: Result) -> list[str]:
    cells = result.cells()
    if result.limited_by:
        cells[0] = f"{cells[0]} ({result.limited_by})"
    return [*cells, f"**{result.verdict}**" if result.verdict == "missed" else result.verdict]


def _table(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    lines = [list(headings)]
    lines.append(["---"] * len(lines[0]))
    lines.extend(list(row) for row in rows)
    return ["| " + " | ".join(line) + " |" for line in lines]


def _machine() -> str:
    names = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    name = names[0].partition(": ")[2] if names else platform.machine()
    return f"{time.strftime('%Y-%m-%d', time.gmtime())}, {os.cpu_count()} cores ({name})"
