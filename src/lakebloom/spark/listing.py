"""The files of a source: listed by Python where it can reach them, otherwise by Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakebloom.errors import NotFoundError
from lakebloom.storage import from_decoded
from lakebloom.tables.files import TableFile
from lakebloom.tables.listing import list_files

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from lakebloom.store.records import SourceRecord

_PYTHON_SCHEMES = ("file:", "s3:", "gs:", "az:", "abfs:")


def reachable(uri: str) -> bool:
    """Tell whether Python can read and write at this location without Spark."""
    return uri.startswith(_PYTHON_SCHEMES)


def list_source(spark: SparkSession, source: SourceRecord, options: Mapping[str, str]) -> list[TableFile]:
    """Return a table's files as they are now, in a fixed order; a location that is gone has none."""
    if all(reachable(location) for location in source.locations):
        try:
            return list_files(source.locations, options)
        except NotFoundError:
            return []
    return list_with_spark(spark, source.locations)


def list_with_spark(spark: SparkSession, locations: tuple[str, ...]) -> list[TableFile]:
    """List through Spark's own file systems. The binaryFile source reads no content for these columns."""
    from pyspark.sql import functions as F  # noqa: N812

    frame = (
        spark.read.format("binaryFile")
        .option("recursiveFileLookup", "true")
        .load(list(locations))
        .select("path", "length", F.unix_millis("modificationTime").alias("mtime_ms"))
    )
    files = {TableFile(from_decoded(row["path"]), row["length"], row["mtime_ms"]) for row in frame.collect()}
    return sorted(files, key=lambda file: file.uri)
