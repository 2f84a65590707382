"""The status of an index compared with its table, for monitoring: coverage, lag, size and rate."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakebloom.display.tables import Printable, amount, text_of
from lakebloom.errors import IndexFormatError, IndexNotFoundError, LakebloomError, StorageError
from lakebloom.index.current_table import recorded_table
from lakebloom.index.maintain.filter_health import column_health, segment_health
from lakebloom.index.maintain.freshness import freshness
from lakebloom.index.maintain.shrinkage import shrinkage
from lakebloom.index.reports import IndexRecord, history_of
from lakebloom.index.snapshot import Snapshot

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakebloom.index.catalog import Catalog, Index
    from lakebloom.index.current_table import CurrentTable

__all__ = ["IndexStatus", "status_of", "statuses"]

_BUILDS = ("create", "replace", "refresh")


@dataclass(frozen=True, slots=True)
class IndexStatus(Printable):
    """One index compared with its table now."""

    name: str
    state: str
    """"active", "deleted", "damaged", or "unreadable": its store does not answer."""
    version: int = 0
    coverage: float = 0.0
    """The share of the table's files that are indexed."""
    files: int = 0
    """The files that the table has now."""
    files_new: int = 0
    files_changed: int = 0
    files_gone: int = 0
    """The files of the index that the table no longer has."""
    segments: int = 0
    size_bytes: int = 0
    refreshed_ms: int | None = None
    """When the newest build was committed, in milliseconds since 1970."""
    fpp: float = 0.0
    fpp_measured: float = 0.0
    """The highest rate of a column, from the bits of its filters."""
    problem: str = ""
    """Why the index, or its table, cannot be read."""
    refresh_problem: str = ""
    """Why the last automatic refresh of this session failed."""

    @property
    def lag(self) -> int:
        """How many files are unindexed, so that queries read them in full."""
        return self.files_new + self.files_changed

    def is_stale(self, max_lag: int = 0) -> bool:
        """Whether a refresh is due: more than this many files are unindexed, or the index cannot be used."""
        return bool(self.problem) or self.lag > max_lag

    def shown(self) -> list[tuple[str, str]]:
        """Return the fields as (name, text)."""
        if self.state != "active" or self.problem:
            return [("name", self.name), ("state", self.state), ("problem", self.problem)]
        refreshed = "" if self.refreshed_ms is None else text_of("timestamp_ms", self.refreshed_ms)
        return [
            ("name", self.name),
            ("state", self.state),
            ("version", f"{self.version:,}"),
            ("coverage", f"{self.coverage:.1%} of {self.files:,} files"),
            ("lag", f"{self.files_new:,} new, {self.files_changed:,} changed, {self.files_gone:,} gone"),
            ("size", f"{amount(self.size_bytes)} in {self.segments:,} segments"),
            ("refreshed", refreshed),
            ("fpp", f"{self.fpp:.3g}, measured {self.fpp_measured:.3g}"),
            *([("automatic refresh", self.refresh_problem)] if self.refresh_problem else []),
        ]


def statuses(
    catalog: Catalog, name: str | None, current: Callable[[Snapshot], CurrentTable] = recorded_table
) -> list[IndexStatus]:
    """Return the status of one index, or of all that are not deleted. Raises IndexNotFoundError."""
    if name is not None:
        return [status_of(catalog.index(name), current)]
    found = []
    for each in catalog.names():
        with suppress(IndexNotFoundError):  # removed; a commit that says so is left of it
            found.append(status_of(catalog.index(each), current))
    return [status for status in found if status.state != "deleted"]


def status_of(index: Index, current: Callable[[Snapshot], CurrentTable] = recorded_table) -> IndexStatus:
    """Compare an index with a new listing of its table. Damage and errors are part of the result.

    Raises IndexNotFoundError if there is no such index.
    """
    try:
        commit = index.log.newest()
    except IndexNotFoundError:
        raise
    except IndexFormatError as error:
        return IndexStatus(index.name, "damaged", problem=str(error))
    except StorageError as error:
        return IndexStatus(index.name, "unreadable", problem=str(error))
    record = IndexRecord.of(commit)
    if commit.state != "active":
        return IndexStatus(index.name, commit.state, commit.version)
    try:
        snapshot = Snapshot(index.storage, commit)
        table = freshness(snapshot, index.options, current)
        shrunk = shrinkage(snapshot, current(snapshot), table.listed, index.options)
        columns = column_health(segment_health(snapshot))
        builds = [version.timestamp_ms for version in history_of(index.log) if version.operation in _BUILDS]
    except LakebloomError as error:
        return IndexStatus(index.name, commit.state, commit.version, problem=str(error))
    return IndexStatus(
        name=index.name,
        state=commit.state,
        version=commit.version,
        coverage=table.coverage,
        files=len(table.listed),
        files_new=len(table.new),
        files_changed=len(table.stale),
        files_gone=len(table.missing),
        segments=record.segments,
        size_bytes=record.size_bytes,
        refreshed_ms=max(builds, default=None),
        fpp=float(record.fpp),
        fpp_measured=max((column.fpp_measured for column in columns), default=0.0),
        problem="" if shrunk is None else str(shrunk),
    )
