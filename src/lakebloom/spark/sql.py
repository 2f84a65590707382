"""Runs statements about indexes. Each returns a DataFrame, as in Spark."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from lakebloom.errors import IndexFormatError, IndexNotFoundError
from lakebloom.spark.statements import CreateIndex, DropIndex, OneIndex, ShowIndexes, parse_statement
from lakebloom.spark.table_functions import HISTORY_COLUMNS, INDEX_COLUMNS, history_row, index_row

if TYPE_CHECKING:
    import datetime
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from lakebloom.display.tables import Printable
    from lakebloom.index.config import BloomIndexConfig
    from lakebloom.index.reports import IndexRecord, VersionRecord

__all__ = ["run"]

_FIELDS = "field string, value string"


class Indexes(Protocol):
    """What a statement needs of ``Lakebloom``."""

    def create_index(self, source: Any, config: BloomIndexConfig, *, replace: bool) -> Printable: ...
    def refresh_index(self, name: str, mode: Any, *, allow_shrink: bool) -> Printable: ...
    def optimize_index(self, name: str) -> Printable: ...
    def verify_index(self, name: str) -> Printable: ...
    def repair_index(self, name: str) -> Printable: ...
    def restore_index(self, name: str) -> Printable: ...
    def vacuum_index(self, name: str, retention: datetime.timedelta | None) -> Printable: ...
    def delete_index(self, name: str) -> Printable: ...
    def index(self, name: str) -> IndexRecord: ...
    def indexes(self) -> Sequence[IndexRecord]: ...
    def history(self, name: str) -> Sequence[VersionRecord]: ...


def run(spark: SparkSession, lake: Indexes, text: str) -> DataFrame:
    """Run a statement and return its result. Spark runs statements that are not about indexes."""
    statement = parse_statement(text)
    if statement is None:
        return spark.sql(text)
    if isinstance(statement, ShowIndexes):
        return spark.createDataFrame([index_row(record) for record in lake.indexes()], INDEX_COLUMNS)
    if isinstance(statement, CreateIndex):
        return _fields(spark, _created(lake, statement))
    if isinstance(statement, DropIndex):
        return _fields(spark, _dropped(lake, statement))
    if statement.verb == "HISTORY":
        return spark.createDataFrame([history_row(record) for record in lake.history(statement.name)], HISTORY_COLUMNS)
    return _fields(spark, _VERBS[statement.verb](lake, statement))


_VERBS: dict[str, Callable[[Indexes, OneIndex], Printable]] = {
    "REFRESH": lambda lake, statement: lake.refresh_index(
        statement.name, statement.mode, allow_shrink=statement.allow_shrink
    ),
    "OPTIMIZE": lambda lake, statement: lake.optimize_index(statement.name),
    "VERIFY": lambda lake, statement: lake.verify_index(statement.name),
    "REPAIR": lambda lake, statement: lake.repair_index(statement.name),
    "RESTORE": lambda lake, statement: lake.restore_index(statement.name),
    "VACUUM": lambda lake, statement: lake.vacuum_index(statement.name, statement.retention),
    "DESCRIBE": lambda lake, statement: lake.index(statement.name),
}


def _created(lake: Indexes, statement: CreateIndex) -> Printable:
    if statement.if_not_exists:
        with suppress(IndexNotFoundError, IndexFormatError):  # before the table is resolved: it may be gone
            found = lake.index(statement.config.name)
            if found.state == "active":  # creating over a deleted index raises an error with a hint
                return found
    return lake.create_index(statement.table, statement.config, replace=statement.or_replace)


def _dropped(lake: Indexes, statement: DropIndex) -> Printable | None:
    try:
        return lake.delete_index(statement.name)
    except IndexNotFoundError:
        if not statement.if_exists:
            raise
        return None


def _fields(spark: SparkSession, record: Printable | None) -> DataFrame:
    """Return a record with one row for each field, as Spark describes a table."""
    return spark.createDataFrame([] if record is None else record.shown(), _FIELDS)
