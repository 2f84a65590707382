"""The queries that ``explain`` takes: a DataFrame or SQL text. Nothing is run, not even a command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lakebloom.errors import InvalidArgumentError, UnsupportedSessionError
from lakebloom.index.arguments import kind_of
from lakebloom.spark.error_cause import cause
from lakebloom.spark.sources.resolve import is_connect

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from pyspark.sql import SparkSession

__all__ = ["FORMS", "execution_of", "require_query"]

FORMS = (
    'lake.explain(df) or lake.explain("SELECT * FROM events WHERE user_id = 42") for a query; '
    'lake.explain("by_user", "user_id = 42") for a condition on an index'
)


def require_query(spark: SparkSession | None, query: Any, names: Callable[[], Collection[str]]) -> None:
    """Raise a typed error unless the query is a DataFrame or SQL text that this session can explain.

    ``names`` returns the names of the indexes.
    """
    if isinstance(query, str):
        if query in names():
            raise _no_query(query, f'{query} is an index: add a condition, lake.explain({query!r}, "user_id = 42")')
        if spark is None or is_connect(spark):
            raise UnsupportedSessionError(
                "explaining a SQL query needs a classic Spark session",
                found="no session" if spark is None else "a Spark Connect session",
                hint='name an index and a condition, which works everywhere: lake.explain("by_user", "user_id = 42")',
            )
    elif not (hasattr(query, "sparkSession") and hasattr(query, "schema")):
        raise _no_query(kind_of(query), FORMS)
    elif spark is None or is_connect(spark) != is_connect(query):
        kinds = ("classic Spark", "Spark Connect")
        raise InvalidArgumentError(
            "the DataFrame belongs to another session",
            found=f"a DataFrame of {kinds[is_connect(query)]}",
            hint="use Lakebloom(df.sparkSession, location)",
        )


def execution_of(spark: SparkSession, query: Any) -> Any:
    """Return Java's QueryExecution of a DataFrame or of SQL text in a classic session. Raises InvalidArgumentError."""
    if not isinstance(query, str):
        return query._jdf.queryExecution()
    session: Any = spark
    try:
        state = session._jsparkSession.sessionState()
        plan = state.sqlParser().parsePlan(query)
        skip = session._jvm.org.apache.spark.sql.execution.CommandExecutionMode.SKIP()
        execution = state.executePlan(plan, skip)
        execution.assertAnalyzed()
    except Exception as error:
        raise _no_query(cause(error), f"{FORMS}. Files are tables, too: parquet.`/data/events`") from error
    return execution


def _no_query(found: str, hint: str) -> InvalidArgumentError:
    return InvalidArgumentError("explain takes a query, or an index and a condition", found=found, hint=hint)
