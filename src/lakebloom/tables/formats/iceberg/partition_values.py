"""Values of partitions: from what a manifest holds to the JSON form of the specification, and to constants of files.

The value of an identity partition is that of the column in all rows of the file, which may not have the column at all:
a table that was migrated from Hive keeps such files.
"""

from __future__ import annotations

import datetime
import uuid
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakebloom.tables.formats.iceberg.manifests import ListedFile
    from lakebloom.tables.formats.iceberg.metadata import PartitionSpec

__all__ = ["constants_of", "identity_sources", "value_to_json"]

_IDENTITY = "identity"
_FIRST_FIELD_ID = 1000
_EPOCH = datetime.datetime(1970, 1, 1)


def value_to_json(kind: str, value: Any) -> str | None:
    """Return a value of a manifest as JSON. ``kind`` is the type that the manifest gives it.

    >>> value_to_json("date", 19782), value_to_json("timestamptz", 1), value_to_json("int", None)
    ('"2024-02-29"', '"1970-01-01T00:00:00.000001+00:00"', None)
    """
    if value is None:
        return None
    return msgspec.json.encode(_plain(kind, value)).decode()


def _plain(kind: str, value: Any) -> Any:
    if isinstance(value, bytes):
        return str(uuid.UUID(bytes=value)) if kind == "uuid" else value.hex()
    if isinstance(value, bool | str | uuid.UUID):
        return value if isinstance(value, bool | str) else str(value)
    if isinstance(value, int):
        if kind == "date":
            return (_EPOCH + datetime.timedelta(days=value)).date().isoformat()
        if kind in ("timestamp", "timestamptz"):
            moment = (_EPOCH + datetime.timedelta(microseconds=value)).isoformat()
            return f"{moment}+00:00" if kind == "timestamptz" else moment
        return value
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else str(value)
    return str(value)  # decimals, and what else pyiceberg may give


def identity_sources(specs: Mapping[int, PartitionSpec]) -> frozenset[int]:
    """Return the ids of the columns that are partition values in some spec."""
    return frozenset(
        field.source_id
        for spec in specs.values()
        for field in spec.fields
        if field.transform == _IDENTITY and field.source_id is not None
    )


def constants_of(entry: ListedFile, spec: PartitionSpec) -> tuple[tuple[str, str | None], ...]:
    """Return the values of columns that all rows of a file have, by ``#id``."""
    values = dict(entry.partition)
    found = []
    for place, field in enumerate(spec.fields):
        number = _FIRST_FIELD_ID + place if field.field_id is None else field.field_id
        if field.transform == _IDENTITY and field.source_id is not None and number in values:
            found.append((f"#{field.source_id}", values[number]))
    return tuple(found)
