"""What tests need that not every Spark has. `docs/COMPATIBILITY.md` shows what was skipped for which reason."""

from __future__ import annotations

import importlib.util
import inspect
import re
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest
from pyspark.sql import DataFrame, types

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyspark.sql import SparkSession

    from lakebloom import Lakebloom

HAS_COLLATIONS = "collation" in inspect.signature(types.StringType.__init__).parameters
HAS_VARIANT = hasattr(types, "VariantType")
HAS_TUPLES = HAS_VARIANT
"""Before Spark 4.0 structs are compared by = only if their fields have the same names."""
HAS_ARROW_INPUT = hasattr(DataFrame, "toArrow")
"""`createDataFrame` of an Arrow table came with `toArrow`."""
HAS_RECURSION = tuple(map(int, pyspark.__version__.split(".")[:2])) >= (4, 1)
"""Spark 4.0 parses WITH RECURSIVE and then fails."""
HAS_DATA_SOURCE = importlib.util.find_spec("pyspark.sql.datasource") is not None

needs_collations = pytest.mark.skipif(not HAS_COLLATIONS, reason="needs collations (Spark 4.0)")
needs_variant = pytest.mark.skipif(not HAS_VARIANT, reason="needs VARIANT (Spark 4.0)")
needs_tuples = pytest.mark.skipif(not HAS_TUPLES, reason="needs structs whose fields have other names (Spark 4.0)")
needs_chosen_sizes = pytest.mark.skipif(not HAS_VARIANT, reason="needs Parquet filters of chosen sizes (Spark 4.0)")
needs_recursion = pytest.mark.skipif(not HAS_RECURSION, reason="needs recursive queries (Spark 4.1)")
needs_data_source = pytest.mark.skipif(not HAS_DATA_SOURCE, reason="needs data sources in Python (Spark 4.0)")
needs_connect = pytest.mark.skipif(not HAS_DATA_SOURCE, reason="needs Spark Connect of Spark 4.0")
needs_widening = pytest.mark.skipif(not HAS_VARIANT, reason="needs a reader that widens types (Spark 4.0)")


def readers(lake: Lakebloom) -> list[Callable[..., DataFrame]]:
    """Return `lake.read` where there are data sources, for tests of other things that also look at it."""
    return [lake.read] if HAS_DATA_SOURCE else []


def marked(conditions: Iterable[str]) -> list[Any]:
    """Return conditions in SQL as parameters of a test, marked by what they need."""
    return [pytest.param(text, marks=marks_of(text)) for text in conditions]


def marks_of(sql: str) -> Any:
    """Return the marks of a condition or query in SQL: what it needs."""
    if _has_tuples(sql):
        return needs_tuples
    return needs_recursion if "RECURSIVE" in sql else ()


def possible(conditions: Iterable[str]) -> list[str]:
    """Return the conditions in SQL that this Spark understands."""
    return [
        text
        for text in conditions
        if (HAS_TUPLES or not _has_tuples(text)) and (HAS_COLLATIONS or "COLLATE" not in text)
    ]


def _has_tuples(sql: str) -> bool:
    return re.search(r"\((k|i), \w+\) = \(", sql) is not None


def to_arrow(frame: DataFrame) -> pa.Table:
    """Return a frame's rows. `toArrow` came with Spark 4.0."""
    anything: Any = frame
    if hasattr(frame, "toArrow"):
        found: pa.Table = anything.toArrow()
        return found
    return pa.Table.from_batches(anything._collect_as_arrow())


def from_arrow(spark: SparkSession, table: pa.Table, directory: Any) -> DataFrame:
    """Return a table's rows as a frame; before Spark 4.0 through a file, which keeps all types."""
    anything: Any = spark
    if HAS_ARROW_INPUT:
        frame: DataFrame = anything.createDataFrame(table)
        return frame
    pq.write_table(table, f"{directory}/from_arrow.parquet")
    return spark.read.parquet(f"{directory}/from_arrow.parquet")
