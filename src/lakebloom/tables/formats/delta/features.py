"""What a reader of a Delta table must know, and which tables are refused because lakebloom does not.

A table names the features that change what its files mean. One that is unknown here could mean anything, so the table
is refused, with the name. Tables whose catalog takes part in commits are refused too: their newest commits may not be
in the log yet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakebloom.errors import UnsupportedSourceError
from lakebloom.tables.column_mapping import ColumnMapping

if TYPE_CHECKING:
    from lakebloom.tables.formats.delta.actions import Metadata, Protocol

__all__ = ["mapping_of", "require_readable"]

_FEATURES_VERSION = 3
_KNOWN = frozenset(
    {
        "columnMapping",
        "deletionVectors",
        "timestampNtz",
        "typeWidening",
        "typeWidening-preview",
        "v2Checkpoint",
        "vacuumProtocolCheck",
        # Only columns of these types cannot be read, and they say so themselves.
        "variantType",
        "variantType-preview",
    }
)
_CATALOG_FEATURES = frozenset({"catalogManaged", "catalogOwned", "catalogOwned-preview"})
_COORDINATOR = "delta.coordinatedCommits.commitCoordinator-preview"
_MAPPING = "delta.columnMapping.mode"
_HINT = "query the table with Delta, or write the rows to a directory of plain files"


def require_readable(table_uri: str, protocol: Protocol, metadata: Metadata) -> None:
    """Raise UnsupportedSourceError for a table that must not be read without knowing more."""
    features = set(protocol.reader_features or ())
    coordinator = metadata.configuration.get(_COORDINATOR)
    if features & _CATALOG_FEATURES or coordinator:
        reason = "its catalog takes part in commits, which may not be in the log yet"
        raise _refused(table_uri, reason, ", ".join(sorted(features & _CATALOG_FEATURES)) or _COORDINATOR)
    unknown = sorted(features - _KNOWN)
    if unknown:
        raise _refused(table_uri, "it uses features that lakebloom does not know", ", ".join(unknown))
    if not 1 <= protocol.min_reader_version <= _FEATURES_VERSION:
        found = f"minReaderVersion {protocol.min_reader_version}"
        raise _refused(table_uri, "it needs a later version of the protocol", found)
    if protocol.min_reader_version == _FEATURES_VERSION and protocol.reader_features is None:
        raise _refused(table_uri, "it does not say which features it uses", "no readerFeatures")
    if metadata.format.provider != "parquet":
        raise _refused(table_uri, "only Parquet files are read", f"files of {metadata.format.provider}")
    mapping_of(table_uri, metadata)


def mapping_of(table_uri: str, metadata: Metadata) -> ColumnMapping:
    """Return how the table's files call its columns."""
    mode = metadata.configuration.get(_MAPPING) or "none"
    try:
        return ColumnMapping(mode)
    except ValueError:
        raise _refused(table_uri, "its way to map columns is unknown", f"{_MAPPING} {mode}") from None


def _refused(table_uri: str, reason: str, found: str) -> UnsupportedSourceError:
    return UnsupportedSourceError(f"the Delta table {table_uri} cannot be read: {reason}", found=found, hint=_HINT)
