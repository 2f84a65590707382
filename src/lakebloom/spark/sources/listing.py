"""Lists the files of a table: with Python if it can reach them, otherwise with Spark."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from lakebloom.errors import NotFoundError
from lakebloom.spark.error_cause import cause
from lakebloom.storage import from_decoded
from lakebloom.tables.file_identity import TableFile, is_reachable
from lakebloom.tables.formats.recognise import MARKER_DIRECTORIES, METADATA, Owners, folders_above
from lakebloom.tables.listing.glob import escape, expand_braces, fixed_part
from lakebloom.tables.listing.listing import list_files
from lakebloom.tables.listing.membership import Found, members

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

    from lakebloom.index.current_table import CurrentTable
    from lakebloom.tables.formats.partition_list import PartitionList


def reachable(uri: str) -> bool:
    """Return whether Python can read and write this location in any process, without Spark."""
    return is_reachable(uri) and not uri.startswith("memory:")


def list_table(spark: SparkSession, table: CurrentTable, options: Mapping[str, str]) -> list[TableFile]:
    """Return a table's files as they are now, sorted by URI; a missing location has none."""
    if table.snapshot is not None:
        return table.snapshot.files
    partitions = table.partitions
    if partitions is not None:
        if all(map(reachable, partitions.roots)):
            return partitions.list_files(options)
        return sorted(_listed_partitions(spark, partitions))
    files: dict[str, TableFile] = {}
    for location in table.locations:
        try:
            found = list_files([location], options) if reachable(location) else list_with_spark(spark, location)
        except NotFoundError:
            continue
        files.update((file.uri, file) for file in found)
    return sorted(files.values(), key=lambda file: file.uri)


def _listed_partitions(spark: SparkSession, partitions: PartitionList) -> Iterator[TableFile]:
    owners = Owners()
    files: list[TableFile] = []
    for root in partitions.roots:
        with suppress(NotFoundError):
            for below, found in _found_with_spark(spark, escape(root)).items():
                files += partitions.members(below, found)
        _note_markers(spark, root, owners)
    owners.require_plain(files, ())
    yield from files


def list_with_spark(spark: SparkSession, location: str) -> list[TableFile]:
    """List a location with Spark. Raises NotFoundError."""
    owners = Owners()
    files: list[TableFile] = []
    roots: list[str] = []
    for pattern in expand_braces(location):
        for root, found in _found_with_spark(spark, pattern).items():
            files += members(root, found)
            roots.append(root)
        _note_markers(spark, fixed_part(pattern), owners)
    owners.require_plain(files, roots)
    return files


def _found_with_spark(spark: SparkSession, pattern: str) -> dict[str, list[Found]]:
    """Return every directory or file that a pattern without slashes in braces matches, with all files below it.

    The binaryFile source does not read the content for these columns. It finds the files of all subdirectories; a
    table has only some of them.
    """
    from pyspark.errors import AnalysisException
    from pyspark.sql import functions as F  # noqa: N812

    below: dict[str, list[Found]] = {}
    reader = spark.read.format("binaryFile").option("recursiveFileLookup", "true")
    try:
        rows = (
            reader.load(pattern).select("path", "length", F.unix_millis("modificationTime").alias("mtime_ms")).collect()
        )
    except AnalysisException as error:
        raise NotFoundError(f"could not list {pattern}", found=cause(error)) from error
    # A wildcard does not match a slash: a match has as many components as the pattern.
    depth = pattern.count("/") + 1
    for row in rows:
        components = from_decoded(row["path"]).split("/")
        root, relative = "/".join(components[:depth]), "/".join(components[depth:])
        below.setdefault(root, []).append(Found(relative, row["length"], row["mtime_ms"]))
    return below


def _note_markers(spark: SparkSession, root: str, owners: Owners) -> None:
    """Look for markers of table formats above a location, in it, and in its directories."""
    from pyspark.errors import AnalysisException

    # Readers of files do not look into either of these directories.
    names = f"{{{','.join(sorted(MARKER_DIRECTORIES))},{METADATA}}}"
    for folder in (f"{escape(root)}/*", escape(root), *map(escape, folders_above(root))):
        try:
            found = spark.read.format("binaryFile").load(f"{folder}/{names}").select("path").collect()
        except AnalysisException:
            continue  # nothing has such a name
        for row in found:
            owners.note(from_decoded(row["path"]))
