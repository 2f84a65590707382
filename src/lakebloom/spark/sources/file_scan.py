"""A scan of files. Only a DataFrame that is nothing else can be indexed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakebloom.errors import UnsupportedSourceError
from lakebloom.storage import from_decoded, normalise
from lakebloom.storage.uri import split

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_FORMAT = "parquet"


@dataclass(frozen=True, slots=True)
class FileScan:
    """Which files are read, and how. Locations are glob patterns; plain paths are escaped."""

    format: str
    locations: tuple[str, ...]
    options: Mapping[str, str]
    partition_columns: tuple[str, ...]
    table: str | None = None
    catalog_name: tuple[str, ...] | None = None
    """The database and the name of a catalog's table."""


def not_files(found: str) -> UnsupportedSourceError:
    """Return the error for a DataFrame that is not just a scan of files."""
    return UnsupportedSourceError(
        "only a DataFrame that reads files, and nothing else, can be indexed",
        found=f"{found} in its plan",
        hint="index spark.read.parquet(path) or a table itself; queries with filters and joins then use the index",
    )


def located(path: str, found_uri: str | None) -> str:
    """Return the canonical form of a user's path, on the file system where Spark found the file ``found_uri``.

    A path without a scheme is local in Python, but in Spark it is on the default file system, which may be HDFS.
    """
    if path.startswith("/") and found_uri is not None:
        scheme, authority, _ = split(found_uri)
        if scheme != "file":
            return from_decoded(f"{scheme}://{authority}{path}")
    return normalise(path)
