"""``make demo``: finds one key in a lake of 400 files, from the estimated cost to the report."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from lakebloom import BloomIndexConfig, Lakebloom, col, errors
from lakebloom.cli.commands.demo_lake import DemoDelta, DemoLake, write_large_file
from lakebloom.cli.progress_bar import bar
from lakebloom.report import gather, render
from lakebloom.spark.quiet_session import demo_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    ResultT = TypeVar("ResultT")

_INDEX, _MEMBERS, _LARGE, _DELTA = "events_by_user", "members", "large_file", "delta_by_user"
_NEW_FILES, _DELTA_FILES = 10, 40
_REPORT = "lakebloom-demo.html"


def main(to: Path | None = None) -> None:
    """Show an index over a lake of many files: price, build, query, lookup, erasure, join, refresh, report.

    The lake is temporary. The report stays, at ``to`` or in the temporary directory.
    """
    console = Console(width=110)
    page = to or Path(tempfile.gettempdir()) / _REPORT
    with tempfile.TemporaryDirectory(prefix="lakebloom-demo-") as home, demo_session() as spark:
        story = _Story(console, spark, Lakebloom(spark, Path(home) / "indexes"), DemoLake(Path(home) / "events"))
        story.tell(page)


@dataclass
class _Story:
    console: Console
    spark: SparkSession
    lake: Lakebloom
    table: DemoLake
    gains: list[tuple[str, float, float, str]] = field(default_factory=list)
    """What was done, seconds before and after, what was skipped."""

    def tell(self, page: Path) -> None:
        started = time.perf_counter()
        self._chapter("a lake of 400 Parquet files with random keys")
        self._say(self.table.write())
        self.spark.read.parquet(str(next(self.table.path.iterdir()))).where("user_id = 'nobody'").collect()
        before = self._query(
            "a key, without an index", self._needle
        )  # after a first query, so that the start of Spark is not measured
        self._chapter("what would an index cost?")
        config = BloomIndexConfig(_INDEX, ["user_id"])
        self._say(self.lake.price_index(str(self.table.path), config))
        self._chapter("build it")
        with bar(self.console, "building") as update:
            self._say(self.lake.create_index(str(self.table.path), config, progress=update))
        self._queries(before)
        self._lookups()
        self._large_file()
        self._delta()
        self._joins()
        self._appended()
        self._finish(page, time.perf_counter() - started)

    def _queries(self, before_s: float) -> None:
        self._chapter("the same query, after enable()")
        self.lake.enable()
        self._needle().count()  # compiles the code of the query
        after_s = self._query("a key, with the index", self._needle)
        self._say(self.lake.last_query())
        self._gained("one key by Spark SQL", before_s, after_s, self._skipped())
        self.console.print()
        self._say(self.lake.explain(self._needle()))

    def _lookups(self) -> None:
        self._chapter("without Spark")
        reader = Lakebloom(location=self.lake.location)
        condition = col("user_id") == self.table.needle
        reader.lookup(_INDEX, col("user_id") == self.table.keys[1])
        rows, elapsed_s = _timed(lambda: reader.lookup(_INDEX, condition))
        self._require_one(rows.num_rows)
        self._say(f"lake.lookup: {rows.to_pylist()[0]} in {1000 * elapsed_s:.1f} ms")
        kept, probed_s = _timed(lambda: reader.candidates(_INDEX, col("user_id").isin(self.table.keys)).num_rows)
        self._say(
            f"{len(self.table.keys):,} keys at once: {kept} files can hold them, found in {1000 * probed_s:.0f} ms"
        )
        self._gained("one key by lookup", self.gains[0][1], elapsed_s, "no Spark job")

    def _large_file(self) -> None:
        self._chapter("a row of a file of real size, without Spark")
        file = write_large_file(self.table.path.parent / _LARGE)
        self._say(file.summary)
        config = BloomIndexConfig(_LARGE, ["user_id"])
        self._say(self.lake.price_index(str(file.path.parent), config))
        self.lake.create_index(str(file.path.parent), config)
        reader = Lakebloom(location=self.lake.location)
        reader.lookup(_LARGE, col("user_id") == "nobody")
        condition = [("user_id", "=", file.needle)]
        expected, before_s = _timed(lambda: pq.read_table(file.path, filters=condition))
        rows, first_s = _timed(lambda: reader.lookup(_LARGE, col("user_id") == file.needle))
        self._require_one(rows.num_rows)
        _, elapsed_s = _timed(lambda: reader.lookup(_LARGE, col("user_id") == file.needle))
        if rows.to_pylist() != expected.to_pylist():
            raise errors.LakebloomError("the demo must find the row that PyArrow finds", found=str(rows.to_pylist()))
        keys = reader.candidates(_LARGE, col("user_id") == file.needle)["row_count"][0].as_py()
        self._say(f"PyArrow reads the file: {1000 * before_s:,.0f} ms")
        self._say(
            f"lake.lookup reads the pages of {keys:,} keys, and then those of one row: {1000 * first_s:.1f} ms; "
            f"again, now that it knows where they are: {1000 * elapsed_s:.1f} ms"
        )
        self._gained("one row of 2,000,000 by lookup", before_s, elapsed_s, "all pages but those of the row")

    def _delta(self) -> None:
        self._chapter("a Delta table: erase one user, and prove it")
        key = self.table.needle
        (path,) = self.lake.erasure_plan(_INDEX, [key]).matches["path"].to_pylist()
        home = next(file for file in self.table.path.iterdir() if path.endswith(file.name))
        others = [file for file in sorted(self.table.path.iterdir()) if file != home]
        table = DemoDelta(self.table.path.parent / _DELTA)
        table.write([home, *others[: _DELTA_FILES - 1]])
        self.lake.create_index(str(table.path), BloomIndexConfig(_DELTA, ["user_id"]))
        plan = self.lake.erasure_plan(_DELTA, [key])
        self._require_one(plan.rows)
        self._say(
            f"lake.erasure_plan: {plan.rows} row in {plan.files} of {_DELTA_FILES} files; {plan.steps[0].statement}"
        )
        table.delete(key, table.path / home.name)
        now, before = (self.lake.lookup(_DELTA, col("user_id") == key, version=at).num_rows for at in (None, 0))
        self._say(f"after the DELETE: {now} rows now, {before} row at version 0, which can still be read")
        check = plan.check()
        self._say(f"plan.check(): erased={check.erased}, {check.versions_holding} version holds the row until VACUUM")

    def _joins(self) -> None:
        self._chapter("joins, before and after")
        events = self.spark.read.parquet(str(self.table.path))
        members = self.table.path.parent / _MEMBERS
        some = self.spark.createDataFrame([(key,) for key in self.table.keys], "user_id string")
        some.write.parquet(str(members))
        self.lake.create_index(str(members), BloomIndexConfig(_MEMBERS, ["user_id"], global_filter=True))
        values = f"('{self.table.needle}', 'asked to be erased'), ('nobody', 'never here')"
        few = self.spark.sql(f"SELECT * FROM VALUES {values} AS t(user_id, why)")
        # The lake is small, so Spark would broadcast a side that it shuffles in a large lake.
        self.spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
        self.spark.conf.set("spark.lakebloom.join.minBytes", "0")
        for title, partner in (
            ("events with members, shuffled", self.spark.read.parquet(str(members))),
            ("events with a list of two users", few),
        ):
            query = lambda partner=partner: events.join(partner, "user_id")  # noqa: E731
            self.lake.disable()
            before_s = self._query(f"{title}, without", query)
            self.lake.enable()
            after_s = self._query(f"{title}, with", query)
            self._say(self.lake.last_query())
            self._gained(title, before_s, after_s, self._skipped())

    def _appended(self) -> None:
        self._chapter("ten more files")
        newest = self.table.append(_NEW_FILES)
        rows = self.lake.lookup(_INDEX, col("user_id") == newest).num_rows
        self._require_one(rows)
        self._say("a key of an unindexed file is found, because unindexed files are always read")
        refreshed, elapsed_s = _timed(lambda: self.lake.refresh_index(_INDEX))
        self._say(f"refresh_index: {refreshed.files} files in {elapsed_s:.2f} s; nothing else was read")
        self._say(self.lake.history(_INDEX))

    def _finish(self, page: Path, elapsed_s: float) -> None:
        self._chapter("what was gained")
        printed = Table(
            "", "without", "with", "times as fast", "skipped", title=f"in {elapsed_s:.0f} s on this machine"
        )
        for what, before_s, after_s, skipped in self.gains:
            printed.add_row(what, _seconds(before_s), _seconds(after_s), f"{before_s / after_s:.0f}", skipped)
        self.console.print(printed)
        record = self.lake.index(_INDEX)
        share = record.size_bytes / record.source_bytes
        self._say(f"for an index of {record.size_bytes / 1e6:.1f} MB, {share:.1%} of the data")
        page.write_text(render(gather(self.lake.catalog, _INDEX, col("user_id") == self.table.needle)))
        self._say(f"report page: {page}")

    def _needle(self) -> DataFrame:
        events = self.spark.read.parquet(str(self.table.path))
        return events.where(f"user_id = '{self.table.needle}'")

    def _query(self, title: str, query: Callable[[], DataFrame]) -> float:
        """Run a query and return how long it took."""
        frame = query()
        rows, elapsed_s = _timed(lambda: len(frame.collect()))
        self._say(f"{title}: {rows:,} row{'s' * (rows != 1)} in {elapsed_s:.2f} s")
        return elapsed_s

    def _skipped(self) -> str:
        last = self.lake.last_query()
        assert last is not None
        if last.joins:
            return f"{last.joins[0].rows_dropped:,} of {last.joins[0].rows:,} rows"
        scan = max(last.scans, key=lambda scan: scan.files or 0)
        return f"{scan.files_skipped or 0:,} of {scan.files or 0:,} files"

    def _gained(self, what: str, before_s: float, after_s: float, skipped: str) -> None:
        self.gains.append((what, before_s, after_s, skipped))

    def _require_one(self, rows: int) -> None:
        if rows != 1:
            raise errors.LakebloomError("the demo must find its key once", found=f"{rows} rows")

    def _chapter(self, title: str) -> None:
        self.console.rule(f"[bold]{title}")

    def _say(self, what: object) -> None:
        self.console.print(str(what), highlight=False)


def _timed(action: Callable[[], ResultT]) -> tuple[ResultT, float]:
    started = time.perf_counter()
    result = action()
    return result, time.perf_counter() - started


def _seconds(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 0.1 else f"{1000 * seconds:.1f} ms"


if __name__ == "__main__":
    main()
