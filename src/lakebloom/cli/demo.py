"""``make demo``: lakebloom on your screen, over a lake that it makes for the purpose."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console

from lakebloom import BloomIndexConfig, Lakebloom, col, errors
from lakebloom.cli.bars import bar
from lakebloom.cli.demo_filter import show_filter
from lakebloom.cli.demo_keys import uuids
from lakebloom.spark.session import demo_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FILES = 400
_ROWS = 5_000
_INDEX = "events_by_user"


def main() -> None:
    """Show a filter, an index over a lake of many files (build, ask, append, refresh), and queries that skip files."""
    console = Console(width=110)
    show_filter(console)
    with tempfile.TemporaryDirectory(prefix="lakebloom-demo-") as home:
        console.rule("[bold]an index over a lake")
        table = Path(home) / "events"
        needle = _make_lake(console, table)
        with demo_session() as spark:
            lake = Lakebloom(spark, Path(home) / "indexes")
            _show_index(console, lake, table, needle)
            _show_skipping(console, spark, lake, table, needle)
            _show_joins(console, spark, lake, table, needle)


def _make_lake(console: Console, table: Path) -> str:
    """Write the files and return one of their keys."""
    table.mkdir()
    rng = np.random.default_rng(4)
    started = time.perf_counter()
    for number in range(_FILES):
        keys = _write_file(table / f"part-{number:05d}.parquet", rng)
        if number == _FILES // 3:
            needle: str = keys[_ROWS // 2].as_py()
    size = sum(path.stat().st_size for path in table.iterdir())
    elapsed_s = time.perf_counter() - started
    console.print(f"{_FILES} Parquet files, {_FILES * _ROWS:,} rows, {size / 1e6:.0f} MB, made in {elapsed_s:.1f} s")
    return needle


def _write_file(path: Path, rng: np.random.Generator) -> pa.Array:
    keys = uuids(rng, _ROWS)
    columns = {"user_id": keys, "event": rng.integers(0, 50, _ROWS), "amount": rng.random(_ROWS)}
    pq.write_table(pa.table(columns), path, compression="zstd", use_dictionary=["event"])
    return keys


def _show_index(console: Console, lake: Lakebloom, table: Path, needle: str) -> None:
    with bar(console, "building") as update:
        report = lake.create_index(str(table), BloomIndexConfig(_INDEX, ["user_id"]), progress=update)
    console.print(str(report), highlight=False)
    _ask(console, lake, needle)

    console.rule("[bold]ten more files")
    rng = np.random.default_rng(5)
    for number in range(10):
        newest = _write_file(table / f"part-{_FILES + number:05d}.parquet", rng)[0].as_py()
    rows = lake.lookup(_INDEX, col("user_id") == newest).num_rows
    console.print(f"a key of a file that the index does not know yet: {rows} row, because unknown files are read")
    refreshed = lake.refresh_index(_INDEX)
    console.print(f"refreshed: {refreshed.files} files in {sum(refreshed.seconds.values()):.2f} s")
    _ask(console, lake, newest)
    console.print(str(lake.optimize_index(_INDEX)), highlight=False)
    console.rule("[bold]records")
    console.print(str(lake.index(_INDEX)), highlight=False)
    console.print(str(lake.history(_INDEX)), highlight=False)


def _show_skipping(console: Console, spark: SparkSession, lake: Lakebloom, table: Path, needle: str) -> None:
    console.rule("[bold]the same query, before and after enable()")
    events = spark.read.parquet(str(table))
    events.where("user_id = 'nobody'").count()  # Spark's first query pays for much else
    before_s = _timed_query(console, events, needle)
    lake.enable()
    events.where("user_id = 'nobody'").count()
    after_s = _timed_query(console, events, needle)
    console.print(str(lake.last_query()), highlight=False)
    console.print(f"{before_s / after_s:.1f} times as fast", highlight=False)
    console.print(str(lake.explain(events.where(f"user_id = '{needle}'"))), highlight=False)
    console.print()
    console.print(str(lake.explain(events.where(f"user_id <> '{needle}'"))), highlight=False)
    lake.disable()


def _show_joins(console: Console, spark: SparkSession, lake: Lakebloom, table: Path, needle: str) -> None:
    console.rule("[bold]joins, before and after enable()")
    events = spark.read.parquet(str(table))
    known = events.where("event < 5").select("user_id").distinct().limit(20_000)
    known.write.parquet(str(table.parent / "members"))
    lake.create_index(str(table.parent / "members"), BloomIndexConfig("members", ["user_id"], global_filter=True))
    members = spark.read.parquet(str(table.parent / "members"))
    few = spark.sql(f"SELECT * FROM VALUES ('{needle}', 'asked to be erased'), ('nobody', '') AS t(user_id, why)")
    partners = {"2,050,000 events with 20,000 members, shuffled": members, "events with a list of two users": few}
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    spark.conf.set("spark.lakebloom.join.minBytes", "0")
    for title, partner in partners.items():
        console.print(f"[bold]{title}")
        lake.disable()
        before_s = _timed_join(console, "before", events.join(partner, "user_id"))
        lake.enable()
        after_s = _timed_join(console, "after", events.join(partner, "user_id"))
        console.print(str(lake.last_query()), highlight=False)
        console.print(f"{before_s / after_s:.1f} times as fast", highlight=False)
    lake.disable()


def _timed_join(console: Console, when: str, query: DataFrame) -> float:
    started = time.perf_counter()
    rows = query.count()
    elapsed_s = time.perf_counter() - started
    console.print(f"{when}: {rows:,} rows in {elapsed_s:.2f} s", highlight=False)
    return elapsed_s


def _timed_query(console: Console, events: DataFrame, needle: str) -> float:
    query = f"user_id = '{needle}'"
    started = time.perf_counter()
    rows = len(events.where(query).collect())
    elapsed_s = time.perf_counter() - started
    console.print(f"WHERE {query}: {rows} row in {elapsed_s:.2f} s", highlight=False)
    return elapsed_s


def _ask(console: Console, lake: Lakebloom, key: str) -> None:
    predicate = col("user_id") == key
    lake.candidates(_INDEX, predicate)
    started = time.perf_counter()
    candidates = lake.candidates(_INDEX, predicate)
    asked_s = time.perf_counter() - started
    started = time.perf_counter()
    rows = lake.lookup(_INDEX, predicate)
    looked_up_s = time.perf_counter() - started
    units = lake.index(_INDEX).units
    console.print(
        f"user_id = {key}: {candidates.num_rows} of {units} files can match ({asked_s * 1e3:.1f} ms), "
        f"{rows.num_rows} row found ({looked_up_s * 1e3:.1f} ms)"
    )
    if rows.num_rows != 1:
        raise errors.LakebloomError("the demo must find its key once", found=f"{rows.num_rows} rows")


if __name__ == "__main__":
    main()
