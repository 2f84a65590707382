"""Which version of a Delta table was the newest at a time.

The time of a version is that of its commit's file, made to increase from commit to commit as Delta does it. Tables may
let commits state their times instead, from some version on; files may then be copied and keep their history.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from lakebloom.errors import DataFileError, NotFoundError
from lakebloom.tables.formats.delta.actions import parse_actions
from lakebloom.tables.formats.delta.log_files import commit_name

if TYPE_CHECKING:
    from lakebloom.storage import Storage
    from lakebloom.tables.formats.delta.log_files import LogFiles
    from lakebloom.tables.formats.delta.snapshot import DeltaSnapshot

__all__ = ["stated_ms", "version_at"]

_ENABLED_AT_VERSION = "delta.inCommitTimestampEnablementVersion"
_ENABLED_AT_MS = "delta.inCommitTimestampEnablementTimestamp"


def version_at(newest: DeltaSnapshot, files: LogFiles, storage: Storage, timestamp_ms: int) -> int:
    """Return the last version that is not later than a time. Raises NotFoundError where the first readable one is."""
    versions = [version for version in files.readable if version in files.commits and version <= newest.version]
    if not versions:
        raise _too_early(timestamp_ms, newest, None)
    if newest.has_in_commit_times:
        since_version = _number(newest, _ENABLED_AT_VERSION)
        if timestamp_ms >= _number(newest, _ENABLED_AT_MS):
            versions = [version for version in versions if version >= since_version] or versions[-1:]
            return _last(versions, _InCommitTimes(storage, versions), newest, timestamp_ms)
        versions = [version for version in versions if version < since_version]
        if not versions:
            raise _too_early(timestamp_ms, newest, None)
    return _last(versions, _file_times(files, versions), newest, timestamp_ms)


def _last(versions: Sequence[int], times: Sequence[int], newest: DeltaSnapshot, timestamp_ms: int) -> int:
    place = bisect_right(times, timestamp_ms)
    if not place:
        raise _too_early(timestamp_ms, newest, times[0])
    return versions[place - 1]


def _file_times(files: LogFiles, versions: Sequence[int]) -> list[int]:
    times: list[int] = []
    for version in versions:
        time_ms = files.commits[version].mtime_ms
        times.append(max(time_ms, times[-1] + 1) if times else time_ms)
    return times


class _InCommitTimes(Sequence[int]):
    """The times that commits state, read as a search asks for them."""

    def __init__(self, storage: Storage, versions: Sequence[int]) -> None:
        self._storage, self._versions = storage, versions

    def __len__(self) -> int:
        return len(self._versions)

    def __getitem__(self, place: Any) -> Any:
        return stated_ms(self._storage, self._versions[place])


def stated_ms(storage: Storage, version: int) -> int:
    """Return the time that a commit states. Raises DataFileError, and NotFoundError where it was cleaned up."""
    name = commit_name(version)
    uri = f"{storage.uri}/{name}"
    for action in parse_actions(uri, storage.read(name)):
        if action.commit_info is not None and action.commit_info.in_commit_timestamp is not None:
            return action.commit_info.in_commit_timestamp
    raise DataFileError(
        f"{uri} does not state its time", found="no inCommitTimestamp", hint="name a version instead of a time"
    )


def _number(newest: DeltaSnapshot, key: str) -> int:
    """Return a property of the table; 0 where it has none, because commits state their times from the first on."""
    text = newest.configuration.get(key) or "0"
    try:
        return int(text)
    except ValueError:
        raise DataFileError(
            f"the Delta table {newest.uri} has a property that is no number", found=f"{key} {text!r}"
        ) from None


def _too_early(timestamp_ms: int, newest: DeltaSnapshot, first_ms: int | None) -> NotFoundError:
    return NotFoundError(
        f"the Delta table {newest.uri} has no version of {_shown(timestamp_ms)} or before",
        found="" if first_ms is None else f"the first readable one is of {_shown(first_ms)}",
        hint="the log keeps versions for delta.logRetentionDuration; choose a later time",
    )


def _shown(time_ms: int) -> str:
    try:
        return datetime.fromtimestamp(time_ms / 1000, timezone.utc).isoformat()
    except (OverflowError, ValueError, OSError):
        return f"{time_ms} ms"
