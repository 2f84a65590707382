"""Delta tables beside plain files and deltalake's own scan, Spark on Iceberg, erasure: `make bench-tables`.

Each answer is compared before any time is. Methods answer the same questions in turn, each question has a key that was
not asked before, and the median counts; all data is in the page cache. Data and indexes are kept in .bench/tables.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable, QueryBuilder, write_deltalake
from rich.console import Console

from bench.parameters import Tables
from bench.results import Outcome, Result, main
from bench.tables.iceberg import spark_on_iceberg
from bench.tables.source import INDEXES, BothTables, absent_keys, both_tables
from lakebloom import Lakebloom, col


def run(console: Console) -> Outcome:
    """Measure everything."""
    searched, erased = both_tables()
    lake = Lakebloom(location=INDEXES)
    results = [*_lookups(lake, searched), _many_keys(lake, searched)]
    console.print("[dim]lookups are measured[/]")
    results += spark_on_iceberg()
    return Outcome([*results, *_erasures(lake, erased)])


def _timed(call: Callable[[], Any]) -> tuple[float, Any]:
    started = time.perf_counter()
    found = call()
    return time.perf_counter() - started, found


def _lookups(lake: Lakebloom, table: BothTables) -> list[Result]:
    """Compare lookups in the Delta table with those in the directory, and with a scan by deltalake."""
    scan = _Scan(table.delta)
    present = table.keys(Tables.questions + 1, Tables.seed)
    absent = absent_keys(len(present))
    results = []
    for case, keys in (("present key", present), ("absent key", absent)):
        times: dict[str, list[float]] = {"delta": [], "plain": [], "scan": []}
        for number, key in enumerate(keys):
            asked = [table.delta_index, table.plain_index]
            rows = []
            for index in asked if number % 2 else reversed(asked):
                elapsed, found = _timed(lambda index=index, key=key: lake.lookup(index, col("user") == key))
                times["delta" if index == table.delta_index else "plain"].append(elapsed)
                rows.append(found.to_pylist())
            if number <= Tables.slow_questions:
                elapsed, found = _timed(lambda key=key: scan.rows(key))
                times["scan"].append(elapsed)
                rows.append(found)
            assert all(each == rows[0] for each in rows), (case, key, rows)
            assert len(rows[0]) == (case == "present key")
        ours, plain, theirs = (1e3 * statistics.median(each[1:]) for each in times.values())
        name = f"{table.files:,} files, {case}"
        results.append(Result(name, ours, "ms", "the plain directory", plain, Tables.plain_bar))
        results.append(Result(name, ours, "ms", "deltalake's scan", theirs, Tables.scan_bar, "at least"))
    return results


class _Scan:
    """deltalake's own engine on the Delta table."""

    def __init__(self, place: str) -> None:
        self._table = DeltaTable(place)

    def rows(self, key: str) -> list[dict[str, Any]]:
        found = self._ask(f"SELECT * FROM t WHERE user = '{key}'")
        return found.to_pylist()

    def count(self, keys: str) -> int:
        """Count the rows of the keys in another Delta table: a long list in SQL takes many times longer."""
        found = QueryBuilder().register("t", self._table).register("k", DeltaTable(keys))
        query = "SELECT count(*) AS n FROM t JOIN k ON t.user = k.key"
        return int(pa.table(found.execute(query).read_all())["n"][0].as_py())

    def _ask(self, query: str) -> pa.Table:
        return pa.table(QueryBuilder().register("t", self._table).execute(query).read_all())


def _many_keys(lake: Lakebloom, table: BothTables) -> Result:
    """Find the files for many keys: from the index, and by a scan that counts their rows."""
    keys = table.keys(Tables.many, Tables.seed + 1)
    holding = {f"{table.delta}/{number:05}.parquet" for number in range(table.files)}
    condition = col("user").isin(keys)
    times = []
    for _ in range(4):
        elapsed, found = _timed(lambda: lake.candidates(table.delta_index, condition))
        times.append(elapsed)
        assert set(found["path"].to_pylist()) == holding  # ten keys a file: each holds one
    listed = f"{INDEXES}-keys"
    write_deltalake(listed, pa.table({"key": keys}), mode="overwrite")
    scan_s, count = _timed(lambda: _Scan(table.delta).count(listed))
    assert count == len(keys)
    name = f"{table.files:,} files, the files for {len(keys):,} keys"
    ours = 1e3 * statistics.median(times[1:])
    return Result(name, ours, "ms", "deltalake's scan", 1e3 * scan_s, Tables.many_bar, "at least")


def _erasures(lake: Lakebloom, table: BothTables) -> list[Result]:
    """Plan erasures; the time of reading the key column of the files that hold keys is not counted against the bar."""
    results = []
    for count, bar_s in Tables.erased_keys.items():
        keys = table.keys(count, Tables.seed + 2)
        elapsed, plan = _timed(lambda keys=keys: lake.erasure_plan(table.delta_index, keys))
        assert (plan.rows, plan.keys_found) == (count, count)
        reading, _ = _timed(lambda plan=plan, keys=keys: _read(plan, keys))
        name = f"{table.files:,} files, plan to erase {count:,} keys, without reading {plan.files:,} files"
        results.append(Result(name, max(0.0, elapsed - reading), "s", bar=bar_s))
        results.append(Result(f"{table.files:,} files, plan to erase {count:,} keys, in all", elapsed, "s"))
        checked, check = _timed(plan.check)
        assert check.rows == count
        results.append(Result(f"{table.files:,} files, check of {count:,} keys, every file read", checked, "s"))
    keys = absent_keys(Tables.very_many_keys)
    elapsed, plan = _timed(lambda: lake.erasure_plan(table.delta_index, keys))
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
