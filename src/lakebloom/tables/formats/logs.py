"""The logs of tables that have one. Each is kept, so that a newer version costs only what is new."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from lakebloom.storage.uri import split
from lakebloom.tables.formats.recognise import MARKER_FILES, METADATA
from lakebloom.tuning import KEPT_LOGS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakebloom.tables.formats.delta.log import DeltaLog
    from lakebloom.tables.formats.iceberg.table import IcebergTable, Source

__all__ = ["delta_log", "has_delta_log", "has_iceberg_metadata", "iceberg_table"]

_MARKER = "_delta_log"


def delta_log(table_uri: str, options: Mapping[str, str]) -> DeltaLog:
    """Return the log of the Delta table at a canonical URI."""
    given = {} if table_uri.startswith("file:") else options
    return _delta_log(table_uri, tuple(sorted(given.items())))


@lru_cache(maxsize=KEPT_LOGS)
def _delta_log(table_uri: str, options: tuple[tuple[str, str], ...]) -> DeltaLog:
    from lakebloom.tables.formats.delta.log import DeltaLog

    return DeltaLog(table_uri, dict(options))


def iceberg_table(source: Source, options: Mapping[str, str]) -> IcebergTable:
    """Return an Iceberg table."""
    return _iceberg_table(source, tuple(sorted(options.items())))


@lru_cache(maxsize=KEPT_LOGS)
def _iceberg_table(source: Source, options: tuple[tuple[str, str], ...]) -> IcebergTable:
    from lakebloom.tables.formats.iceberg.table import IcebergTable

    return IcebergTable(source, dict(options))


def has_delta_log(table_uri: str, options: Mapping[str, str]) -> bool:
    """Tell whether there is a Delta table at a canonical URI, and not below or above it."""
    if table_uri.startswith("file:"):
        import os

        return os.path.isdir(f"{split(table_uri)[2]}/{_MARKER}")  # noqa: PTH112
    return _has_objects(f"{table_uri}/{_MARKER}", ("",), options)


def has_iceberg_metadata(table_uri: str, options: Mapping[str, str]) -> bool:
    """Tell whether there is an Iceberg table at a canonical URI, and not below or above it."""
    if table_uri.startswith("file:"):
        import os

        try:
            names = os.listdir(f"{split(table_uri)[2]}/{METADATA}")  # noqa: PTH208
        except OSError:
            return False
        return any(name.endswith(MARKER_FILES) for name in names)
    return _has_objects(f"{table_uri}/{METADATA}", MARKER_FILES, options)


def _has_objects(folder: str, endings: tuple[str, ...], options: Mapping[str, str]) -> bool:
    # Here and not above: local tables work without loading obstore.
    from lakebloom.tables.listing.objects import first_below

    return bool(first_below([folder], options, lambda uri: uri.endswith(endings)))
