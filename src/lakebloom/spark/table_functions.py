"""Python table functions about indexes, for SQL on classic sessions and on Connect. They read only the index.

    SELECT * FROM lakebloom_indexes()
    SELECT * FROM lakebloom_history('events_by_user')
    SELECT path FROM lakebloom_candidates('events_by_user', 'user_id', '42')

They run in Spark's Python workers, which must reach the location of the indexes and have lakebloom installed.
"""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

from lakebloom.errors import UnsupportedSessionError
from lakebloom.predicate.python_literals import literal
from lakebloom.predicate.sql.values import Written, typed
from lakebloom.predicate.tree import Equals, IsNull
from lakebloom.spark.sources.listing import reachable
from lakebloom.tables.columns import parse_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

    from lakebloom.index.reports import IndexRecord, VersionRecord
    from lakebloom.predicate.tree import Predicate
    from lakebloom.tables.schema import TableSchema

__all__ = ["HISTORY_COLUMNS", "INDEX_COLUMNS", "equal_to", "history_row", "index_row", "register"]

INDEX_COLUMNS = (
    "name string, state string, version bigint, columns array<string>, granularity string, fpp double, "
    "global_filter boolean, source string, format string, files bigint, units bigint, rows bigint, segments bigint, "
    "size_bytes bigint, source_bytes bigint, changed timestamp"
)
HISTORY_COLUMNS = (
    "version bigint, changed timestamp, operation string, state string, segments bigint, units bigint, "
    "summary map<string, double>"
)
_CANDIDATES = "path string, row_start bigint, row_count bigint, row_groups array<int>"


def register(spark: SparkSession, location: str, options: Mapping[str, str]) -> list[str]:
    """Register the functions with a session and return their names.

    Raises UnsupportedSessionError for a location that only the driver can reach.
    """
    from pyspark.sql.functions import udtf

    if not reachable(location):
        raise UnsupportedSessionError(
            "table functions need a location that Spark's Python workers can reach",
            found=f"a location that only Spark reaches: {location}",
            hint="keep the indexes on a shared disk or in an object store, or ask through Lakebloom",
        )
    handlers = _handlers(location, dict(options))
    for name, (handler, columns) in handlers.items():
        function: Any = udtf(handler, returnType=columns, useArrow=False)
        spark.udtf.register(name, function)
    return list(handlers)


def _handlers(location: str, options: dict[str, str]) -> dict[str, tuple[type, str]]:
    """Return the classes that Spark sends to its workers. They carry the location, and import everything there."""

    class Indexes:
        def eval(self) -> Iterator[tuple[Any, ...]]:
            from lakebloom.index.catalog import Catalog
            from lakebloom.index.reports import records_of

            for record in records_of(Catalog(location, options)):
                yield index_row(record)

    class History:
        def eval(self, index: str) -> Iterator[tuple[Any, ...]]:
            from lakebloom.index.catalog import Catalog
            from lakebloom.index.reports import history_of

            for record in history_of(Catalog(location, options).index(index).log):
                yield history_row(record)

    class Candidates:
        def eval(self, index: str, column: str, value: Any) -> Iterator[tuple[Any, ...]]:
            from lakebloom.index.catalog import Catalog
            from lakebloom.index.query.reader import Reader

            stored = Catalog(location, options).index(index)
            predicate = equal_to(stored.log.newest().table.schema, column, value)
            for row in Reader(stored).candidates(predicate).to_pylist():
                yield row["path"], row["row_start"], row["row_count"], row["row_groups"]

    return {
        "lakebloom_indexes": (Indexes, INDEX_COLUMNS),
        "lakebloom_history": (History, HISTORY_COLUMNS),
        "lakebloom_candidates": (Candidates, _CANDIDATES),
    }


def index_row(record: IndexRecord) -> tuple[Any, ...]:
    """Return an index as a row of INDEX_COLUMNS."""
    return (
        record.name,
        record.state,
        record.version,
        list(record.columns),
        str(record.granularity),
        float(record.fpp),
        record.global_filter,
        record.source,
        record.format,
        record.files,
        record.units,
        record.rows,
        record.segments,
        record.size_bytes,
        record.source_bytes,
        _moment(record.timestamp_ms),
    )


def history_row(record: VersionRecord) -> tuple[Any, ...]:
    """Return a version as a row of HISTORY_COLUMNS."""
    summary = {key: float(value) for key, value in record.summary.items()}
    moment = _moment(record.timestamp_ms)
    return record.version, moment, record.operation, record.state, record.segments, record.units, summary


def equal_to(schema: TableSchema, column: str, value: Any) -> Predicate:
    """Return ``column = value``; the text is converted to the column's type, and NULL finds NULLs.

    Raises ColumnNotFoundError, InvalidArgumentError or ValueConversionError.

    >>> from lakebloom.tables.schema import TableSchema
    >>> schema = TableSchema.parse('{"type":"struct","fields":[{"name":"user_id","type":"long"}]}')
    >>> equal_to(schema, "USER_ID", "42")
    Equals(column=('user_id',), value=Literal(type='bigint', value=42))
    """
    path, kind = schema.column(parse_name(column))
    if value is None:
        return IsNull(path)
    return Equals(path, typed(Written(value, quoted=True), kind) if isinstance(value, str) else literal(value))


def _moment(timestamp_ms: int) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(timestamp_ms / 1000, datetime.timezone.utc)
