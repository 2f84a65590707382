"""Several indexes over one table, combined into one.

An index that has only one of the columns cannot decide ``a = 1 OR b = 2``. Together, two indexes can, file by file: the
units here are files, and each column is probed in the first index that has it.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from lakebloom.index.query.pruning import resolver
from lakebloom.index.query.views.file_bounds import FileBounds
from lakebloom.predicate.tree import And, Not, Or, operands
from lakebloom.predicate.tree import columns as columns_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakebloom.index.snapshot import Snapshot
    from lakebloom.predicate.prune.unit_filters import BoolArray, HashArray, IntArray
    from lakebloom.predicate.tree import Predicate
    from lakebloom.store.unit_bounds import UnitBounds
    from lakebloom.tables.columns import ColumnPath
    from lakebloom.tables.file_identity import TableFile

__all__ = ["Together", "helps"]


def helps(predicate: Predicate, snapshots: Sequence[Snapshot]) -> bool:
    """Tell whether several indexes combined can drop more than each of them alone."""
    if len(snapshots) < 2 or not _has_alternatives(predicate):
        return False
    known = [{column for column in columns_of(predicate) if resolver(snapshot)(column)} for snapshot in snapshots]
    return not any(columns >= set().union(*known) for columns in known)


def _has_alternatives(predicate: Predicate) -> bool:
    """Tell whether a predicate contains an OR; a NOT may create one."""
    if isinstance(predicate, And):
        return any(map(_has_alternatives, operands(predicate)))
    return isinstance(predicate, Or | Not)


class Together:
    """The files of several indexes as units."""

    def __init__(self, snapshots: Sequence[Snapshot]) -> None:
        self._snapshots = snapshots
        numbers: dict[TableFile, int] = {}
        self._places = [
            np.array([numbers.setdefault(file, len(numbers)) for file in snapshot.numbered_files[0]], dtype=np.int64)
            for snapshot in snapshots
        ]
        self.files = list(numbers)
        self._owners: dict[ColumnPath, int] = {}

    def changed(self) -> BoolArray:
        """Return for each file whether it is unindexed in all of the indexes."""
        found = np.zeros(len(self.files), dtype=np.bool_)
        for snapshot, place in zip(self._snapshots, self._places, strict=True):
            found[place] |= snapshot.recheck.changed()
        return found

    def resolve(self, column: ColumnPath) -> ColumnPath | None:
        """Find the first index that has a column, and the column's name there."""
        for number, snapshot in enumerate(self._snapshots):
            found = resolver(snapshot)(column)
            if found is not None:
                return found if self._owners.setdefault(found, number) == number else None
        return None

    @property
    def num_units(self) -> int:
        """How many files there are."""
        return len(self.files)

    def column_type(self, column: ColumnPath) -> str | None:
        """Return the type of a column; None also if it differs between segments."""
        types = {segment.column_type(column) for segment in self._owner(column).segments}
        return types.pop() if len(types) == 1 else None

    def false_positive_rate(self, column: ColumnPath) -> float:
        """Return the rate for a file, which is that of all its units."""
        owner = self._owner(column)
        rates = [segment.false_positive_rate(column) for segment in owner.segments]
        units = sum(segment.num_units for segment in owner.segments)
        return min(1 - 1e-9, max(rates, default=0.0) * units / max(1, len(owner.numbered_files[0])))

    def might_contain_any(self, column: ColumnPath, hashes: HashArray) -> BoolArray:
        """Tell which files have a unit that may contain one of the hashes. Unindexed files always may."""
        owner, place = self._owner(column), self._places[self._owners[column]]
        files, of_units = owner.numbered_files
        hit = np.zeros(len(files), dtype=np.bool_)
        for segment, numbers in zip(owner.segments, of_units, strict=True):
            hit[numbers[segment.might_contain_any(column, hashes) & (numbers >= 0)]] = True
        everywhere = np.ones(self.num_units, dtype=np.bool_)
        everywhere[place] = hit
        return everywhere

    def null_counts(self, column: ColumnPath) -> tuple[IntArray, BoolArray]:
        """Return the NULLs of each file, and whether they are known for all of its units."""
        owner, place = self._owner(column), self._places[self._owners[column]]
        counts = np.zeros(self.num_units, dtype=np.int64)
        known = np.zeros(self.num_units, dtype=np.bool_)
        known[place] = True
        for segment, numbers in zip(owner.segments, owner.numbered_files[1], strict=True):
            counted, is_known = segment.null_counts(column)
            current = numbers >= 0
            np.add.at(counts, place[numbers[current]], counted[current])
            known[place[numbers[current & ~is_known]]] = False
        return counts, known

    def bounds(self, column: ColumnPath) -> UnitBounds:
        """Return the bounds of each file, which are those of its units."""
        owner, place = self._owner(column), self._places[self._owners[column]]
        numbers = [np.where(of_units >= 0, place[of_units], -1) for of_units in owner.numbered_files[1]]
        bounds = [segment.bounds(column) for segment in owner.segments]
        return FileBounds(self.num_units, list(zip(bounds, numbers, strict=True)))

    def row_counts(self) -> IntArray:
        """Return the rows of each file."""
        return self._row_counts

    @cached_property
    def _row_counts(self) -> IntArray:
        rows = np.zeros(self.num_units, dtype=np.int64)
        for snapshot, place in zip(self._snapshots, self._places, strict=True):
            counted = np.zeros(self.num_units, dtype=np.int64)
            for segment, numbers in zip(snapshot.segments, snapshot.numbered_files[1], strict=True):
                current = numbers >= 0
                np.add.at(counted, place[numbers[current]], segment.row_counts()[current])
            rows[place] = counted[place]
        return rows

    def _owner(self, column: ColumnPath) -> Snapshot:
        return self._snapshots[self._owners[column]]
