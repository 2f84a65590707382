"""A shuffle join of which nine rows in ten have no partner: `make bench-join`.

Plain Spark, Spark's own runtime filter with its thresholds forced down, and lakebloom, which filters the large side by
the global filter of the small one. Rounds alternate and the best of each counts; each result is checked. The data is
written once and kept in .bench/join.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from rich.console import Console

from bench.parameters import WORK, Join
from bench.results import Outcome, Result, main, table
from bench.session import session
from lakebloom import BloomIndexConfig, Lakebloom

FOLDER = WORK / "join"
RUNTIME_NAME = "Spark's runtime filter, forced"
RUNTIME_FILTER = {
    "spark.sql.optimizer.runtime.bloomFilter.enabled": "true",
    "spark.sql.optimizer.runtime.bloomFilter.applicationSideScanSizeThreshold": "0",
    "spark.sql.optimizer.runtime.bloomFilter.creationSideThreshold": "1g",
    "spark.sql.optimizer.runtime.bloomFilter.expectedNumItems": str(Join.keys),
}


@dataclass(slots=True)
class Method:
    """A way to run the join, and what it took."""

    name: str
    settings: dict[str, str]
    enabled: bool = False
    bar: float | None = None
    """How much of this method's time lakebloom may take."""
    times: list[float] = field(default_factory=list)
    shuffled_bytes: int = 0

    @property
    def best(self) -> float:
        return min(self.times)


def tables(spark: SparkSession) -> tuple[DataFrame, DataFrame]:
    if not (FOLDER / "facts/_SUCCESS").exists():
        shutil.rmtree(FOLDER, ignore_errors=True)
        keys = spark.range(0, Join.keys, 1, 8).selectExpr("id * 10 AS k", "id AS name")
        keys.write.parquet(str(FOLDER / "keys"))
        facts = spark.range(0, Join.rows, 1, 16).selectExpr(
            f"pmod(xxhash64(id), {10 * Join.keys}) AS k", "id AS amount"
        )
        facts.write.parquet(str(FOLDER / "facts"))
    return spark.read.parquet(str(FOLDER / "facts")), spark.read.parquet(str(FOLDER / "keys"))


@contextmanager
def configured(spark: SparkSession, settings: dict[str, str]) -> Iterator[None]:
    before = spark.conf.getAll
    for key, value in settings.items():
        spark.conf.set(key, value)
    yield
    for key in settings:
        if key in before:
            spark.conf.set(key, before[key])
        else:
            spark.conf.unset(key)


def run(spark: SparkSession, method: Method, facts: DataFrame, keys: DataFrame) -> tuple[int, int]:
    with configured(spark, method.settings):
        # Spark builds its filter only from a side with a condition that it takes for selective; this one keeps all.
        query = facts.join(keys.where("name >= 0"), "k").selectExpr("count(*) AS rows", "sum(amount + name) AS total")
        started = time.perf_counter()
        found = query.collect()[0]
        method.times.append(time.perf_counter() - started)
        method.shuffled_bytes = shuffled(query._jdf.queryExecution().executedPlan())
        if method.settings and "might_contain" not in query._jdf.queryExecution().optimizedPlan().toString():
            method.name, method.bar = f"{RUNTIME_NAME}: Spark did not inject it", None
        return found.rows, found.total


def shuffled(plan: Any) -> int:
    """Return what the exchanges of a finished plan wrote."""
    name = plan.getClass().getSimpleName()
    if name == "AdaptiveSparkPlanExec":
        return shuffled(plan.executedPlan())
    if name.endswith("QueryStageExec"):
        return shuffled(plan.plan())
    metrics = plan.metrics()
    own = int(metrics.apply("shuffleBytesWritten").value()) if metrics.contains("shuffleBytesWritten") else 0
    children = plan.children()
    return own + sum(shuffled(children.apply(i)) for i in range(children.size()))


def search(console: Console) -> Outcome:
    """Measure everything."""
    spark = session(
        "join",
        "6g",
        spark_sql_shuffle_partitions="4",
        spark_sql_autoBroadcastJoinThreshold="-1",
        spark_lakebloom_join_minBytes="0",
    )
    facts, keys = tables(spark)
    shutil.rmtree(FOLDER / "indexes", ignore_errors=True)
    lake = Lakebloom(spark, FOLDER / "indexes")
    lake.create_index(FOLDER / "keys", BloomIndexConfig("keys", ["k"], global_filter=True))
    others = [
        Method("Spark's defaults", {}, bar=Join.plain_bar),
        Method(RUNTIME_NAME, RUNTIME_FILTER, bar=Join.runtime_bar),
    ]
    ours = Method("lakebloom", {}, enabled=True)
    expected = None
    for _ in range(Join.rounds):
        for method in (*others, ours):
            if method.enabled:
                lake.enable()
            found = run(spark, method, facts, keys)
            lake.disable()
            expected = expected or found
            assert found == expected, (method.name, found, expected)
            console.print(f"[dim]{method.name}: {method.times[-1]:.2f} s[/]")
    spark.stop()
    print_times(console, [*others, ours])
    return Outcome(
        [Result("join, 9 rows in 10 without partner", ours.best, "s", m.name, m.best, m.bar) for m in others]
    )


def print_times(console: Console, methods: list[Method]) -> None:
    printed = table(f"{Join.rows:,} rows, {Join.keys:,} keys", ["method"], ["best s", "worst s", "MB shuffled"])
    for method in methods:
        shuffled_mb = f"{method.shuffled_bytes / 1e6:.0f}"
        printed.add_row(method.name, f"{method.best:.2f}", f"{max(method.times):.2f}", shuffled_mb)
    console.print(printed)


if __name__ == "__main__":
    main("a join of which most rows have no partner", search)
