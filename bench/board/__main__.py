"""The board of peers: what a user would pick instead, in the same lakes, side by side: `make bench-board`.

The lakes have small files, files of 200 columns, and files of real size. Each peer is asked for a present key, an
absent one, 100 keys and 10,000 keys of which 100 are there, in turn, and each answer is compared. What each of them
keeps is made once; its time and bytes are those of that day. Some of the large files are then read from an object store
that is 20 ms away. A peer that is better is shown as better. Slow ones are asked fewer questions (bench/parameters.py).
"""

from __future__ import annotations

import shutil
import statistics
import sys
import warnings

from rich.console import Console

from bench.board.distant import distant_results
from bench.board.forms import CLICKHOUSE, LMDB, ROCKSDB, Lake, make_forms
from bench.board.lakes import BOARD, ON_DELTA, ON_ICEBERG, VERY_MANY, lakes, make_indexes, place_name
from bench.ledger import Cost, Ledger
from bench.lookup.large import large_lake, large_questions
from bench.lookup.race import BLOOM, BTREE, LIMIT, LOADING, OURS, TOLD, Method, cold, too_slow, warm
from bench.lookup.source import ABSENT, CASES, PRESENT, size_of
from bench.parameters import WORK, Board, Large, LargeLookup, Needle
from bench.phases import phase
from bench.results import Matrix, Outcome, Point, Result, figure, main
from bench.tables.source import newest_metadata

ALL_CASES = (*CASES, VERY_MANY)
DUCKDB, DATAFUSION = "DuckDB, embedded filters", "DataFusion, embedded filters"
_HEADINGS = ("ms, median", *ALL_CASES, "new process", "build, s", "bytes a key", "needs")
_FILTERS, _COPY, _NOTHING, _MAP = "filters in the files", "a copy in its own format", "nothing", "a map of all keys"
NEEDS = {
    OURS: "an index",
    ON_DELTA: "an index",
    ON_ICEBERG: "an index",
    LIMIT: "to be told the place",
    DUCKDB: _FILTERS,
    "DataFusion": _NOTHING,
    DATAFUSION: _FILTERS,
    "Polars": _NOTHING,
    "deltalake": _FILTERS,
    "pyiceberg": _NOTHING,
    TOLD: "to be told the place",
    BLOOM: _COPY,
    BTREE: _COPY,
    CLICKHOUSE: _COPY,
    LMDB: _MAP,
    ROCKSDB: _MAP,
}


def run(console: Console) -> Outcome:
    """Measure everything."""
    _check_space()
    results: list[Result] = []
    matrices: list[Matrix] = []
    points: list[Point] = []
    before: tuple[Lake, list[Method]] | None = None
    with phase(console, "lakes"):
        made = lakes()
    missing = {}
    for lake, _ in made:
        with phase(console, f"{lake.title}: forms"):
            missing[lake.name] = make_forms(lake, _smaller(lake, [each for each, _ in made]))
    with phase(console, "indexes"):
        make_indexes([lake for lake, _ in made])
    for lake, asked in made:
        contenders = _methods(lake, missing[lake.name])
        with phase(console, f"{lake.title}: questions"):
            warm(contenders, asked, _left_out(lake, contenders, before), Board.case_s)
        with phase(console, f"{lake.title}: new processes"):
            loading_s = statistics.median(cold(contenders, asked[PRESENT], Board.cold_rounds))
        matrices.append(_matrix(lake, contenders, missing[lake.name], loading_s))
        before = lake, contenders
        if lake.by_row_group:
            results += _bars(lake, contenders)
        if lake.name != "wide":
            points += _points(lake, contenders)
    with phase(console, "an object store"):
        distant, more = distant_results(console, files := large_lake(), large_questions(files))
    for matrix in (*matrices, distant):
        console.print(matrix.printed())
    return Outcome([*results, *more], points, matrices=[*matrices, distant])


def _check_space() -> None:
    """End before the disk is full: all lakes and what the peers keep of them take much room."""
    WORK.mkdir(parents=True, exist_ok=True)
    files = {state.st_ino: state for path in WORK.rglob("*") if not (state := path.lstat()).st_mode & 0o040000}
    free_gb, kept_gb = (
        each / 1e9 for each in (shutil.disk_usage(WORK).free, sum(512 * state.st_blocks for state in files.values()))
    )
    if free_gb + kept_gb < Board.space_gb:
        sys.exit(
            f"{WORK} needs {Board.space_gb} GB: {kept_gb:.0f} GB are there, and {free_gb:.0f} GB of the disk are free"
        )


def _smaller(lake: Lake, others: list[Lake]) -> tuple[Lake, dict[str, Cost]] | None:
    """Return a lake with files of the same kind and fewer rows, and what its forms took."""
    fewer = [each for each in others if each.rows < lake.rows and each.name.startswith("files_") and each is not lake]
    return (fewer[-1], Ledger(fewer[-1].name).costs()) if fewer and lake.name.startswith("files_") else None


def _left_out(lake: Lake, contenders: list[Method], before: tuple[Lake, list[Method]] | None) -> set[tuple[str, str]]:
    """Return which methods are not asked which questions, because they would take too long."""
    many_files = set() if lake.by_row_group else {("pyiceberg", VERY_MANY)}  # it translates the list for each file
    if before is None or not (lake.name.startswith("files_") and before[0].name.startswith("files_")):
        return many_files
    known = {method.name for method in before[1]}
    growth = lake.rows / before[0].rows
    return many_files | {
        (method.name, case)
        for method in contenders
        for case in ALL_CASES
        if method.name in known and method.name != LIMIT and too_slow(method, before[1], growth, case)
    }


def _methods(lake: Lake, missing: dict[str, float]) -> list[Method]:
    plain, embedded, work = str(lake.plain), str(lake.embedded), str(lake.work)
    places = f"{plain}#" if lake.by_row_group else plain
    logs = [
        Method(ON_DELTA, "lakebloom", str(BOARD / "indexes"), place_name(lake, ON_DELTA)),
        Method(ON_ICEBERG, "lakebloom", str(BOARD / "indexes"), place_name(lake, ON_ICEBERG)),
        Method("deltalake", "deltalake", str(lake.delta), first_counts=True),
        Method("pyiceberg", "pyiceberg", newest_metadata(lake.iceberg), first_counts=True),
    ] if lake.has_logs else []  # fmt: skip
    found = [
        Method(OURS, "lakebloom", str(lake.indexes), lake.name),
        *logs,
        Method(DUCKDB, "duckdb", embedded, first_counts=True),
        Method("DataFusion", "datafusion", plain, "plain", first_counts=True),
        Method(DATAFUSION, "datafusion", embedded, first_counts=True),
        Method("Polars", "polars", plain, first_counts=True),
        Method(TOLD if lake.by_row_group else LIMIT, "", plain, on_parquet=False, first_counts=True),
        *(Method(f"Lance, {kind}", "lance", str(lake.lance), str(no)) for kind, no in lake.lance_versions.items()),
        Method(CLICKHOUSE, "clickhouse", str(lake.work / "clickhouse"), lake.table),
        Method(LMDB, "lmdb", work, places, first_counts=True),
        Method(ROCKSDB, "rocksdb", work, places, first_counts=True),
    ]
    return [method for method in found if method.name not in missing]


def _matrix(lake: Lake, contenders: list[Method], missing: dict[str, float], loading_s: float) -> Matrix:
    rows = []
    embedded = Cost(0.0, size_of(lake.embedded) - size_of(lake.plain))
    costs = {**Ledger(lake.name).costs(), DUCKDB: embedded, DATAFUSION: embedded}
    for method in contenders:
        times = [method.typical(case) for case in ALL_CASES]
        cost = costs.get(method.name)
        rows.append(
            (
                method.name,
                *("" if each is None else figure(1e3 * each, "") for each in times),
                f"{1e3 * statistics.median(method.cold):,.0f}" if method.cold else "",
                figure(cost.build_s, "") if cost is not None and cost.build_s else "",
                "" if cost is None else f"{cost.size_bytes / lake.rows:.1f}",
                NEEDS[method.name] + (f"; failed, {method.failure}" if method.failure else ""),
            )
        )
    empty = [""] * len(ALL_CASES)
    for name, expected_s in missing.items():
        rows.append((name, *empty, "", "", "", f"{NEEDS[name]}: not made, it would take {expected_s:.0f} s"))
    loading = (LOADING, *empty, f"{1e3 * loading_s:,.0f}", "", "", "")
    return Matrix(lake.title, _HEADINGS, (*rows, loading))


def _points(lake: Lake, contenders: list[Method]) -> list[Point]:
    rows_per_file = Large.rows_per_file if lake.by_row_group else Needle.rows_per_file
    files = LargeLookup.files if lake.by_row_group else lake.rows // rows_per_file
    return [
        Point(method.name, files, 1e3 * typical, rows_per_file)
        for method in contenders
        if (typical := method.typical(PRESENT)) is not None and method.name not in (ON_DELTA, ON_ICEBERG)
    ]


def _bars(lake: Lake, contenders: list[Method]) -> list[Result]:
    times = {method.name: 1e3 * (method.typical(PRESENT) or float("nan")) for method in contenders}
    absent = {method.name: 1e3 * (method.typical(ABSENT) or float("nan")) for method in contenders}
    ours = times[OURS]
    return [
        Result(f"{lake.title}, {PRESENT}", ours, "ms", DUCKDB, times[DUCKDB], Board.duckdb_bar, "at least"),
        Result(f"{lake.title}, {PRESENT}", ours, "ms", BLOOM, times[BLOOM], Board.lance_bar),
        *(Result(f"{lake.title}, {PRESENT}", ours, "ms", peer, times[peer]) for peer in (CLICKHOUSE, LMDB, ROCKSDB)),
        *(Result(f"{lake.title}, {ABSENT}", absent[OURS], "ms", peer, absent[peer]) for peer in (CLICKHOUSE, LMDB)),
    ]


if __name__ == "__main__":
    warnings.filterwarnings("ignore", "lance is not fork-safe")
    main("all peers side by side", run)
