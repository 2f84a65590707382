"""docs/BENCHMARKS.md: what all benches found, as a page."""

from __future__ import annotations

import os
import platform
import textwrap
from collections.abc import Iterable
from pathlib import Path

from bench.results import HEADINGS, Outcome, Result, versions
from bench.words import in_words

_INTRODUCTION = """`make bench` writes this page. Results are checked before times are compared.
Compared methods ran in turn in one run, on the same generated data, which was in the page cache. Parameters and seeds
are in `bench/parameters.py`. A bar with <= limits ours / theirs, a bar with >= limits theirs / ours; without a peer it
limits our own figure. Ratios are compared with the three digits that are printed. Rows without a bar only inform.
"""
_TITLES = {
    "start": "From nothing to a first result",
    "kernels": "Hashing and filtering, one thread",
    "build": "Building and refreshing an index",
    "needle": "Keys in Spark",
    "lookup": "Rows by key without Spark",
    "board": "All peers side by side",
    "join": "A join in which nine of ten rows have no match",
    "embed": "Embedding filters into a lake",
    "scale": "How costs grow",
    "size": "Bytes for each distinct value",
    "tables": "Delta and Iceberg tables, and erasing keys",
}
_LIMITS = {
    "start": """
        Python's own start, and the modules that a command needs: rich and typer for all of them, PyArrow and
        numpy for those that read files. With Spark: the start of its session, and Spark's first look at the
        Parquet files, for which it runs its first job; explaining also compiles the rule.
    """,
    "kernels": """
        XXH64 and its multiplications while a filter fits into the cache; larger filters have one cache miss for
        each value, several at a time. The first result of a process waits for numba to load.
    """,
    "build": """
        Reading and decoding the columns with PyArrow, which is a row of the table. Hashing, inserting and
        writing come on top, and a Spark job's start and end. A refresh lists the table and compares it with the
        index, and runs a job for the new files.
    """,
    "needle": """
        Spark: planning, scheduling and collecting a job that reads one file. The index is probed during
        planning, so the number of files hardly matters.
    """,
    "lookup": """
        *Present key:* PyArrow's reading of the one file, a row of the table: Snappy and decoding of the key
        column, then of the others. *100 keys:* the same for each of their files, on all cores, and for 0.25
        unnecessary files per key, which is the automatic rate. *Absent key:* a few hundred calls in Python,
        with processor caches that other engines have filled. *Whole process:* loading numpy and PyArrow, a row
        of the table; the rest are lakebloom's own modules, listing the table, and the end of the process. *A
        million units:* eight planes of one bit a unit for each layer that is probed.
    """,
    "board": """
        What is in the tables above. Maps know the file of a key for certain and then read a whole file or row
        group with PyArrow; they keep all keys. Lance and ClickHouse keep a copy of the rows in their own format.
        Build times are without the copy for Lance, with it for ClickHouse, and without the start of Spark for ours.
        Bytes a key are those of what answers for keys: index, filters, or map. A method that took long
        for questions of one kind was asked no more of them; one without a figure would have taken 10 s for one.
    """,
    "join": """
        Spark's scan of the large side, and the eight tests of a bit for each of its rows. Little more is
        shuffled than necessary.
    """,
    "embed": """
        Reading the column and copying the file; the limit in the table consists of these two.
    """,
    "scale": """
        The first lookup of a row or plane computes its checksum. Builds of
        tiny files are bound by opening them, refreshes by listing the table.
    """,
    "size": """
        The filters' own bits: at the same rate a split block filter is a split block filter. Where ours are
        smaller they have no power of two to fill, or two layers. Each tile has 0.8 kB of framing, which many
        files share, and files of one tile share the size of the largest. Ours were built for the rate that the
        peer's bits show, plus two standard errors; false positives of both were counted, and ours must not be
        significantly more.
    """,
    "tables": """
        A lookup in a Delta table looks for the next commit, and for the last one; one in an Iceberg table looks
        which metadata file is the newest. The rest is a lookup in plain files. A refresh compares all files of the
        log with those of the index, as columns; and more units have a lower rate, whose filters have more layers to
        write. A plan reads the key column of the files that hold keys, file by file.
    """,
}


def page(outcomes: dict[str, Outcome]) -> str:
    """Return the page."""
    results = [result for outcome in outcomes.values() for result in outcome.results if result.bar is not None]
    met = sum(result.met for result in results)
    taken_s = sum(outcome.elapsed_s for outcome in outcomes.values())
    parts = [
        "# Benchmarks\n",
        "![Latency of one present key against the size and the number of files](latency.svg)\n",
        in_words(outcomes),
        _INTRODUCTION,
        f"{met} of {len(results)} bars are met. {_machine()}; {taken_s / 60:.0f} minutes.\n",
        "\n".join(f"**{name} failed**: {each.failure}.\n" for name, each in outcomes.items() if each.failure),
        "\n".join(_table(("", "version"), versions().items())) + "\n",
    ]
    for name, outcome in outcomes.items():
        parts.append(f"## {_TITLES[name]}\n\n{_run(name, outcome)}\n")
        if not outcome.results:
            continue
        for matrix in outcome.matrices:
            parts.append(f"{matrix.title}:\n\n" + "\n".join(_table(matrix.headings, matrix.rows)) + "\n")
        parts.append("\n".join(_table((*HEADINGS, ""), map(_row, outcome.results))) + "\n")
        limits = " ".join(_LIMITS[name].split())
        parts.append(textwrap.fill(f"What limits it now: {limits}", 120) + "\n")
    return "\n".join(part for part in parts if part)


def _run(name: str, outcome: Outcome) -> str:
    """Say when a bench ran, and on which commit."""
    told = [f"`make bench-{name}`"]
    if outcome.results:
        told += [f"{outcome.elapsed_s:.0f} s", outcome.date, f"commit {outcome.commit}" if outcome.commit else ""]
    said = ", ".join(filter(None, told)) + "."
    if not outcome.failure:
        return said
    rest = "The figures are of the run before." if outcome.results else "There are no figures."
    return f"{said} **The last run failed**: {outcome.failure}. {rest}"


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
    return f"{os.cpu_count()} cores ({name})"
