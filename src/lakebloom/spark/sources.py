"""What a user calls a source, as a record: a DataFrame that reads files, a path, or the name of a table.

An index binds to files, so only a DataFrame that shows its files as they are can be indexed: a filter, a renamed column
or a join in between would make the index mean something else than the files hold.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakebloom.errors import InvalidArgumentError, NotFoundError, UnsupportedSourceError
from lakebloom.storage import from_encoded, normalise
from lakebloom.store.records import SourceRecord
from lakebloom.tables.glob import escape

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

_TRANSPARENT = frozenset({"SubqueryAlias"})
_FILE_CHOOSING_OPTIONS = frozenset({"pathglobfilter", "modifiedbefore", "modifiedafter"})
_DEFAULT_FORMAT = "parquet"


@dataclass(frozen=True, slots=True)
class _Scan:
    """The scan of files that a DataFrame is."""

    format: str
    locations: tuple[str, ...]
    options: Mapping[str, str]
    table: str | None = None
    partition_columns: tuple[str, ...] | None = None


def is_connect(spark: SparkSession) -> bool:
    """Tell a Spark Connect session from a classic one."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def resolve(spark: SparkSession, source: Any) -> SourceRecord:
    """Return the record of a source. Raises UnsupportedSourceError, NotFoundError or InvalidArgumentError."""
    table: str | None = None
    path: str | None = None
    if isinstance(source, os.PathLike):
        source = os.fspath(source)
    if isinstance(source, str):
        if _looks_like_path(source) or not _is_table(spark, source):
            frame, path = _load(spark, source), source
        else:
            frame, table = spark.table(source), source
    elif hasattr(source, "inputFiles") and hasattr(source, "schema"):
        frame = source
    else:
        raise InvalidArgumentError(
            "a source is a DataFrame, a path or the name of a table", found=type(source).__name__
        )
    scan = _connect_scan(spark, frame) if is_connect(spark) else _classic_scan(frame)
    chosen = {key.lower() for key in scan.options} & _FILE_CHOOSING_OPTIONS
    if chosen:
        raise UnsupportedSourceError(
            "an index covers all files of its locations",
            found=f"the option {', '.join(sorted(chosen))}",
            hint="name the files or a glob as the path instead",
        )
    return SourceRecord(
        format=scan.format,
        # Spark expands a pattern when it reads. The index keeps the pattern: files that match later belong to it.
        locations=scan.locations if path is None else (normalise(path),),
        options={key: value for key, value in scan.options.items() if key.lower() not in ("path", "paths")},
        table=table or scan.table,
        schema_json=frame.schema.json(),
        partition_columns=_partition_columns(frame, scan),
    )


def _looks_like_path(text: str) -> bool:
    return "/" in text or os.sep in text or any(character in text for character in "*?[{")


def _is_table(spark: SparkSession, name: str) -> bool:
    try:
        return spark.catalog.tableExists(name)
    except Exception:
        # Not even a name, says the parser: then it is a path.
        return False


def _load(spark: SparkSession, path: str) -> DataFrame:
    from pyspark.errors import AnalysisException

    try:
        return spark.read.format(_DEFAULT_FORMAT).load(path)
    except AnalysisException as error:
        raise NotFoundError(
            f"cannot read {path} as {_DEFAULT_FORMAT}",
            found=str(error).splitlines()[0],
            hint="check the path; pass a DataFrame for another format, such as spark.read.orc(path)",
        ) from error


def _classic_scan(frame: DataFrame) -> _Scan:
    java_frame: Any = frame._jdf
    plan = java_frame.queryExecution().analyzed()
    table = None
    while plan.getClass().getSimpleName() in _TRANSPARENT:
        plan = plan.child()
    if plan.getClass().getSimpleName() != "LogicalRelation":
        raise _not_files(plan.nodeName())
    relation = plan.relation()
    if relation.getClass().getSimpleName() != "HadoopFsRelation":
        raise _not_files(relation.getClass().getSimpleName())
    if plan.catalogTable().isDefined():
        table = plan.catalogTable().get().identifier().unquotedString()
    options = relation.options()
    entries = options.iterator()
    found = {}
    while entries.hasNext():
        entry = entries.next()
        found[entry._1()] = entry._2()
    roots = relation.location().rootPaths()
    return _Scan(
        format=_short_name(relation.fileFormat()),
        locations=tuple(escape(normalise(roots.apply(i).toString())) for i in range(roots.size())),
        options=found,
        table=table,
        partition_columns=tuple(relation.partitionSchema().fieldNames()),
    )


def _short_name(file_format: Any) -> str:
    return str(file_format.shortName()).lower()


def _not_files(found: str) -> UnsupportedSourceError:
    return UnsupportedSourceError(
        "only a DataFrame that reads files, and nothing else, can be indexed",
        found=f"{found} in its plan",
        hint="index spark.read.parquet(path) or a table itself; queries with filters and joins then use the index",
    )


def _connect_scan(spark: SparkSession, frame: DataFrame) -> _Scan:
    logical: Any = frame._plan
    plan = logical.to_proto(spark.client).root
    while plan.WhichOneof("rel_type") == "subquery_alias":
        plan = plan.subquery_alias.input
    if plan.WhichOneof("rel_type") != "read":
        raise _not_files(plan.WhichOneof("rel_type"))
    if plan.read.WhichOneof("read_type") == "named_table":
        return _described_table(spark, plan.read.named_table.unparsed_identifier)
    source = plan.read.data_source
    locations = tuple(normalise(path) for path in source.paths) or tuple(
        normalise(value) for key, value in source.options.items() if key.lower() == "path"
    )
    if not locations:
        raise _not_files(f"{source.format} without a path")
    return _Scan(source.format.lower() or _DEFAULT_FORMAT, locations, dict(source.options))


def _described_table(spark: SparkSession, name: str) -> _Scan:
    rows = spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
    facts = {row["col_name"].strip().lower(): row["data_type"] for row in rows}
    if "location" not in facts or "provider" not in facts:
        raise _not_files(facts.get("type", "a table without a location"))
    partition_columns: list[str] = []
    names = [row["col_name"] for row in rows]
    if "# Partition Information" in names:
        for row in rows[names.index("# Partition Information") + 2 :]:
            if not row["col_name"].strip():
                break
            partition_columns.append(row["col_name"])
    return _Scan(
        facts["provider"].lower(), (escape(from_encoded(facts["location"])),), {}, name, tuple(partition_columns)
    )


def _partition_columns(frame: DataFrame, scan: _Scan) -> tuple[str, ...]:
    if scan.partition_columns is not None:
        return scan.partition_columns
    names = set(frame.columns)
    files = frame.inputFiles()[:1]
    keys = [part.partition("=")[0] for uri in files for part in uri.split("/")[:-1] if "=" in part]
    return tuple(key for key in keys if key in names)
