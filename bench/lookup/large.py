"""The second lake of `make bench-lookup`: files of 2,000,000 rows and 12 columns, row groups of 1,000,000 rows.

Half of the files are written as Spark writes them and half with PyArrow's defaults. Questions and times are as in the
first lake; each answer has all columns.
"""

from __future__ import annotations

import random
import shutil
import statistics
import time
import uuid
from dataclasses import replace
from typing import Any

import pyarrow.parquet as pq
from rich.console import Console

from bench.large.source import LargeFiles, large_files
from bench.ledger import Cost, Ledger
from bench.lookup.race import BLOOM, BTREE, LOADING, OURS, TOLD, Method, cold, warm
from bench.lookup.source import ABSENT, CASES, FOLDER, INDEXES, MANY, PRESENT, Question, write_lance
from bench.parameters import LargeLookup, Lookup
from bench.phases import phase
from bench.results import Kind, Result, table
from bench.session import session
from lakebloom import BloomIndexConfig, Lakebloom, col
from lakebloom.errors import LakebloomError
from lakebloom.tables.parquet.pages.file_pages import FilePages
from lakebloom.tables.parquet.pages.local_bytes import LocalBytes

INDEX = "large_files"
LANCE = FOLDER / "large" / "lance"
_PEERS = {"DuckDB": "duckdb", "DataFusion": "datafusion", "Polars": "polars"}
_READS_FILTERS = ("DuckDB", "DataFusion")


def large_results(console: Console) -> list[Result]:
    """Measure everything."""
    with phase(console, "large files: lake"):
        files = large_lake()
        contenders = _methods(files)
    with phase(console, "large files: index, built three times in two ways"):
        build = large_index(files)
    asked = large_questions(files)
    with phase(console, "large files: questions"):
        warm(contenders, asked, set())
    with phase(console, "large files: new processes"):
        loading_s = statistics.median(cold(contenders, asked[PRESENT]))
    _print(console, contenders, files)
    return [*_compared(contenders, loading_s, _limits(asked)), _bytes_of_a_row(files, asked), *build]


def large_lake() -> LargeFiles:
    """Return the lake; it is made if it is not there."""
    return large_files(FOLDER / "large", key="uuid", files=LargeLookup.files, rows=LargeLookup.sampled_rows)


def large_lance(files: LargeFiles) -> dict[str, int]:
    """Return the versions of Lance's copy with each kind of index."""
    return write_lance(files.plain, LANCE, ("BLOOMFILTER", "BTREE"), INDEX)


def has_large_index() -> bool:
    """Tell whether there is an index that fits the files."""
    try:
        lake = Lakebloom(location=INDEXES)
        return bool(lake.lookup(INDEX, col("uuid") == "none", unindexed="error").num_rows == 0)
    except LakebloomError:
        return False


def large_index(files: LargeFiles) -> list[Result]:
    """Build the index; return what pages cost beside one filter for each file."""
    shutil.rmtree(INDEXES / INDEX, ignore_errors=True)
    spark = session("lookup")
    lake = Lakebloom(spark, INDEXES)
    seconds: dict[str, list[float]] = {}
    sizes: dict[str, int] = {}
    for _ in range(3):  # the first round loads and compiles
        for name, granularity in (("by_file", "file"), (INDEX, "auto")):
            config = BloomIndexConfig(name, ["uuid"], granularity=granularity)  # type: ignore[arg-type]
            started = time.perf_counter()
            lake.create_index(str(files.plain), config, replace=True)
            seconds.setdefault(name, []).append(time.perf_counter() - started)
            sizes[name] = lake.index(name).size_bytes
    Ledger(INDEX).note(OURS, Cost(min(seconds[INDEX]), sizes[INDEX]))
    lake.delete_index("by_file", force=True)
    spark.stop()
    built_s, by_file_s = min(seconds[INDEX]), min(seconds["by_file"])
    return [
        Result("large files, build with pages", built_s, "s", "one filter a file", by_file_s, LargeLookup.build_bar),
        Result("large files, index with pages", sizes[INDEX] / 1e6, "MB", "one filter a file", sizes["by_file"] / 1e6),
    ]


def large_questions(files: LargeFiles) -> dict[str, list[Question]]:
    """Return questions of each kind, each with keys of its own."""
    rng = random.Random(Lookup.seed)
    count = LargeLookup.questions + 1
    rows = [(key, amount, f"{path}#{group}") for key, amount, path, group in files.rows]
    absent = [str(uuid.UUID(int=rng.getrandbits(128), version=4)) for _ in range(count)]
    return {
        PRESENT: [Question.of([row]) for row in rng.sample(rows, count)],
        ABSENT: [Question([key], [], {}) for key in absent],
        MANY: [Question.of(rng.sample(rows, Lookup.keys)) for _ in range(count)],
    }


def _methods(files: LargeFiles) -> list[Method]:
    found = [Method(OURS, "lakebloom", str(INDEXES), INDEX)]
    for name, engine in _PEERS.items():
        place = files.embedded if name in _READS_FILTERS else files.plain
        found.append(Method(name, engine, str(place), first_counts=True))
    found.append(Method(TOLD, "", str(files.plain), on_parquet=False))
    for kind, version in large_lance(files).items():
        found.append(Method(f"Lance, {kind}", "lance", str(LANCE), str(version), on_parquet=False))
    return found


def _compared(contenders: list[Method], loading_s: float, limits: dict[str, str]) -> list[Result]:
    methods = {method.name: method for method in contenders}
    ours = methods[OURS]

    def result(case: str, peer: str, bar: float | None, kind: Kind) -> Result:
        times = [1e3 * (method.typical(case) or float("nan")) for method in (ours, methods[peer])]
        limited_by = limits.get(case, "")
        return Result(f"large files, {case}", times[0], "ms", peer, times[1], bar, kind, limited_by)

    results = [result(PRESENT, peer, bar, "at least") for peer, bar in LargeLookup.peers_bars.items()]
    results.append(result(PRESENT, TOLD, LargeLookup.told_bar, "at least"))
    results += [result(PRESENT, f"Lance, {kind}", bar, "at most") for kind, bar in LargeLookup.lance_bars.items()]
    results += [result(ABSENT, peer, LargeLookup.absent_bar, "at most") for peer in (BLOOM, BTREE)]
    results.append(result(MANY, "DuckDB", LargeLookup.many_bar, "at least"))
    results.append(result(MANY, BLOOM, None, "at most"))
    if ours.cold:
        whole = Result("large files, whole process", 1e3 * statistics.median(ours.cold), "ms", LOADING, 1e3 * loading_s)
        results.append(replace(whole, bar=LargeLookup.cold_bar))
    return results


class _Watch:
    """Counts how long, or how many bytes, calls of a method take."""

    def __init__(self, owner: Any, name: str) -> None:
        self._owner, self._name, self._original = owner, name, getattr(owner, name)
        self.seconds, self.size_bytes = 0.0, 0

    def __enter__(self) -> _Watch:
        def watched(*arguments: Any, **options: Any) -> Any:
            started = time.perf_counter()
            try:
                return self._original(*arguments, **options)
            finally:
                self.seconds += time.perf_counter() - started
                if self._owner is LocalBytes:
                    self.size_bytes += sum(piece.length for piece in arguments[2])

        setattr(self._owner, self._name, watched)
        return self

    def __exit__(self, *_: object) -> None:
        setattr(self._owner, self._name, self._original)


def _limits(asked: dict[str, list[Question]]) -> dict[str, str]:
    """Say what our time of each case goes into."""
    lake = Lakebloom(location=INDEXES)
    said = {}
    for case in CASES:
        parts = []
        for question in asked[case]:
            condition = col("uuid").isin(question.keys)
            with _Watch(FilePages, "read") as pages:
                started = time.perf_counter()
                lake.lookup(INDEX, condition)
                whole = time.perf_counter() - started
            started = time.perf_counter()
            lake.candidates(INDEX, condition)
            parts.append((whole, pages.seconds, time.perf_counter() - started))
        whole, read, probed = (1e3 * statistics.median(part) for part in zip(*parts[1:], strict=True))
        threads = " in all threads" if case == MANY else ""
        said[case] = f"of {whole:.1f} ms, pages read and decoded {read:.1f}{threads}, index probed {probed:.1f}"
    return said


def _bytes_of_a_row(files: LargeFiles, asked: dict[str, list[Question]]) -> Result:
    """Count what one row takes, in the mean of the questions, beside its row group."""
    lake = Lakebloom(location=INDEXES)
    shares = []
    for question in asked[PRESENT]:
        lake.lookup(INDEX, col("uuid") == question.keys[0])  # knows where pages are from then on
        with _Watch(LocalBytes, "fill") as fills:
            lake.lookup(INDEX, col("uuid") == question.keys[0])
        path, _, group = question.homes[question.keys[0]].rpartition("#")
        metadata = pq.read_metadata(path).row_group(int(group))
        shares.append(fills.size_bytes / sum(metadata.column(i).total_compressed_size for i in range(12)))
    limited_by = "one page of each column, and dictionaries that it uses"
    return Result("large files, share of the row group read for one row", statistics.mean(shares), "",
                  bar=LargeLookup.bytes_bar, limited_by=limited_by)  # fmt: skip


def _print(console: Console, contenders: list[Method], files: LargeFiles) -> None:
    count = len(list(files.plain.iterdir()))
    printed = table(f"{count} files of 2,000,000 rows: ms, median (number of questions)", ["method"], list(CASES))
    for method in contenders:
        times = [method.times.get(case, []) for case in CASES]
        printed.add_row(
            method.name, *(f"{1e3 * statistics.median(each):,.1f} ({len(each)})" if each else "" for each in times)
        )
    console.print(printed)
