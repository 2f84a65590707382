"""DataFrames of Delta's connector as sources of an index.

Before a query is optimized, Delta has one class for the files of a table. It says which table that is, and whether the
DataFrame is all of it in its newest version. Lists of any other class are part of a table, or of a write.
"""

from __future__ import annotations

from typing import Any

from lakebloom.errors import UnsupportedSourceError
from lakebloom.spark.error_cause import cause
from lakebloom.storage.uri import from_decoded
from lakebloom.tables.file_identity import is_reachable

__all__ = ["connector_uri"]

_WHOLE = "org.apache.spark.sql.delta.files.TahoeLogFileIndex"
_HINT = "index the table itself, without options and conditions: its index serves all versions"


def connector_uri(plan: Any) -> str | None:
    """Return the canonical URI of the Delta table that a plan of the JVM reads; None for any other plan.

    Raises UnsupportedSourceError for part of a table, for another version than the newest, and for a table that Python
    cannot reach.
    """
    location = _location(plan)
    if location is None or str(location.getClass().getName()) != _WHOLE:
        return None
    try:
        travels, is_part = bool(location.isTimeTravelQuery()), not location.partitionFilters().isEmpty()
        uri = from_decoded(str(location.path().toString()))
    except Exception as error:
        raise UnsupportedSourceError(
            "this version of Delta's connector does not say what its table is",
            found=cause(error),
            hint="name the table by its path, or by its name in the session's catalog",
        ) from error
    if travels or is_part:
        found = "the version that was asked for" if travels else "a condition on partitions"
        raise UnsupportedSourceError(
            "an index is over the whole Delta table, in its newest version", found=found, hint=_HINT
        )
    if not is_reachable(uri):
        raise UnsupportedSourceError(
            f"{uri} can only be reached through Spark, and Delta's log is read without it",
            hint="use a local path, s3://, gs://, az:// or abfs://",
        )
    return uri


def _location(plan: Any) -> Any:
    """Return the list of files of a scan of files. Delta's relation is a class without a name below Spark's."""
    if plan.getClass().getSimpleName() != "LogicalRelation":
        return None
    kind = plan.relation().getClass()
    kinds = (kind, kind.getSuperclass())
    if not any(each is not None and each.getSimpleName() == "HadoopFsRelation" for each in kinds):
        return None
    return plan.relation().location()
