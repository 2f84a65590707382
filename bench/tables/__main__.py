"""Delta and Iceberg tables beside plain files and other libraries' scans, and erasure: `make bench-tables`.

Each answer is compared before any time is. Methods answer the same questions in turn, each question has a key that was
not asked before, and the median counts; all data is in the page cache. Data and indexes are kept in .bench/tables.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from rich.console import Console

from bench.lookup.race import to_page_cache
from bench.parameters import Tables
from bench.results import Outcome, Result, main
from bench.session import session
from bench.tables.iceberg import spark_on_iceberg
from bench.tables.refresh import LOGS, refreshed
from bench.tables.scans import DeltalakeScan, PyicebergScan, TableScan
from bench.tables.source import ERASED, INDEXES, SEARCHED, Form, SameRows, absent_keys, is_ready, make, newest_metadata
from lakebloom import Lakebloom, col

FORMS: tuple[Form, ...] = ("plain", "delta", "iceberg")
TITLES: dict[Form, str] = {"delta": "Delta", "iceberg": "Iceberg"}


def run(console: Console) -> Outcome:
    """Measure everything."""
    _make_all()
    refreshes = []  # before anything else: a process that refreshes has loaded no other library, and no keys
    for title, log_of in LOGS.items():
        refreshes += refreshed(title, log_of)
        console.print(f"[dim]{title}: refreshes are measured[/]")
    to_page_cache(INDEXES, *(SEARCHED.place(form) for form in FORMS))
    lake = Lakebloom(location=INDEXES)
    scans: dict[Form, TableScan] = {
        "delta": DeltalakeScan(SEARCHED.place("delta")),
        "iceberg": PyicebergScan(newest_metadata(SEARCHED.place("iceberg"))),
    }
    results = []
    for form, scan in scans.items():
        results += [*_lookups(lake, SEARCHED, form, scan), _many_keys(lake, SEARCHED, form, scan)]
        console.print(f"[dim]{TITLES[form]}: lookups are measured[/]")
    results += [*refreshes, *spark_on_iceberg()]
    return Outcome([*results, *_erasures(lake, ERASED)])


def _make_all() -> None:
    wanted: list[tuple[SameRows, Form]] = [
        (SEARCHED, "plain"),
        (SEARCHED, "delta"),
        (SEARCHED, "iceberg"),
        (ERASED, "delta"),
    ]
    missing = [each for each in wanted if not is_ready(*each)]
    if missing:
        spark = session("tables")
        for table, form in missing:
            make(Lakebloom(spark, INDEXES), table, form)
        spark.stop()


def _timed(call: Callable[[], Any]) -> tuple[float, Any]:
    started = time.perf_counter()
    found = call()
    return time.perf_counter() - started, found


def _lookups(lake: Lakebloom, table: SameRows, form: Form, scan: TableScan) -> list[Result]:
    """Compare lookups in a table of some format with those in the directory, and with another library's scan."""
    seed = Tables.seed + sum(form.encode())
    present = table.keys(Tables.questions + 1, seed)
    absent = absent_keys(len(present))
    results = []
    for case, keys in (("present key", present), ("absent key", absent)):
        times: dict[str, list[float]] = {form: [], "plain": [], "scan": []}
        for number, key in enumerate(keys):
            asked: list[Form] = [form, "plain"]
            rows = []
            for each in asked if number % 2 else reversed(asked):
                elapsed, found = _timed(lambda each=each, key=key: lake.lookup(table.index(each), col("user") == key))
                times[each].append(elapsed)
                rows.append(found.to_pylist())
            if number <= Tables.slow_questions:
                elapsed, found = _timed(lambda key=key: scan.rows(key))
                times["scan"].append(elapsed)
                rows.append(found)
            assert all(each == rows[0] for each in rows), (case, key, rows)
            assert len(rows[0]) == (case == "present key")
        ours, plain, theirs = (1e3 * statistics.median(each[1:]) for each in times.values())
        name = f"{TITLES[form]}, {table.files:,} files, {case}"
        results.append(Result(name, ours, "ms", "the plain directory", plain, Tables.plain_bar))
        results.append(Result(name, ours, "ms", scan.name, theirs, Tables.scan_bar, "at least"))
    return results


def _many_keys(lake: Lakebloom, table: SameRows, form: Form, scan: TableScan) -> Result:
    """Find the files for many keys: from the index, and by a scan that counts their rows."""
    keys = table.keys(Tables.many, Tables.seed + 1)
    condition = col("user").isin(keys)
    times = []
    for _ in range(Tables.many_rounds):  # the first ones load numba: see Lookup.very_many_rounds
        elapsed, found = _timed(lambda: lake.candidates(table.index(form), condition))
        times.append(elapsed)
        assert {Path(path).name for path in found["path"].to_pylist()} == set(table.names)  # each holds ten keys
    some = keys[: scan.longest]
    scan_s, count = _timed(scan.counting(some))
    assert count == len(some)
    peer = scan.name if len(some) == len(keys) else f"{scan.name} for {len(some):,} of them"
    name = f"{TITLES[form]}, {table.files:,} files, the files for {len(keys):,} keys"
    ours = 1e3 * statistics.median(times[1:])
    return Result(name, ours, "ms", peer, 1e3 * scan_s, Tables.many_bar, "at least")


def _erasures(lake: Lakebloom, table: SameRows) -> list[Result]:
    """Plan erasures; the time of reading the key column of the files that hold keys is not counted against the bar."""
    results = []
    index = table.index("delta")
    for count, bar_s in Tables.erased_keys.items():
        keys = table.keys(count, Tables.seed + 2)
        elapsed, plan = _timed(lambda keys=keys: lake.erasure_plan(index, keys))
        assert (plan.rows, plan.keys_found) == (count, count)
        reading, _ = _timed(lambda plan=plan, keys=keys: _read(plan, keys))
        name = f"{table.files:,} files, plan to erase {count:,} keys, without reading {plan.files:,} files"
        results.append(Result(name, max(0.0, elapsed - reading), "s", bar=bar_s))
        results.append(Result(f"{table.files:,} files, plan to erase {count:,} keys, in all", elapsed, "s"))
        checked, check = _timed(plan.check)
        assert check.rows == count
        results.append(Result(f"{table.files:,} files, check of {count:,} keys, every file read", checked, "s"))
    keys = absent_keys(Tables.very_many_keys)
    elapsed, plan = _timed(lambda: lake.erasure_plan(index, keys))
    assert plan.rows == 0
    results.append(Result(f"{table.files:,} files, plan to erase {len(keys):,} keys", elapsed, "s"))
    return results


def _read(plan: Any, keys: list[str]) -> int:
    """Read the key column of the files that hold keys, and find these, as anyone would who knows the files."""
    wanted = pa.array(keys)
    return sum(
        pc.sum(pc.is_in(pq.read_table(file.path, columns=["user"])["user"], value_set=wanted)).as_py()
        for file in plan.held_by
    )


if __name__ == "__main__":
    main("Delta and Iceberg tables, and erasure", run)
