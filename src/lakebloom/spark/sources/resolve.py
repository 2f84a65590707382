"""Resolves a source, which is a DataFrame that reads files, a path, or the name of a table, to a record.

An index describes files. So only a DataFrame that returns its files unchanged can be indexed: with a filter, a renamed
column or a join in between, the index would not describe the files. ``classic.py`` and ``connect.py`` find what a
DataFrame of the two kinds of sessions reads.
"""

from __future__ import annotations

import os
import re
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakebloom.errors import (
    DataFileError,
    InvalidArgumentError,
    LakebloomError,
    NoFilesError,
    NotFoundError,
    UnsupportedSourceError,
)
from lakebloom.index.arguments import kind_of
from lakebloom.index.current_table import delta_record, iceberg_record
from lakebloom.spark.conf import is_case_sensitive
from lakebloom.spark.error_cause import cause
from lakebloom.spark.sources.catalog_tables import quoted
from lakebloom.spark.sources.classic import classic_scan, innermost_plan
from lakebloom.spark.sources.connect import connect_scan
from lakebloom.spark.sources.delta_tables import connector_uri
from lakebloom.spark.sources.file_scan import DEFAULT_FORMAT
from lakebloom.spark.sources.iceberg_tables import connector_record
from lakebloom.spark.sources.listing import reachable
from lakebloom.spark.sources.reader_conf import session_values
from lakebloom.storage.uri import normalise, to_local_path
from lakebloom.store.records import CatalogRecord, SnapshotRecord, TableRecord
from lakebloom.tables.formats.iceberg.named import iceberg_source
from lakebloom.tables.formats.logs import has_delta_log
from lakebloom.tables.formats.recognise import TABLE_FORMATS, owned_by
from lakebloom.tables.listing.glob import escape, fixed_part
from lakebloom.tables.listing.listing import list_files
from lakebloom.tables.reader_settings import recorded, with_options

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import DataFrame, SparkSession

_FILE_CHOOSING_OPTIONS = ("pathGlobFilter", "modifiedBefore", "modifiedAfter", "recursiveFileLookup")
_NOT_THERE = re.compile(r"\[(PATH_NOT_FOUND|TABLE_OR_VIEW_NOT_FOUND)")
_FILES_AS_TABLE = re.compile(r"(?P<format>\w+)\.`(?P<path>(?:[^`]|``)*/(?:[^`]|``)*)`")
_UNKNOWN_FORMAT = re.compile(r"data source:? `?(delta|iceberg|hudi)\b", re.IGNORECASE)
_FILES = "an index is over files: pass their path, or spark.read.parquet(path); write other data to files first"
_EXTENSION = re.compile(r"\.(avro|csv|json|orc|txt|xml)\b", re.IGNORECASE)
_READERS = {"avro": 'format("avro").load', "csv": "csv", "json": "json", "orc": "orc", "txt": "text", "xml": "xml"}
_PARQUET_MAGIC = (b"PAR1", b"PARE")
_FILES_LOOKED_AT = 10
_SESSION_CATALOG = "spark_catalog"
_PATH_OPTIONS = frozenset({"path", "paths"})
_SECRET_OPTION = re.compile(r"^(spark\.hadoop\.)?fs\.|secret|password|passphrase|token|credential|key", re.IGNORECASE)


def is_connect(spark: SparkSession | DataFrame) -> bool:
    """Return whether a session, or the session of a DataFrame, is a Spark Connect session."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def resolve(spark: SparkSession, source: Any, options: Mapping[str, str] | None = None) -> TableRecord:
    """Return the record of a source. ``options`` are those of object stores.

    Raises UnsupportedSourceError, NotFoundError, NoFilesError, DataFileError or InvalidArgumentError.
    """
    delta = _delta_uri(spark, source, options)
    if delta is not None:
        return delta_record(delta, options or {})
    iceberg = iceberg_source(source, options or {}, is_table=lambda name: _is_table(spark, name))
    if iceberg is not None:
        return iceberg_record(iceberg, options or {})
    table: str | None = None
    path: str | None = None
    file_format = DEFAULT_FORMAT
    if isinstance(source, os.PathLike):
        # A path that exists is not a pattern, even with a bracket in its name.
        path = escape(os.fspath(source)) if os.path.exists(source) else os.fspath(source)  # noqa: PTH110
    elif isinstance(source, str) and (quoted := _FILES_AS_TABLE.fullmatch(source)) and not _is_table(spark, source):
        file_format, path = quoted["format"].lower(), quoted["path"].replace("``", "`")
        if file_format in TABLE_FORMATS:
            raise owned_by(TABLE_FORMATS[file_format], path, source)
    elif isinstance(source, str) and (_looks_like_path(source) or not _is_table(spark, source)):
        path = source
    with _translated(path, file_format, options):
        if path is not None:
            if file_format == DEFAULT_FORMAT:
                _require_parquet(path, options)
            frame = spark.read.format(file_format).load(path)
        elif isinstance(source, str):
            frame, table = spark.table(source), source
        elif hasattr(source, "inputFiles") and hasattr(source, "schema"):
            frame = source
        else:
            raise InvalidArgumentError(
                "the source must be a Spark DataFrame, a path or the name of a table",
                found=kind_of(source),
                hint=_FILES,
            )
        _require_same_kind(spark, frame)
        logged = None if is_connect(spark) else _logged_record(spark, innermost_plan(frame), options or {})
        if logged is not None:
            return logged
        # Connect notices only here that there is nothing to read.
        schema_json = frame.schema.json()
        scan = connect_scan(spark, frame) if is_connect(spark) else classic_scan(frame)
    _require_all_files(scan.options)
    _require_no_secrets(scan.options)
    return TableRecord(
        format=scan.format,
        locations=scan.locations,
        options={key: value for key, value in scan.options.items() if key.lower() not in _PATH_OPTIONS},
        name=table or scan.table,
        schema_json=schema_json,
        partition_columns=scan.partition_columns,
        catalog=None if scan.catalog_name is None else CatalogRecord(scan.catalog_name),
        case_sensitive=is_case_sensitive(spark),
        settings=recorded(scan.format, with_options(scan.format, session_values(spark, scan.format), scan.options)),
    )


def _logged_record(spark: SparkSession, plan: Any, options: Mapping[str, str]) -> TableRecord | None:
    """Return the record of a table of Delta's or Iceberg's connector; None for any other plan."""
    delta = connector_uri(plan)
    return connector_record(spark, plan, options) if delta is None else delta_record(delta, options)


def _delta_uri(spark: SparkSession, source: Any, options: Mapping[str, str] | None) -> str | None:
    """Return the URI of a source that is a Delta table: delta.`path`, or a path with a log. None for anything else.

    Raises UnsupportedSourceError for one that Python cannot reach.
    """
    if not isinstance(source, (str, os.PathLike)):
        return None
    text = os.fspath(source)
    quoted = _FILES_AS_TABLE.fullmatch(text)
    is_named = quoted is not None and quoted["format"].lower() == "delta"
    if quoted is not None and is_named:
        text = quoted["path"].replace("``", "`")
    elif quoted is not None or (not isinstance(source, os.PathLike) and _is_name(spark, text)):
        place = None if quoted is not None else _delta_location(spark, text)
        if place is None:
            return None
        text, is_named = place, True
    try:
        uri = normalise(text)
    except InvalidArgumentError:
        return None  # whoever reads it next says what is wrong
    if not reachable(uri):
        if is_named:
            raise UnsupportedSourceError(
                f"{uri} can only be reached through Spark, and Delta's log is read without it",
                hint="use a local path, s3://, gs://, az:// or abfs://",
            )
        return None
    return uri if is_named or has_delta_log(uri, options or {}) else None


def _is_name(spark: SparkSession, text: str) -> bool:
    """Tell a table's name from the path of a Delta table; the session is asked only where it could be both."""
    return "/" not in text and (not os.path.isdir(f"{text}/_delta_log") or _is_table(spark, text))  # noqa: PTH112


def _delta_location(spark: SparkSession, name: str) -> str | None:
    """Return where a table of the catalog is if its provider is Delta; None for any other table, and for no table."""
    try:
        provider, location = _described(spark, name)
    except Exception:
        return None  # no table, or one that whoever reads it next can say more about
    return location if location and str(provider).lower() == "delta" else None


def _described(spark: SparkSession, name: str) -> tuple[str | None, str | None]:
    """Return the provider and the location of a table."""
    if not is_connect(spark):
        session: Any = spark
        state = session._jsparkSession.sessionState()
        if state.catalogManager().currentCatalog().name() != _SESSION_CATALOG:
            return None, None  # the name means a table of another catalog, which has no Delta tables
        named = state.sqlParser().parseTableIdentifier(name)
        # Not through SQL: that looks for the provider, which a session without Delta does not have.
        if not state.catalog().isTempView(named) and state.catalog().tableExists(named):
            table = state.catalog().getTableMetadata(named)
            text = session._jvm.org.apache.spark.sql.catalyst.catalog.CatalogUtils.URIToString
            provider = table.provider()
            return (provider.get() if provider.isDefined() else None), text(table.location())
    rows = spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
    facts = {row["col_name"]: row["data_type"] for row in rows}
    return facts.get("Provider"), facts.get("Location")


def _require_same_kind(spark: SparkSession, frame: Any) -> None:
    """Refuse a DataFrame of Spark Connect in a classic session, and the other way round."""
    if is_connect(spark) != is_connect(frame):
        kinds = ("classic Spark", "Spark Connect")
        raise InvalidArgumentError(
            f"the source belongs to another session: this Lakebloom has one of {kinds[is_connect(spark)]}",
            found=f"a DataFrame of {kinds[is_connect(frame)]}",
            hint="read it with the session that was passed to Lakebloom, or pass its path",
        )


def load(spark: SparkSession, path: str, format: str) -> DataFrame:
    """Return the files at a path, in any format that Spark reads. Raises the errors of ``resolve``."""
    with _translated(path, format):
        return spark.read.format(format).load(path)


def reopened(spark: SparkSession, table: TableRecord) -> DataFrame | str:
    """Return a recorded table as a DataFrame, path or name. Raises the errors of ``resolve``."""
    if table.snapshot is not None:
        return _named_again(table, table.snapshot)
    if table.name is not None:
        return table.name
    with _translated(table.locations[0] if table.locations else None, table.format):
        return spark.read.format(table.format).options(**table.options).load(list(table.locations))


def _named_again(table: TableRecord, known: SnapshotRecord) -> str:
    """Return a table with a log as a source that means the same."""
    if table.catalog is not None:
        return quoted(table.catalog.name)
    if known.catalog is not None:
        return known.catalog
    if known.fixed and known.metadata is not None:
        return known.metadata
    return f"{known.format}.`{fixed_part(table.locations[0]).replace('`', '``')}`"


def _looks_like_path(text: str) -> bool:
    return "/" in text or os.sep in text or any(character in text for character in "*?[{")


def _is_table(spark: SparkSession, name: str) -> bool:
    try:
        return spark.catalog.tableExists(name)
    except Exception:
        # The parser does not accept it as a name, so it is a path.
        return False


def _require_plain(path: str | None, found: str, options: Mapping[str, str] | None) -> None:
    """Raise UnsupportedSourceError for a Delta Lake, Iceberg or Hudi table that Spark cannot read."""
    named = _UNKNOWN_FORMAT.search(found)
    if named is not None:
        raise owned_by(TABLE_FORMATS[named[1].lower()], path or "it", found)
    if path is not None:
        try:
            list_files([path], options)
        except UnsupportedSourceError:
            raise
        except Exception:
            return  # the error of Spark is shown


@contextmanager
def _translated(
    path: str | None, format: str = DEFAULT_FORMAT, options: Mapping[str, str] | None = None
) -> Iterator[None]:
    """Turn Spark's errors about a source that it cannot read into errors of lakebloom."""
    try:
        yield
    except LakebloomError:
        raise
    except Exception as error:
        found = cause(error)
        _require_plain(path, found, options)
        attempt = "cannot read the source" if path is None else f"cannot read {path} as {format}"
        if _NOT_THERE.search(found):
            hint = "check the path; a name without a slash is a table if there is one, otherwise a path"
            raise NotFoundError(attempt, found=found, hint=hint) from error
        hint = _other_format(found)
        if "UNABLE_TO_INFER_SCHEMA" in found:
            raise NoFilesError(attempt, found=found, hint=hint) from error
        raise DataFileError(attempt, found=found, hint=hint) from error


def _other_format(found: str) -> str:
    """Return the hint for files of another format; the message names one of them."""
    named = _EXTENSION.search(found)
    reader = _READERS.get(named[1].lower() if named else "", "orc")
    return f"check the path; pass a DataFrame for another format, such as spark.read.{reader}(path)"


def _require_parquet(path: str, options: Mapping[str, str] | None) -> None:
    """Raise DataFileError for local files of another format: the error of Spark is a page long."""
    try:
        files = [file for file in list_files([path], options) if file.uri.startswith("file:") and file.size_bytes >= 4]
        begins = [_first_bytes(to_local_path(file.uri)) for file in files[:_FILES_LOOKED_AT]]
    except (LakebloomError, OSError):
        return  # the error of Spark is shown
    if begins and not any(each in _PARQUET_MAGIC for each in begins):
        raise DataFileError(
            f"cannot read {path} as parquet",
            found=f"{files[0].uri} does not begin with PAR1, as Parquet files do",
            hint=_other_format(files[0].uri),
        )


def _first_bytes(path: str) -> bytes:
    with Path(path).open("rb") as opened:
        return opened.read(4)


def _require_all_files(options: Mapping[str, str]) -> None:
    given = {key.lower(): value for key, value in options.items()}
    chosen = [key for key in _FILE_CHOOSING_OPTIONS if given.get(key.lower(), "false").lower() != "false"]
    if chosen:
        raise UnsupportedSourceError(
            "an index covers all files that Spark finds at a location, and cannot follow this option",
            found=f"the option {', '.join(chosen)}",
            hint="name the files or a glob as the path instead",
        )


def _require_no_secrets(options: Mapping[str, str]) -> None:
    secrets = sorted(key for key in options if _SECRET_OPTION.search(key))
    if secrets:
        raise UnsupportedSourceError(
            "an index stores the reader's options for later refreshes, and must not store access keys",
            found=f"the option {', '.join(secrets)}",
            hint="set it in Spark's configuration (spark.hadoop.…), and read without the option",
        )
