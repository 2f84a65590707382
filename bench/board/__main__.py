"""The board of peers: what a user would pick instead, in the same lakes, side by side: `make bench-board`.

Three lakes: small files, files of 200 columns, and files of real size. Each peer is asked for a present key, an absent
one, 100 keys and 10,000 keys of which 100 are there, in turn, and each answer is compared. What each of them keeps is
made once; its time and bytes are those of that day. Some of the large files are then read from an object store that is
20 ms away. A peer that is better is shown as better.
"""

from __future__ import annotations

import random
import shutil
import statistics
import sys
import uuid
import warnings
from pathlib import Path

import pyarrow.parquet as pq
from rich.console import Console

from bench.board.distant import distant_results
from bench.board.forms import CLICKHOUSE, LMDB, ROCKSDB, Cost, Lake, costs_of, size_of
from bench.board.wide import wide_files, wide_questions
from bench.large.source import LargeFiles, large_files
from bench.lookup.large import large_questions
from bench.lookup.race import BLOOM, BTREE, LOADING, OURS, TOLD, Method, cold, warm
from bench.lookup.source import (
    ABSENT,
    CASES,
    FOLDER,
    MANY,
    PRESENT,
    LookupTable,
    Question,
    questions,
    tables,
    write_lance,
)
from bench.parameters import WORK, Board, Large, LargeLookup, Wide
from bench.results import Matrix, Outcome, Point, Result, figure, main

VERY_MANY = f"{Board.many:,} keys"
ALL_CASES = (*CASES, VERY_MANY)
DUCKDB = "DuckDB, embedded filters"
_HEADINGS = ("ms, median", *ALL_CASES, "new process", "build, s", "bytes a key", "needs")
_FILTERS, _COPY, _NOTHING = "filters in the files", "a copy in its own format", "nothing"
NEEDS = {
    OURS: "an index", DUCKDB: _FILTERS, "DataFusion": _NOTHING, "DataFusion, embedded filters": _FILTERS,
    "Polars": _NOTHING, BLOOM: _COPY, BTREE: _COPY, CLICKHOUSE: _COPY, LMDB: "a map of all keys",
    ROCKSDB: "a map of all keys", TOLD: "to be told the place",
}  # fmt: skip


def run(console: Console) -> Outcome:
    """Measure everything."""
    _check_space()
    results: list[Result] = []
    matrices, points = [], []
    for lake, asked in (_small(), _wide(), _large()):
        costs = {**costs_of(lake), DUCKDB: Cost(0.0, size_of(lake.embedded) - size_of(lake.plain))}
        contenders = _methods(lake)
        warm(contenders, asked, set())
        loading_s = statistics.median(cold(contenders, asked[PRESENT]))
        matrices.append(_matrix(lake, contenders, costs, loading_s))
        if lake.by_row_group:
            results += _bars(lake, contenders)
            points = [
                Point(method.name, LargeLookup.files, 1e3 * typical, Large.rows_per_file)
                for method in contenders
                if (typical := method.typical(PRESENT)) is not None
            ]
        console.print(f"[dim]{lake.title}: measured[/]")
    files = _large_files()
    distant, more = distant_results(console, files, large_questions(files))
    matrices.append(distant)
    results += more
    for matrix in matrices:
        console.print(matrix.printed())
    return Outcome(results, points, matrices=matrices)


def _check_space() -> None:
    """End before the disk is full: all lakes and what the peers keep of them take much room."""
    WORK.mkdir(exist_ok=True)
    free_gb, kept_gb = shutil.disk_usage(WORK).free / 1e9, size_of(WORK) / 1e9
    if free_gb + kept_gb < Board.space_gb:
        sys.exit(
            f"{WORK} needs {Board.space_gb} GB: {kept_gb:.0f} GB are there, and {free_gb:.0f} GB of the disk are free"
        )


def _small() -> tuple[Lake, dict[str, list[Question]]]:
    (table,) = (each for each in tables() if each.files == Board.small_files)
    lake = Lake(
        "small", f"{table.files:,} files of 25,000 rows", *map(Path, (table.plain, table.embedded, table.lance)),
        WORK / "board" / "small", _rows(Path(table.plain)), by_row_group=False,
    )  # fmt: skip
    return lake, _with_very_many(_questions_of(table))


def _questions_of(table: LookupTable) -> dict[str, list[Question]]:
    return questions(table, Board.questions + 1)


def _large_files() -> LargeFiles:
    return large_files(FOLDER / "large", key="uuid", files=LargeLookup.files, rows=LargeLookup.sampled_rows)


def _large() -> tuple[Lake, dict[str, list[Question]]]:
    folder, files = FOLDER / "large", _large_files()
    write_lance(files.plain, folder / "lance", ("BLOOMFILTER", "BTREE"))
    lake = Lake(
        "large", f"{LargeLookup.files} files of 2,000,000 rows and 12 columns", files.plain, files.embedded,
        folder / "lance", WORK / "board" / "large", _rows(files.plain), by_row_group=True,
    )  # fmt: skip
    asked = {case: some[: Board.questions + 1] for case, some in large_questions(files).items()}
    return lake, _with_very_many(asked)


def _wide() -> tuple[Lake, dict[str, list[Question]]]:
    folder = WORK / "board" / "wide"
    rows = wide_files(folder)
    write_lance(folder / "plain", folder / "lance", ("BLOOMFILTER", "BTREE"))
    lake = Lake(
        "wide", f"{Wide.files} files of {Wide.rows_per_file:,} rows and {Wide.columns} columns", folder / "plain",
        folder / "embedded", folder / "lance", folder / "forms", Wide.files * Wide.rows_per_file,
        by_row_group=False,
    )  # fmt: skip
    return lake, _with_very_many(wide_questions(rows, Board.questions + 1))


def _rows(folder: Path) -> int:
    return sum(pq.read_metadata(path).num_rows for path in folder.iterdir())


def _with_very_many(asked: dict[str, list[Question]]) -> dict[str, list[Question]]:
    rng = random.Random(Board.many)
    more = []
    for question in asked[MANY]:
        absent = [str(uuid.UUID(int=rng.getrandbits(128), version=4)) for _ in range(Board.many - Board.there)]
        keys = [*question.keys, *absent]
        rng.shuffle(keys)
        more.append(Question(keys, question.rows, question.homes))
    return {**asked, VERY_MANY: more}


def _methods(lake: Lake) -> list[Method]:
    plain, embedded, work = str(lake.plain), str(lake.embedded), str(lake.work)
    places = f"{plain}#" if lake.by_row_group else plain
    versions = {kind: (lake.work / f"lance-{kind}").read_text() for kind in ("BLOOMFILTER", "BTREE")}
    return [
        Method(OURS, "lakebloom", f"{work}/indexes", lake.name),
        Method(DUCKDB, "duckdb", embedded, reads_all=True),
        Method("DataFusion", "datafusion", plain, "plain", reads_all=True),
        Method("DataFusion, embedded filters", "datafusion", embedded, reads_all=True),
        Method("Polars", "polars", plain, reads_all=True),
        *([Method(TOLD, "", plain, on_parquet=False)] if lake.by_row_group else []),
        *(Method(f"Lance, {kind}", "lance", str(lake.lance), versions[kind]) for kind in ("BLOOMFILTER", "BTREE")),
        Method(CLICKHOUSE, "clickhouse", str(lake.work / "clickhouse"), lake.table),
        Method(LMDB, "lmdb", work, places),
        Method(ROCKSDB, "rocksdb", work, places),
    ]


def _matrix(lake: Lake, contenders: list[Method], costs: dict[str, Cost], loading_s: float) -> Matrix:
    rows = []
    for method in contenders:
        times = [method.typical(case) for case in ALL_CASES]
        cost = costs.get(method.name)
        rows.append(
            (
                method.name,
                *("" if each is None else figure(1e3 * each, "") for each in times),
                f"{1e3 * statistics.median(method.cold):,.0f}" if method.cold else "",
                f"{cost.build_s:,.0f}" if cost is not None and cost.build_s else "",
                "" if cost is None else f"{cost.size_bytes / lake.rows:.1f}",
                NEEDS[method.name],
            )
        )
    loading = (LOADING, *[""] * len(ALL_CASES), f"{1e3 * loading_s:,.0f}", "", "", "")
    return Matrix(lake.title, _HEADINGS, (*rows, loading))


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
