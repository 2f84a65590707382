"""Finds what a DataFrame of a Spark Connect session reads, from the client's plan and the catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lakebloom.errors import UnsupportedSourceError
from lakebloom.spark.sources.file_scan import DEFAULT_FORMAT, FileScan, located, not_files
from lakebloom.storage import from_decoded, from_encoded, normalise
from lakebloom.tables.formats.recognise import TABLE_FORMATS, owned_by
from lakebloom.tables.listing.glob import compile_component, escape, expand_braces
from lakebloom.tables.listing.partitions import unescape_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

# The client cannot see whether a table is all files in a directory. For these formats it is.
_FILE_FORMATS = frozenset({"parquet", "orc", "csv", "json", "text", "avro", "xml"})


def connect_scan(spark: SparkSession, frame: DataFrame) -> FileScan:
    """Return the scan of a DataFrame that only reads files. Raises UnsupportedSourceError for any other."""
    logical: Any = frame._plan
    plan = logical.to_proto(spark.client).root
    while plan.WhichOneof("rel_type") == "subquery_alias":
        plan = plan.subquery_alias.input
    if plan.WhichOneof("rel_type") != "read" or plan.read.is_streaming:
        raise not_files(plan.WhichOneof("rel_type"))
    if plan.read.WhichOneof("read_type") == "named_table":
        return _table_scan(spark, plan.read.named_table.unparsed_identifier)
    source = plan.read.data_source
    options = dict(source.options)
    paths = list(source.paths) or [value for key, value in options.items() if key.lower() == "path"]
    file_format = _require_files(source.format.lower() or DEFAULT_FORMAT)
    if not paths:
        raise not_files(f"{file_format} without a path")
    found = [from_encoded(uri) for uri in frame.inputFiles()[:1]]
    locations = tuple(located(path, found[0] if found else None) for path in paths)
    base = next((normalise(value) for key, value in options.items() if key.lower() == "basepath"), None)
    directories = [] if not found else _directories_below(found[0], locations if base is None else [escape(base)])
    return FileScan(file_format, locations, options, _partition_columns(frame.columns, directories))


def _require_files(file_format: str) -> str:
    if file_format in _FILE_FORMATS:
        return file_format
    if file_format in TABLE_FORMATS:
        raise owned_by(TABLE_FORMATS[file_format], "this source", f"format {file_format}")
    raise UnsupportedSourceError(
        f"Spark Connect does not show which files a {file_format} source reads",
        found=f"format {file_format}",
        hint=f"use one of {', '.join(sorted(_FILE_FORMATS))}, or a classic session",
    )


def _table_scan(spark: SparkSession, name: str) -> FileScan:
    rows = [
        (row["col_name"].strip(), row["data_type"]) for row in spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
    ]
    names = [column for column, _ in rows]
    details = names.index("# Detailed Table Information") if "# Detailed Table Information" in names else len(names)
    facts = {column.lower(): value for column, value in rows[details:]}
    if "location" not in facts or "provider" not in facts:
        raise not_files(facts.get("type", "a view"))
    partition_columns: list[str] = []
    if "# Partition Information" in names:
        # The line after the title is the header of a table, which ends at the next title or an empty line.
        for column in names[names.index("# Partition Information") + 2 :]:
            if not column or column.startswith("# "):
                break
            partition_columns.append(column)
    parts = (facts["database"], facts["table"]) if "database" in facts else None
    location = escape(from_decoded(facts["location"]))
    return FileScan(_require_files(facts["provider"].lower()), (location,), {}, tuple(partition_columns), name, parts)


def _partition_columns(columns: Sequence[str], directories: Sequence[str]) -> tuple[str, ...]:
    """Return the partition columns, from the names of directories."""
    any_case = {column.lower(): column for column in columns}
    keys = (unescape_name(name.partition("=")[0]).lower() for name in directories if "=" in name)
    return tuple(any_case[key] for key in keys if key in any_case)


def _directories_below(uri: str, patterns: Sequence[str]) -> list[str]:
    """Return the names of the directories between a source's location and one of its files."""
    parts = uri.split("/")
    for simple in (simple for pattern in patterns for simple in expand_braces(pattern)):
        components = simple.split("/")
        if len(components) < len(parts) and all(
            compile_component(component).fullmatch(part) for component, part in zip(components, parts, strict=False)
        ):
            return parts[len(components) : -1]
    return []
