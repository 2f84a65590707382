"""Queries of Iceberg tables with and without indexes: Iceberg's connector is the judge, and counts what is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, Row, SparkSession

    from lakebloom import Lakebloom

__all__ = ["Cases", "splits_read"]


class Cases:
    """What a lake and a session found, by the names of the cases."""

    def __init__(self, spark: SparkSession, lake: Lakebloom) -> None:
        self.spark, self.lake = spark, lake
        self.found: dict[str, Any] = {}

    def sql(self, name: str, query: str) -> None:
        """Compare a query in SQL."""
        self.same(name, lambda: self.spark.sql(query))

    def same_or_refused(self, name: str, made: Callable[[], DataFrame]) -> None:
        """Compare a query; one that the connector refuses without lakebloom is refused with it, too."""
        self.lake.disable()
        plain = _answered(made)
        self.lake.enable()
        if isinstance(plain, str):
            assert _answered(made) == plain, name
        else:
            self._compare(name, made, *plain)

    def same(self, name: str, made: Callable[[], DataFrame]) -> None:
        """Compare a query, and note what it read and why not less."""
        self.lake.disable()
        plain = made()
        expected = plain.collect()
        self.lake.enable()
        self._compare(name, made, plain, expected)

    def _compare(self, name: str, made: Callable[[], DataFrame], plain: DataFrame, expected: list[Row]) -> None:
        assert name not in self.found, name
        frame = made()
        rows = sorted(map(str, frame.collect()))
        splits = splits_read(frame)
        last = self.lake.last_query()
        report = self.lake.explain(made())
        self.found[name] = {
            "same": rows == sorted(map(str, expected)),
            "rows": len(rows),
            "splits": splits,
            "splits_without": splits_read(plain),
            "scans": [] if last is None else [[scan.files, scan.files_kept, scan.files_read] for scan in last.scans],
            "explained": [[scan.files, scan.files_skipped] for scan in report.scans],
            "reasons": [[reason.value for reason in scan.reasons] for scan in report.scans],
            "unpruned": [[join.reason.value for join in scan.joins] for scan in report.scans],
            "filters": [[each.side, each.reason.value if each.reason else "filtered"] for each in report.joins],
            "passed": [] if last is None else [[join.rows, join.rows_passed] for join in last.joins],
        }

    def note(self, name: str, **facts: Any) -> None:
        """Note something else."""
        assert name not in self.found, name
        self.found[name] = facts


def _answered(made: Callable[[], DataFrame]) -> tuple[DataFrame, list[Row]] | str:
    """Run a query: return it with its rows, or the first line of what Iceberg's own checks say against it."""
    try:
        frame = made()
        return frame, frame.collect()
    except Py4JJavaError as error:
        (text,) = (line for line in str(error).splitlines() if line.startswith(": "))
        if "org.apache.iceberg.exceptions" not in text:
            raise
        return text


def splits_read(frame: DataFrame) -> int:
    """Return how many splits Iceberg's readers opened for a frame that was collected: its files are small."""
    java: Any = frame
    return sum(_splits(java._jdf.queryExecution().executedPlan()))


def _splits(plan: Any) -> list[int]:
    kind = plan.getClass().getSimpleName()
    if kind == "AdaptiveSparkPlanExec":
        return _splits(plan.executedPlan())
    if kind.endswith("QueryStageExec"):
        return _splits(plan.plan())
    if kind == "ReusedExchangeExec":
        return []
    found = []
    if kind == "BatchScanExec":
        metric = plan.metrics().get("numSplits")
        found.append(int(metric.get().value()) if metric.isDefined() else 0)
    for parts in (plan.children(), plan.subqueries()):
        for number in range(parts.size()):
            found += _splits(parts.apply(number))
    return found
