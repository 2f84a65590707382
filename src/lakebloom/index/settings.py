"""The keys under ``spark.lakebloom.``: names, meanings, defaults. An unknown key is an error."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from lakebloom.errors import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIX = "spark.lakebloom."
TIMEOUT_KEY = f"{PREFIX}query.timeoutMs"
_DAY_MS = 24 * 60 * 60 * 1000
_NUMBER = re.compile(r"(?P<number>[0-9]+)\s*(?P<unit>[a-zA-Z]*)")
# Sizes and times in Spark's syntax: powers of 1024, with or without the b, in any case.
_BYTES = {"": 1, "b": 1} | {f"{unit}{b}": 1 << 10 * power for power, unit in enumerate("kmgtp", 1) for b in ("", "b")}
_MILLISECONDS = {"": 1, "ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": _DAY_MS}


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings, with their defaults."""

    location: str | None = None
    """The location of the indexes."""
    max_index_bytes: int | None = None
    """The largest index that create and refresh build; by default a quarter of the table, at least 16 MiB."""
    build_driver_max_bytes: int = 16 << 20
    """A local session reads up to this size of Parquet files in the driver: a job takes longer to start."""
    global_max_bytes: int = 32 << 20
    """The largest global filter of a column."""
    vacuum_retention_ms: int = 7 * _DAY_MS
    """How long replaced versions stay readable."""
    vacuum_grace_ms: int = _DAY_MS
    """Vacuum removes a file that no version names if it is older than this: longer than any build takes."""

    query_timeout_ms: int = 5000
    """How long the planning of a query waits for an index before it continues without it."""

    join_merge_new_files: bool = True
    """Whether unindexed files are read and added to a global filter when a join needs it."""
    join_merge_max_bytes: int = 256 << 20
    """The largest total size of these files."""
    join_min_bytes: int = 64 << 20
    """Smallest other side of a join to which a filter is added automatically."""
    join_max_keys: int = 10_000
    """Largest number of distinct keys of a small side that are probed in the files of the other."""
    join_max_key_bytes: int = 8 << 20
    """Largest side in memory whose keys are collected while a query is planned."""

    @classmethod
    def parse(cls, values: Mapping[str, str]) -> Settings:
        """Return the settings from keys that start with ``spark.lakebloom.``; other keys are ignored.

        Sizes and times have Spark's syntax: "1048576", "1m", "64MB", "30s".

        >>> Settings.parse({"spark.lakebloom.global.maxBytes": "1m"}).global_max_bytes
        1048576
        """
        chosen: dict[str, str | int | bool] = {}
        for key, value in values.items():
            if not key.startswith(PREFIX):
                continue
            if key not in KEYS:
                import difflib

                close = difflib.get_close_matches(key, KEYS, n=1, cutoff=0.5)
                hint = f"did you mean {close[0]}?" if close else f"known are {', '.join(KEYS)}"
                raise InvalidArgumentError("unknown configuration key", found=key, hint=hint)
            chosen[KEYS[key]] = _parsed(key, value)
        return cls(**chosen)  # type: ignore[arg-type]


KEYS = {
    f"{PREFIX}location": "location",
    f"{PREFIX}maxIndexBytes": "max_index_bytes",
    f"{PREFIX}build.driverMaxBytes": "build_driver_max_bytes",
    f"{PREFIX}global.maxBytes": "global_max_bytes",
    f"{PREFIX}vacuum.retentionMs": "vacuum_retention_ms",
    f"{PREFIX}vacuum.graceMs": "vacuum_grace_ms",
    TIMEOUT_KEY: "query_timeout_ms",
    f"{PREFIX}join.mergeNewFiles": "join_merge_new_files",
    f"{PREFIX}join.mergeMaxBytes": "join_merge_max_bytes",
    f"{PREFIX}join.minBytes": "join_min_bytes",
    f"{PREFIX}join.maxKeys": "join_max_keys",
    f"{PREFIX}join.maxKeyBytes": "join_max_key_bytes",
}
assert set(KEYS.values()) == {field.name for field in fields(Settings)}


def _parsed(key: str, value: str) -> str | int | bool:
    if KEYS[key] == "location":
        return value
    if KEYS[key] == "join_merge_new_files":
        if value.lower() not in ("true", "false"):
            raise InvalidArgumentError(f"{key} must be true or false", found=value)
        return value.lower() == "true"
    if KEYS[key].endswith("_bytes"):
        return _amount(key, value, _BYTES, "a size such as 67108864, 64m or 64MB")
    if KEYS[key].endswith("_ms"):
        return _amount(key, value, _MILLISECONDS, "a time such as 5000, 5s or 7d")
    return _amount(key, value, {"": 1}, "a number, zero or more")


def _amount(key: str, value: str, units: Mapping[str, int], wanted: str) -> int:
    match = _NUMBER.fullmatch(value.strip())
    if match is None or match["unit"].lower() not in units:
        raise InvalidArgumentError(f"{key} must be {wanted}", found=value or "nothing")
    return int(match["number"]) * units[match["unit"].lower()]
