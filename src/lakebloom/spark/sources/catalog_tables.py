"""Tables of Spark's catalog as they are now: their locations and partitions.

The catalog owns the list: a directory that it does not list is no partition, and a listed partition may be anywhere. In
a classic session one call to the JVM returns the list. Spark Connect has only SQL, a statement for each partition;
if there are more than a few, a job reads the partitions from the files instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from lakebloom.errors import NotFoundError, UnsupportedSourceError
from lakebloom.index.current_table import CurrentTable, logged_table
from lakebloom.spark.error_cause import cause
from lakebloom.spark.jvm import new_object
from lakebloom.spark.rule.wire import CatalogTable, parse
from lakebloom.spark.sources.iceberg_tables import session_table
from lakebloom.spark.versions import metadata_column
from lakebloom.storage import from_decoded, from_encoded
from lakebloom.tables.formats.partition_list import PartitionList
from lakebloom.tables.listing.glob import escape
from lakebloom.tables.listing.partitions import unescape_name
from lakebloom.tables.schema import TableSchema
from lakebloom.tuning import FEW_PARTITIONS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import Row, SparkSession

    from lakebloom.index.snapshot import Snapshot
    from lakebloom.store.records import TableRecord

__all__ = ["CatalogTables", "quoted"]

_NULL = "__HIVE_DEFAULT_PARTITION__"


class CatalogTables:
    """Reads the catalog of one session, and keeps each result as long as it does not change."""

    def __init__(self, spark: SparkSession, options: Mapping[str, str]) -> None:
        """``options`` are those of the object stores of tables with a log."""
        self._spark: Any = spark
        self._options = options
        self._java: Any = None
        self._known: dict[tuple[str, ...], tuple[str, CatalogTable]] = {}
        self._tables: dict[tuple[str, ...], tuple[CatalogTable, CurrentTable]] = {}

    def of_snapshot(self, snapshot: Snapshot) -> CurrentTable:
        """Return the table of an index as it is now."""
        return self.current(snapshot.commit.table)

    def current(self, table: TableRecord) -> CurrentTable:
        """Return a table as it is now; a path does not change.

        Raises NotFoundError for a table that the session's catalog does not have, and UnsupportedSourceError for a
        table that can no longer be indexed.
        """
        if table.is_of_session:
            return session_table(self._spark, table, self._options)
        if table.snapshot is not None:
            return logged_table(table, self._options)
        if table.catalog is None:
            return CurrentTable(table)
        name = table.catalog.name
        described = self._described(name)
        kept = self._tables.get(name)
        if kept is None or kept[0] is not described or kept[1].record.with_partitions(None) != _now(table, described):
            self._tables[name] = kept = described, _table(table, described)
        return kept[1]

    def _described(self, name: tuple[str, ...]) -> CatalogTable:
        known = self._known.get(name)
        try:
            if hasattr(self._spark, "_jsparkSession"):
                if self._java is None:
                    self._java = new_object(self._spark, "CatalogTables", self._spark._jsparkSession)
                text = self._java.describe(*name, None if known is None else known[0])
                if text is None and known is not None:
                    return known[1]
                fingerprint, _, json = text.partition("\n")
                found = fingerprint, parse(json, CatalogTable)
            else:
                found = "", _described_by_sql(self._spark, name)
        except Exception as error:
            raise NotFoundError(
                f"the session's catalog cannot describe the table {quoted(name)}",
                found=cause(error),
                hint="use a session that knows the table; Lakebloom(location=...) uses what the last refresh found",
            ) from error
        if known is not None and known[1] == found[1]:
            found = found[0], known[1]
        self._known[name] = found
        return found[1]


def quoted(name: Sequence[str]) -> str:
    """Return a quoted name for SQL."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in name)


def _now(table: TableRecord, described: CatalogTable) -> TableRecord:
    """Return the record of a table as the catalog describes it, without its partitions."""
    return msgspec.structs.replace(
        table.with_partitions(None),
        locations=(escape(from_decoded(described.location)),),
        schema_json=table.schema_json if _same_fields(table, described) else described.schema,
        partition_columns=described.columns or table.partition_columns,
    )


def _table(record: TableRecord, described: CatalogTable) -> CurrentTable:
    name = quoted(record.catalog.name) if record.catalog is not None else ""
    if described.provider.lower() not in (record.format, "hive"):
        raise UnsupportedSourceError(
            f"the table {name} is now a different table",
            found=f"format {described.provider} instead of {record.format}",
            hint="delete the index, and create it for the new table",
        )
    partitions = None
    if described.partitions is not None:
        found = [(from_decoded(location or ""), values) for location, *values in described.partitions]
        partitions = PartitionList.of(name, from_decoded(described.location), found)
    return CurrentTable(_now(record, described), partitions)


def _same_fields(table: TableRecord, described: CatalogTable) -> bool:
    """Return whether a table has the recorded columns. Nullability is ignored: Spark writes it in several ways."""
    return table.schema.field_types == TableSchema.parse(described.schema).field_types


def _described_by_sql(spark: SparkSession, name: tuple[str, ...]) -> CatalogTable:
    facts = _facts(spark, f"DESCRIBE TABLE EXTENDED {quoted(name)}")
    frame = spark.table(quoted(name))
    columns: tuple[str, ...] = ()
    partitions = None
    if facts.get("partition provider", "").lower() == "catalog":
        shown = [row[0] for row in spark.sql(f"SHOW PARTITIONS {quoted(name)}").collect()]
        first = _spec(shown[0]) if shown else {}
        columns = tuple(first)
        if len(shown) <= FEW_PARTITIONS:
            partitions = [_partition(spark, name, _spec(text)) for text in shown]
        else:
            partitions = list(_partitions_of_files(spark, name, columns))
    return CatalogTable(facts["location"], facts["provider"], frame.schema.json(), columns, partitions)


def _facts(spark: SparkSession, statement: str) -> dict[str, str]:
    rows: list[Row] = spark.sql(statement).collect()
    found: dict[str, str] = {}
    inside = False
    for row in rows:
        inside = inside or row["col_name"].startswith("# Detailed ")
        if inside:
            found.setdefault(row["col_name"].strip().lower(), row["data_type"])
    return found


def _spec(shown: str) -> dict[str, str]:
    """Return the values of a partition as SHOW PARTITIONS prints it: ``a=1/b=x%2Fy``."""
    parts = (part.partition("=") for part in shown.split("/"))
    return {unescape_name(column): unescape_name(value) for column, _, value in parts}


def _partition(spark: SparkSession, name: tuple[str, ...], spec: dict[str, str]) -> tuple[str | None, ...]:
    values = ", ".join(f"{quoted([column])} = {_literal(value)}" for column, value in spec.items())
    facts = _facts(spark, f"DESCRIBE TABLE EXTENDED {quoted(name)} PARTITION ({values})")
    return facts["location"], *spec.values()


def _literal(value: str) -> str:
    if value == _NULL:
        return "NULL"
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _partitions_of_files(
    spark: SparkSession, name: tuple[str, ...], columns: tuple[str, ...]
) -> Iterator[tuple[str | None, ...]]:
    """Yield the partitions that have rows, from their files. Reads the footer of every file, but no column."""
    from pyspark.sql import functions as F  # noqa: N812

    frame = spark.table(quoted(name))
    path = metadata_column(frame).getField("file_path")
    directory = F.regexp_replace(path, "/[^/]*$", "").alias("directory")
    values = [F.col(quoted([column])).cast("string").alias(f"v{i}") for i, column in enumerate(columns)]
    for row in frame.select(directory, *values).distinct().collect():
        yield from_encoded(row[0]), *row[1:]
