"""Who searches: Spark alone, Spark with Parquet's filters, and both with lakebloom. What was found is checked."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from bench.needle.source import Haystack
from bench.parameters import Needle
from lakebloom import BloomIndexConfig, Lakebloom

PLAIN, EMBEDDED, OURS, BOTH = "Spark", "Spark, embedded filters", "lakebloom", "lakebloom, embedded filters"


@dataclass(frozen=True, slots=True)
class Question:
    """Keys to look for, and the rows that must come back."""

    name: str
    keys: list[str]
    rows: list[tuple[str, int]]


@dataclass(slots=True)
class Method:
    """A way to search one table. Files are listed before, indexes are built before."""

    name: str
    frame: DataFrame
    lake: Lakebloom | None
    files: int
    rows_per_file: int
    times: dict[str, list[float]] = field(default_factory=dict)
    decoded: dict[str, int] = field(default_factory=dict)
    """How many files the last search decoded."""

    def best(self, question: str) -> float:
        return min(self.times[question])

    def search(self, question: Question) -> float:
        """Search once. Raises where the rows are not the right ones."""
        if self.lake is not None:
            self.lake.enable()
        key = F.col("uuid")
        condition = key == question.keys[0] if len(question.keys) == 1 else key.isin(question.keys)
        started = time.perf_counter()
        query = self.frame.where(condition)
        found = query.collect()
        elapsed = time.perf_counter() - started
        if self.lake is not None:
            self.lake.disable()
        assert sorted((row.uuid, row.amount) for row in found) == sorted(question.rows), f"{self.name}: wrong rows"
        # A row group that a filter drops puts out no rows: what is left is what Spark really decoded.
        decoded = _scan(query).metrics().apply("numOutputRows").value() // self.rows_per_file
        if self.name == PLAIN:
            assert decoded == self.files, "something skips files"
        elif len(question.keys) == 1:
            assert decoded <= 1 + Needle.most_wasted * self.files, f"{self.name}: {decoded} files decoded for one key"
        self.decoded[question.name] = decoded
        return elapsed


def _scan(query: DataFrame) -> Any:
    plan: Any = query._jdf.queryExecution().executedPlan()
    leaf = plan.collectLeaves().head()
    return leaf.executedPlan().collectLeaves().head() if leaf.nodeName() == "AdaptiveSparkPlan" else leaf


def methods(spark: SparkSession, lake: Lakebloom, table: Haystack) -> list[Method]:
    """Return all methods for a table; builds the two indexes."""
    frames = {copy: spark.read.parquet(copy) for copy in (table.plain, table.embedded)}
    for copy, name in ((table.plain, "plain"), (table.embedded, "embedded")):
        lake.create_index(copy, BloomIndexConfig(f"{name}_{table.files}", ["uuid"]))
    return [
        Method(PLAIN, frames[table.plain], None, table.files, table.rows_per_file),
        Method(EMBEDDED, frames[table.embedded], None, table.files, table.rows_per_file),
        Method(OURS, frames[table.plain], lake, table.files, table.rows_per_file),
        Method(BOTH, frames[table.embedded], lake, table.files, table.rows_per_file),
    ]
