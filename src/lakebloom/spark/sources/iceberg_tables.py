"""Tables of Iceberg's connector: as sources of an index, and as the session's catalogs have them now.

How an index finds a table again depends on who knows its newest version:

    a directory of Hadoop's catalog        the directory: every process finds the newest version there
    a table opened from a metadata file    nobody: it never has a newer version
    any other catalog of the session       that catalog, which is asked through the session each time
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from lakebloom.errors import LakebloomError, NotFoundError, StorageError, UnsupportedSourceError
from lakebloom.index.current_table import iceberg_record, logged_table
from lakebloom.spark.error_cause import cause
from lakebloom.spark.jvm import java_list, new_object
from lakebloom.spark.rule.wire import IcebergSource, parse
from lakebloom.storage.uri import from_decoded
from lakebloom.tables.file_identity import is_reachable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from lakebloom.index.current_table import CurrentTable
    from lakebloom.store.records import TableRecord

__all__ = ["connector_record", "session_table"]

_ATTEMPTS = 5
"""How many versions are tried if files of each are removed while they are read."""
_GONE = re.compile(r"NoSuch(Table|Namespace)Exception")
_HINT = "index the table itself, without options: its index serves all snapshots, branches and tags"


def connector_record(spark: SparkSession, plan: Any, options: Mapping[str, str]) -> TableRecord | None:
    """Return the record of a relation of Iceberg's connector in a plan of the JVM; None for any other plan.

    Raises UnsupportedSourceError for part of a table, for another version than the newest, and for a table that Python
    cannot reach or that nobody can find again.
    """
    found = _described(spark, plan) if plan.getClass().getSimpleName() == "DataSourceV2Relation" else None
    if found is None:
        return None
    # Here and not above: most sources are no Iceberg tables.
    from lakebloom.tables.formats.iceberg.table import Source

    if found.part is not None or found.metadata is None:
        raise UnsupportedSourceError(
            "an index is over the whole Iceberg table, in its newest version", found=found.part, hint=_HINT
        )
    if found.directory is not None:
        return iceberg_record(Source(directory=_reached(found.directory)), options)
    metadata = _reached(found.metadata)
    if found.is_fixed:
        return iceberg_record(Source(metadata=metadata), options)
    if found.name is None:
        raise UnsupportedSourceError(
            "only its catalog knows the newest version of this Iceberg table, and the DataFrame does not name it",
            found=metadata,
            hint="pass spark.table(name) or the name of the table, or name a catalog of pyiceberg",
        )
    # Asked again: the DataFrame, and the connector's cache, may be older than the table.
    return iceberg_record(Source(session=found.name), options, _newest(spark, found.name))


def session_table(spark: SparkSession, table: TableRecord, options: Mapping[str, str]) -> CurrentTable:
    """Return an Iceberg table of the session's catalogs as it is now.

    Raises NotFoundError for a table that the session's catalog does not have, StorageError for a catalog that does not
    answer, and the errors of ``logged_table``.
    """
    assert table.catalog is not None
    told = _newest(spark, table.catalog.name)
    for _ in range(_ATTEMPTS):
        try:
            return logged_table(table, options, told=told)
        except NotFoundError:
            before, told = told, _newest(spark, table.catalog.name)
            if told == before:  # nobody commits anything newer: a file is lost
                raise
    return logged_table(table, options, told=told)


def _described(spark: Any, plan: Any) -> IcebergSource | None:
    try:
        text = _sources(spark).describe(plan)
    except Exception as error:
        raise UnsupportedSourceError(
            "this version of Iceberg's connector does not say where its table is",
            found=cause(error),
            hint="name the table by its path, or by its name in a catalog of pyiceberg",
        ) from error
    return None if text is None else parse(text, IcebergSource)


def _newest(spark: Any, name: tuple[str, ...]) -> str:
    shown = ".".join(name)
    if not hasattr(spark, "_jsparkSession"):
        raise UnsupportedSourceError(
            f"only a classic session can ask its catalog for the Iceberg table {shown}",
            found="a session of Spark Connect",
            hint="use a classic session, or name the table by its path or in a catalog of pyiceberg",
        )
    try:
        return _reached(str(_sources(spark).newest(java_list(spark, name))))
    except LakebloomError:
        raise
    except Exception as error:
        found, hint = cause(error), f"check the table, and that this session has the catalog {name[0]}"
        if _GONE.search(found):
            raise NotFoundError(f"there is no Iceberg table {shown}", found=found, hint=hint) from error
        message = f"the session's catalog did not answer for the Iceberg table {shown}"
        raise StorageError(message, found=found, hint=hint) from error


def _sources(spark: Any) -> Any:
    return new_object(spark, "IcebergSources", spark._jsparkSession)


def _reached(place: str) -> str:
    uri = from_decoded(place)
    if not is_reachable(uri):
        raise UnsupportedSourceError(
            f"{uri} can only be reached through Spark, and Iceberg's metadata is read without it",
            hint="use tables on a local path, s3://, gs://, az:// or abfs://",
        )
    return uri
