"""The options of ``spark.read.format("lakebloom")``. An unknown one is an error.

index, or load(name)    the name of the index
location                the location of the indexes
columns                 names of the columns to read, separated by commas
where                   a condition: only matching rows are returned
partitionBytes          approximate number of bytes that one task reads
timeoutMs               how long to wait for the index before all files are read
storage.<key>           options of an object store, such as storage.region
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakebloom.errors import InvalidArgumentError
from lakebloom.index.arguments import as_of_arguments
from lakebloom.index.as_of import NEWEST, AsOf
from lakebloom.index.settings import Settings
from lakebloom.tuning import PARTITION_BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["SourceOptions"]

_STORAGE = "storage."
_KNOWN = (
    "index",
    "path",
    "location",
    "columns",
    "where",
    "readOnce",
    "partitionBytes",
    "timeoutMs",
    "version",
    "timestamp",
    "currentTable",
)
_FOLDED = frozenset(name.lower() for name in _KNOWN)
_TIMEOUT_MS = Settings().query_timeout_ms
_COMMA = re.compile(r",(?=(?:[^`]*`[^`]*`)*[^`]*$)")


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """The options of one query."""

    index: str
    location: str
    storage: Mapping[str, str]
    columns: tuple[str, ...] | None = None
    where: str | None = None
    read_once: bool = False
    partition_bytes: int = PARTITION_BYTES
    timeout_ms: int = _TIMEOUT_MS
    as_of: AsOf = NEWEST
    """The version of a Delta table, or the id of an Iceberg table's snapshot."""
    current_table: str | None = None
    """The table as the catalog described it to ``Lakebloom.read``; an internal option."""

    @classmethod
    def parse(cls, given: Mapping[str, str], location: str | None, storage: Mapping[str, str]) -> SourceOptions:
        """Return the options of a query, with these defaults. Raises InvalidArgumentError.

        >>> SourceOptions.parse({"path": "by_user", "columns": "a, `b,c`"}, "/indexes", {}).columns
        ('a', '`b,c`')
        """
        options = {key.lower(): value for key, value in given.items()}
        own = {key: options.pop(key) for key in list(options) if key.startswith(_STORAGE)}
        for key in options:
            if key not in _FOLDED:
                _refuse(key)
        columns = options.get("columns")
        return cls(
            index=_index(options),
            location=_location(options.get("location") or location),
            storage={**storage, **{key.removeprefix(_STORAGE): value for key, value in own.items()}},
            columns=None if columns is None else _columns(columns),
            where=options.get("where"),
            read_once=_flag("readOnce", options.get("readonce", "false")),
            partition_bytes=_number("partitionBytes", options.get("partitionbytes"), PARTITION_BYTES),
            timeout_ms=_number("timeoutMs", options.get("timeoutms"), _TIMEOUT_MS),
            as_of=_as_of(options.get("version"), options.get("timestamp")),
            current_table=options.get("currenttable"),
        )


def _columns(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in _COMMA.split(text)) if text.strip() else ()


def _index(options: Mapping[str, str]) -> str:
    names = {options[key] for key in ("index", "path") if key in options}
    if len(names) != 1:
        raise InvalidArgumentError(
            "the data source needs the name of one index",
            found=" and ".join(sorted(names)) or "no name",
            hint='spark.read.format("lakebloom").load("by_user"), or OPTIONS (index "by_user") in SQL',
        )
    return names.pop()


def _location(location: str | None) -> str:
    if location is None:
        raise InvalidArgumentError(
            "the location of the indexes is not set",
            found="no option location",
            hint="give the option location, or register the source with Lakebloom(spark, location).register_source()",
        )
    return location


def _as_of(version: str | None, timestamp: str | None) -> AsOf:
    if version is not None and not version.isdecimal():
        raise InvalidArgumentError("version must be a number from 0 on", found=version)
    return as_of_arguments(None if version is None else int(version), timestamp)


def _flag(name: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise InvalidArgumentError(f"{name} must be true or false", found=text)
    return text.lower() == "true"


def _number(name: str, text: str | None, default: int) -> int:
    if text is None:
        return default
    if not text.isdecimal() or int(text) == 0:
        unit = "milliseconds" if name == "timeoutMs" else "bytes"
        raise InvalidArgumentError(f"{name} must be a number of {unit}", found=text)
    return int(text)


def _refuse(key: str) -> None:
    known = [*_KNOWN[:-1], f"{_STORAGE}<key>"]
    close = difflib.get_close_matches(key, [name.lower() for name in known], n=1, cutoff=0.5)
    named = next((name for name in known if name.lower() == close[0]), None) if close else None
    raise InvalidArgumentError(
        "unknown option of the lakebloom data source",
        found=key,
        hint=f"did you mean {named}?" if named else f"known are {', '.join(known)}",
    )
