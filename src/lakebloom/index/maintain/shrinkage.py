"""Detects that a table lost most of its indexed files: a missing mount, an emptied path, a bad job.

A table has shrunk if more than half of the files that it had at the last refresh are gone, *and* the files that
are new do not replace half of them: not by number (an overwrite), not by bytes, and not by rows (compaction
merges many files into few). Files that changed in place are not gone. See docs/decisions/0037.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lakebloom.errors import LakebloomError, TableShrunkError
from lakebloom.index.units import sample_shape
from lakebloom.tables.file_identity import is_reachable
from lakebloom.tables.file_matching import ABSENT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from lakebloom.index.current_table import CurrentTable
    from lakebloom.index.snapshot import Snapshot
    from lakebloom.predicate.prune.unit_filters import BoolArray
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


def is_mostly_gone(snapshot: Snapshot, listed: Sequence[TableFile]) -> bool:
    """Tell whether more than half of the indexed files are gone, at any time and for any reason."""
    return 2 * int(np.count_nonzero(_absent(snapshot, listed))) > snapshot.files.num_current


def files_gone(snapshot: Snapshot, table: CurrentTable, listed: Sequence[TableFile]) -> int:
    """Return how many of the indexed files should be the table's, and are not there any more.

    Files that a catalog no longer lists, such as those of a dropped partition, were removed on purpose.
    """
    return int(np.count_nonzero(_gone(snapshot, table, listed)))


def shrinkage(
    snapshot: Snapshot, table: CurrentTable, listed: Sequence[TableFile], options: Mapping[str, str]
) -> Shrinkage | None:
    """Return how a table with these files has shrunk; None if it has not. May read a few footers."""
    gone = _gone(snapshot, table, listed)
    num_gone = int(np.count_nonzero(gone))
    if not num_gone:
        return None
    before = min(snapshot.commit.files_gone, num_gone)
    known, lost = int(np.count_nonzero(_held(snapshot, table))) - before, num_gone - before
    if 2 * lost <= known:
        return None
    came = [listed[number] for number in np.flatnonzero(~snapshot.compared(listed).named).tolist()]
    share = lost / num_gone
    if came and (
        2 * len(came) >= lost
        or 2 * _bytes(came) >= share * _bytes_of_known(snapshot, gone)
        or 2 * _rows_of_new(snapshot, came, options) >= share * _rows_of_known(snapshot, gone) > 0
    ):
        return None
    return Shrinkage(known, lost, len(came), table.locations)


def _absent(snapshot: Snapshot, listed: Sequence[TableFile]) -> BoolArray:
    """Tell which indexed files are not listed. For the rows of ``IndexedFiles``, as all arrays here."""
    absent: BoolArray = snapshot.files.current & (snapshot.compared(listed).matched.places == ABSENT)
    return absent


def _gone(snapshot: Snapshot, table: CurrentTable, listed: Sequence[TableFile]) -> BoolArray:
    absent = _absent(snapshot, listed)
    return absent & _held(snapshot, table) if absent.any() else absent


def _held(snapshot: Snapshot, table: CurrentTable) -> BoolArray:
    """Tell which indexed files should be the table's."""
    files = snapshot.files
    if table.holds_all:
        return files.current
    held = (table.may_hold(uri) for run in files.chunks() for uri in run.uris.to_pylist())
    return files.current & np.fromiter(held, np.bool_, files.num_rows)


def _bytes(files: Iterable[TableFile]) -> int:
    return sum(file.size_bytes for file in files)


def _bytes_of_known(snapshot: Snapshot, rows: BoolArray) -> int:
    sizes = np.concatenate([run.sizes for run in snapshot.files.chunks()])
    return int(sizes[rows].sum())


def _rows_of_known(snapshot: Snapshot, rows: BoolArray) -> int:
    """Return the rows that files had when they were indexed."""
    return sum(
        int(segment.units.whole("row_count")[chosen].sum())
        for segment, chosen in zip(snapshot.segments, snapshot.units_of(rows), strict=True)
    )


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
