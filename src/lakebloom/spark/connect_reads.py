"""Spark Connect: explains what a DataFrame reads through indexes, from the plan that the client sends."""

from __future__ import annotations

import time
import weakref
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from lakebloom.errors import LakebloomError, UnsupportedSessionError
from lakebloom.index.query.query_reports import LastQuery, QueryReport, ScanFigures
from lakebloom.spark.data_source.source import LakebloomSource, explain_source, source_reader
from lakebloom.tuning import REMEMBERED_READS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import DataFrame, SparkSession

__all__ = ["ConnectReads", "explain_on_connect", "sources_of"]

_ROWS = "numOutputRows"


def explain_on_connect(spark: SparkSession, frame: DataFrame) -> QueryReport:
    """Explain each scan of lakebloom's data source. Raises UnsupportedSessionError if there is none."""
    sources = list(sources_of(spark, frame))
    if not sources:
        raise UnsupportedSessionError(
            "on Spark Connect, only lake.read and the data source use indexes, and this DataFrame uses neither",
            found="a Spark Connect session",
            hint='read through an index, lake.read("by_user", "user_id = 42"), and explain that; '
            'or ask the index alone: lake.explain("by_user", "user_id = 42")',
        )
    return QueryReport(tuple(explain_source(spark, options) for options in sources))


def sources_of(spark: SparkSession, frame: DataFrame) -> Iterator[Mapping[str, str]]:
    """Yield the options of each scan of lakebloom's data source in a DataFrame's plan."""
    logical: Any = frame._plan
    session: Any = spark
    waiting: list[Any] = [logical.to_proto(session.client)]
    while waiting:
        message = waiting.pop()
        if message.DESCRIPTOR.name == "DataSource" and message.format.lower() == LakebloomSource.name():
            yield {**({"path": message.paths[0]} if message.paths else {}), **message.options}
            continue
        for field, value in reversed(message.ListFields()):
            if field.message_type is not None and not field.message_type.GetOptions().map_entry:
                many = value if isinstance(value, (list, tuple)) or hasattr(value, "extend") else [value]
                waiting.extend(reversed(list(many)))


class _Made(NamedTuple):
    frame: weakref.ref[Any]
    name: str
    version: int
    made_ms: int


class ConnectReads:
    """The DataFrames that ``lake.read`` created in a session, to report what they read.

    Spark Connect reports how many rows a scan returned, but not how many files it opened. The number of files comes
    from the plan, if neither the index nor the table has changed since; otherwise it is unknown.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._made: deque[_Made] = deque(maxlen=REMEMBERED_READS)

    def add(self, frame: DataFrame, index: str, version: int) -> None:
        """Remember a DataFrame as long as it is referenced. ``version`` is that of the index."""
        self._made.append(_Made(weakref.ref(frame), index, version, time.time_ns() // 1_000_000))

    def last(self) -> LastQuery | None:
        """Return the figures of the last DataFrame that ran; None if none has run."""
        for made in reversed(self._made):
            frame = made.frame()
            if frame is not None and frame.executionInfo is not None:
                return LastQuery(f"read of {made.name}", None, (self._figures(made, frame),))
        return None

    def _figures(self, made: _Made, frame: Any) -> ScanFigures:
        rows = _rows_of(frame.executionInfo)
        (options,) = sources_of(self._spark, frame)
        try:
            reader = source_reader(self._spark, options)
            if reader.is_unchanged(made.version, made.made_ms):
                report = reader.report()
                size = report.bytes_kept if report.unit == "file" else None
                return ScanFigures(report.table, report.files_kept, size, rows, report.files, report.files_kept)
        except LakebloomError:
            pass  # the query has run, even if the table or the index cannot be read now
        return ScanFigures(made.name, None, None, rows, None, None)


def _rows_of(info: Any) -> int | None:
    """Return how many rows the scan returned, from the metrics of the plan's nodes."""
    parts = () if info.metrics is None else info.metrics._metrics
    found = [part.metrics for part in parts if part.name.startswith("BatchScan")]
    rows = [metric.value for metrics in found for metric in metrics if metric.name == _ROWS]
    return int(rows[0]) if len(rows) == 1 else None
