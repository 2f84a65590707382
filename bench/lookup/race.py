"""Methods that answer the same questions in turn. What came back is compared before any time counts."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from bench.lookup.engines import ENGINES, right_files, right_row_groups
from bench.lookup.source import INDEXES, PRESENT, LookupTable, Question
from bench.parameters import Lookup

LIMIT = "limit: PyArrow, told the files"
TOLD = "PyArrow, told the row groups"
LOADING = "limit: loading numpy and PyArrow"
OURS, BLOOM, BTREE = "lakebloom", "Lance, BLOOMFILTER", "Lance, BTREE"
_PARQUET = {"DuckDB": "duckdb", "DataFusion": "datafusion", "Polars": "polars", "PyArrow": "pyarrow"}
_READS_FILTERS = ("DuckDB", "DataFusion")

_READ_BYTES = 16 << 20

COLD = """
import sys
from bench.lookup.engines import ENGINES
engine, place, detail, *keys = sys.argv[1:]
print(ENGINES[engine](place, detail)(keys))
"""


@dataclass(slots=True)
class Method:
    """A way to search one table, and what it took."""

    name: str
    engine: str
    place: str
    detail: str = ""
    on_parquet: bool = True
    """Whether it searches the same kind of files as we do."""
    first_counts: bool = False
    """Whether a slow first answer counts: the method loads nothing then that takes a noticeable part of it."""
    times: dict[str, list[float]] = field(default_factory=dict)
    cold: list[float] = field(default_factory=list)
    failure: str = ""
    """Why a peer could not go on, if so."""

    def typical(self, case: str) -> float | None:
        """Return the median, None where nothing was measured."""
        times = self.times.get(case)
        return statistics.median(times) if times else None

    def has_work(self, question: Question) -> bool:
        """Tell whether there is anything to do: a limit that is told the files has none for a key in none."""
        return self.name not in (LIMIT, TOLD) or bool(question.rows)

    def wants_more(self, case: str, case_s: float) -> bool:
        return sum(self.times.get(case, ())) < case_s


def methods(table: LookupTable) -> list[Method]:
    """Return all methods for a table, ours first."""
    found = [Method(OURS, "lakebloom", str(INDEXES), table.index)]
    for name, engine in _PARQUET.items():
        found.append(Method(name, engine, table.plain, first_counts=True))
        if name in _READS_FILTERS:
            found.append(Method(f"{name}, embedded filters", engine, table.embedded, first_counts=True))
    found.append(Method(LIMIT, "", table.plain, on_parquet=False))
    for kind, version in table.lance_versions.items():
        found.append(Method(f"Lance, {kind}", "lance", table.lance, str(version), on_parquet=False))
    return found


def too_slow(method: Method, smaller: list[Method], growth: float, case: str) -> bool:
    """Tell whether a method took so long for a smaller table that it is not asked about this one."""
    before = next((other.typical(case) for other in smaller if other.name == method.name), 0.0)
    return before is None or before * growth > Lookup.slow_s


def warm(
    contenders: list[Method],
    asked: dict[str, list[Question]],
    left_out: set[tuple[str, str]],
    case_s: float = Lookup.case_s,
) -> None:
    """Ask all questions, the methods in turn. The first one only warms up, unless it is slow and counts."""
    to_page_cache(*(Path(method.place, method.detail if method.name == OURS else "") for method in contenders))
    homes = {key: path for case in asked.values() for question in case for key, path in question.homes.items()}
    told = {LIMIT: right_files, TOLD: right_row_groups}
    asks = {
        method.name: told[method.name](homes)
        if method.name in told
        else ENGINES[method.engine](method.place, method.detail)
        for method in contenders
    }
    for number in range(max(map(len, asked.values()))):
        for case in (case for case, questions in asked.items() if number < len(questions)):
            question = asked[case][number]
            for method in contenders:
                asked_enough = (method.name, case) in left_out or not method.wants_more(case, case_s)
                if asked_enough or method.failure or not method.has_work(question):
                    continue
                started = time.perf_counter()
                try:
                    rows = asks[method.name](question.keys)
                except Exception as error:  # the errors of peers are of many kinds, and no reason to lose the others
                    if method.name.startswith(OURS):
                        raise
                    method.failure = f"{case}: {error!r}"[:200]
                    continue
                elapsed_s = time.perf_counter() - started
                assert rows == question.rows, f"{method.name}, {case}: {rows}"
                if number > 0 or (method.first_counts and elapsed_s > case_s):
                    method.times.setdefault(case, []).append(elapsed_s)


def to_page_cache(*places: Path) -> None:
    """Read all files below some places: of a lake that was made some time ago, not all are in memory."""
    for place in dict.fromkeys(places):
        for path in place.rglob("*") if place.is_dir() else [place] if place.is_file() else []:
            if path.is_file():
                with path.open("rb", buffering=0) as file:
                    while file.read(_READ_BYTES):
                        pass


def cold(contenders: list[Method], asked: list[Question], rounds: int = Lookup.cold_rounds) -> list[float]:
    """Time whole processes from start to end, those of the methods in turn, but for methods that read everything.

    Returns the times of processes that only load what ours is made of.
    """
    quick = [
        method
        for method in contenders
        if method.engine and not method.failure and (method.typical(PRESENT) or Lookup.slow_s) < Lookup.cold_s
    ]
    loading = []
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": f"{root / 'src'}:{root}"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its bytecode
    for number in range(rounds + 1):
        question = asked[number]
        for method in quick:
            arguments = [COLD, method.engine, method.place, method.detail, *question.keys]
            run, elapsed_s = _process(arguments, environment)
            assert run.stdout.strip() == str(question.rows), f"{method.name}: {run.stdout}"
            if number > 0:  # the first one may compile bytecode
                method.cold.append(elapsed_s)
        loading.append(_process(["import numpy, pyarrow.compute, pyarrow.parquet"], environment)[1])
    return loading[1:]


def _process(arguments: list[str], environment: dict[str, str]) -> tuple[subprocess.CompletedProcess[str], float]:
    started = time.perf_counter()
    run = subprocess.run(
        [sys.executable, "-c", *arguments], env=environment, capture_output=True, text=True, check=True
    )
    return run, time.perf_counter() - started
