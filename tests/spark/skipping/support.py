"""Queries asked twice, with indexes and without; and a look at what their scans read."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

from pyspark.sql.functions import lit

from tests.spark.support import rule_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame, SparkSession

    from lakebloom import Lakebloom

Query: TypeAlias = Callable[[], "DataFrame"]
"""Makes a frame anew: one that was planned once stays as it was planned."""

EXACT = 1e-7
"""With the few values of these tests no filter errs at this rate; each test fixes all of them."""


def ask(lake: Lakebloom, query: Query) -> list[str]:
    """Run a query with and without the indexes. Their rows are the same; return the files that the first one read."""
    with skipping(lake):
        frame = query()
        found = rows(frame)
        files = files_read(frame)
    assert found == rows(query())
    return files


def ask_each(lake: Lakebloom, frame: DataFrame, predicates: Iterable[str], *shown: str) -> dict[str, list[str]]:
    """Ask many questions of one table, as ``ask`` does; return the files that each of them reads.

    Without indexes one query answers all: their truths are its columns. Rows are compared by the columns that are
    ``shown``, or else by all of them.
    """
    predicates, columns = list(predicates), shown or ("*",)
    truths = [f"({predicate}) AS asked{number}" for number, predicate in enumerate(predicates)]
    everything = [tuple(row) for row in frame.selectExpr(*columns, *truths).collect()]
    width = -len(truths)
    files = {}
    with skipping(lake):
        for number, predicate in enumerate(predicates):
            query = frame.where(predicate).select(*columns)
            found = sorted(repr(tuple(row)) for row in query.collect())
            assert found == sorted(repr(row[:width]) for row in everything if row[width + number]), predicate
            files[predicate] = files_read(query)
    return files


def each(frame: DataFrame, predicates: Iterable[str]) -> DataFrame:
    """Several questions in one query: the rows of each predicate, with its number. ``ask_each`` is for many."""
    return union_all(
        [frame.where(text).select(lit(number).alias("asked"), "*") for number, text in enumerate(predicates)]
    )


def union_all(frames: list[DataFrame]) -> DataFrame:
    """All frames in one. Spark analyses every union that is made on the way, so they are made in few steps."""
    if len(frames) == 1:
        return frames[0]
    half = len(frames) // 2
    return union_all(frames[:half]).unionAll(union_all(frames[half:]))


@contextmanager
def skipping(*lakes: Lakebloom) -> Iterator[None]:
    """Let queries use the indexes of these lakes, until the end."""
    try:
        for lake in lakes:
            lake.enable()
        yield
    finally:
        for lake in lakes:
            lake.disable()


@contextmanager
def configured(spark: SparkSession, settings: dict[str, str]) -> Iterator[None]:
    """Set some keys of the session, until the end."""
    before = {key: spark.conf.get(key, None) for key in settings}
    try:
        for key, value in settings.items():
            spark.conf.set(key, value)
        yield
    finally:
        for key, old in before.items():
            spark.conf.unset(key)
            if spark.conf.get(key, None) != old and old is not None:
                spark.conf.set(key, old)


def rows(frame: DataFrame) -> list[str]:
    """The rows of a frame in an order of their own. As text NaN equals itself, and the two zeros differ."""
    return sorted(map(repr, frame.collect()))


def files_read(frame: DataFrame) -> list[str]:
    """The names of the files that the scans of a query list, sorted; those that ran have counted as many."""
    names = []
    for scan in scans(frame):
        listed = list(_listed(scan))
        counted = scan.metrics().apply("numFiles").value()
        assert counted in (0, len(listed)), f"{listed} listed, {counted} counted"
        names += listed
    return sorted(names)


def file_counts(frame: DataFrame) -> list[int]:
    """What each scan of a query that ran has counted."""
    return [int(scan.metrics().apply("numFiles").value()) for scan in scans(frame)]


def scans(frame: DataFrame) -> list[Any]:
    """The scans of files in the plan of a frame, those in subqueries, query stages and caches included."""
    jdf: Any = frame._jdf
    return list(_scans(jdf.queryExecution().executedPlan()))


def plan_of(frame: DataFrame) -> str:
    """The plan that ran, as text."""
    jdf: Any = frame._jdf
    return str(jdf.queryExecution().executedPlan().toString())


def trees(lake: Lakebloom, frame: DataFrame) -> list[Any]:
    """What the scans of a query ask, each as a predicate tree; None where there is no condition."""
    jdf: Any = frame._jdf
    described = json.loads(rule_of(lake).rule.describe(jdf.queryExecution().optimizedPlan()))
    return [scan["reading"].get("predicate") for scan in described]


def callbacks(lake: Lakebloom) -> int:
    """How often Java called Python so far."""
    return 0 if lake._skipping is None else rule_of(lake).callback.calls


def size_of(frame: DataFrame) -> int:
    """The size of a query's result, as join planning estimates it."""
    jdf: Any = frame._jdf
    return int(str(jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))


def _scans(plan: Any) -> Iterator[Any]:
    kind = plan.getClass().getSimpleName()
    if kind == "FileSourceScanExec":
        yield plan
    elif kind == "AdaptiveSparkPlanExec":
        yield from _scans(plan.executedPlan())
    elif kind.endswith("QueryStageExec"):
        yield from _scans(plan.plan())
    elif kind == "InMemoryTableScanExec":
        yield from _scans(plan.relation().cachedPlan())
    elif kind == "CommandResultExec":
        yield from _scans(plan.commandPhysicalPlan())
    if kind != "ReusedExchangeExec":
        for below in (plan.children(), plan.subqueries()):
            for i in range(below.size()):
                yield from _scans(below.apply(i))


def _listed(scan: Any) -> Iterator[str]:
    directories = scan.relation().location().listFiles(scan.partitionFilters(), scan.dataFilters())
    for i in range(directories.size()):
        files = directories.apply(i).files()
        for j in range(files.size()):
            yield files.apply(j).getPath().getName()
