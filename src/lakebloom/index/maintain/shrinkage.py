"""Detects that a table lost most of its indexed files: a missing mount, an emptied path, a bad job.

A table has shrunk if more than half of the files that it had at the last refresh are gone, *and* the files that
are new do not replace half of them: not by number (an overwrite), not by bytes, and not by rows (compaction
merges many files into few). Files that changed in place are not gone. See docs/decisions/0037.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakebloom.errors import LakebloomError, TableShrunkError
from lakebloom.index.units import sample_shape
from lakebloom.tables.file_identity import is_reachable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from lakebloom.index.current_table import CurrentTable
    from lakebloom.index.snapshot import Snapshot
    from lakebloom.tables.file_identity import TableFile

__all__ = ["Shrinkage", "files_gone", "is_mostly_gone", "shrinkage"]

_PARQUET = "parquet"


@dataclass(frozen=True, slots=True)
class Shrinkage:
    """How a table has shrunk since it was indexed."""

    known: int
    """How many files the table had when the index was last refreshed."""
    gone: int
    came: int
    places: tuple[str, ...]
    """Where the table is."""

    def __str__(self) -> str:
        if self.gone == self.known and not self.came:
            return f"the table has no files any more; the index has {self.known:,}"
        came = f", and {self.came:,} are new" if self.came else ""
        return f"{self.gone:,} of the {self.known:,} indexed files are gone{came}"

    def error(self, name: str) -> TableShrunkError:
        """Return the error of a refresh."""
        return TableShrunkError(
            f"cannot refresh index {name!r}: its table has lost most of its files",
            found=f"{self} in {', '.join(self.places)}",
            hint=f"check the table; if this is intended, run lake.refresh_index({name!r}, allow_shrink=True)",
        )


def is_mostly_gone(snapshot: Snapshot, listed: Iterable[TableFile]) -> bool:
    """Tell whether more than half of the indexed files are gone, at any time and for any reason."""
    now = {file.uri for file in listed}
    return 2 * sum(uri not in now for uri in snapshot.files) > len(snapshot.files)


def files_gone(snapshot: Snapshot, table: CurrentTable, listed: Iterable[TableFile]) -> dict[str, TableFile]:
    """Return the indexed files that should be the table's, and that the table no longer has.

    Files that a catalog no longer lists, such as those of a dropped partition, were removed on purpose.
    """
    now = {file.uri for file in listed}
    return {uri: file for uri, file in snapshot.files.items() if uri not in now and table.may_hold(uri)}


def shrinkage(
    snapshot: Snapshot, table: CurrentTable, listed: Sequence[TableFile], options: Mapping[str, str]
) -> Shrinkage | None:
    """Return how a table with these files has shrunk; None if it has not. May read a few footers."""
    gone = files_gone(snapshot, table, listed)
    if not gone:
        return None
    before = min(snapshot.commit.files_gone, len(gone))
    known, lost = sum(map(table.may_hold, snapshot.files)) - before, len(gone) - before
    if 2 * lost <= known:
        return None
    came = [file for file in listed if file.uri not in snapshot.files]
    share = lost / len(gone)
    if came and (
        2 * len(came) >= lost
        or 2 * _bytes(came) >= share * _bytes(gone.values())
        or 2 * _rows_of_new(snapshot, came, options) >= share * _rows_of_known(snapshot, gone) > 0
    ):
        return None
    return Shrinkage(known, lost, len(came), table.locations)


def _bytes(files: Iterable[TableFile]) -> int:
    return sum(file.size_bytes for file in files)


def _rows_of_known(snapshot: Snapshot, files: Mapping[str, TableFile]) -> int:
    """Return the rows that files had when they were indexed."""
    rows = 0
    for segment, current in zip(snapshot.segments, snapshot.current, strict=True):
        chosen = segment.units.of_files(file.uri in files for file in segment.units.distinct_files)
        rows += int(segment.units.whole("row_count")[current & chosen].sum())
    return rows


def _rows_of_new(snapshot: Snapshot, files: Sequence[TableFile], options: Mapping[str, str]) -> float:
    """Return the estimated number of rows of unindexed files; 0 if only a scan can tell."""
    config, table = snapshot.commit.config, snapshot.commit.table
    if table.format != _PARQUET or not all(is_reachable(file.uri) for file in files):
        return 0.0
    columns = [column.spec for column in config.columns]
    try:
        return sample_shape(files, columns, "file", table.access(options)).rows
    except LakebloomError:
        return 0.0  # none of them can be read
