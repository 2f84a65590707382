"""Several indexes over one table, combined into one.

An index that has only one of the columns cannot decide ``a = 1 OR b = 2``. Together, two indexes can, file by file: the
units here are files, and each column is probed in the first index that has it.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakebloom.index.indexed_files import DistinctFiles
from lakebloom.index.query.pruning import resolver
from lakebloom.index.query.views.file_bounds import FileBounds
from lakebloom.predicate.tree import And, Not, Or, operands
from lakebloom.predicate.tree import columns as columns_of
from lakebloom.sbbf.hashing.buffers import numbers
from lakebloom.store.some_units import entirely_null
from lakebloom.tables.file_columns import FileColumns, text_scalar, whole_numbers
from lakebloom.tables.file_matching import ABSENT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lakebloom.index.snapshot import Snapshot
    from lakebloom.predicate.prune.unit_filters import BoolArray, HashArray, IntArray
    from lakebloom.predicate.tree import Predicate
    from lakebloom.store.unit_bounds import UnitBounds
    from lakebloom.tables.columns import ColumnPath

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
        self.files, self._places = _distinct(snapshots)
        """For each row of an index's files its number here, ABSENT if it is not current."""
        self._owners: dict[ColumnPath, int] = {}

    def changed(self) -> BoolArray:
        """Return for each file whether it is unindexed in all of the indexes."""
        found = np.zeros(self.num_units, dtype=np.bool_)
        for snapshot, place in zip(self._snapshots, self._places, strict=True):
            found[place[snapshot.recheck.changed() & (place != ABSENT)]] = True
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
        return self.files.num_rows

    @property
    def wide(self) -> None:
        """Facts about all units are in memory."""
        return None

    def column_type(self, column: ColumnPath) -> str | None:
        """Return the type of a column; None also if it differs between segments."""
        types = {segment.column_type(column) for segment in self._owner(column).segments}
        return types.pop() if len(types) == 1 else None

    def false_positive_rate(self, column: ColumnPath) -> float:
        """Return the rate for a file, which is that of all its units."""
        owner = self._owner(column)
        rates = [segment.false_positive_rate(column) for segment in owner.segments]
        units = sum(segment.num_units for segment in owner.segments)
        return min(1 - 1e-9, max(rates, default=0.0) * units / max(1, owner.files.num_current))

    def might_contain_any(self, column: ColumnPath, hashes: HashArray) -> BoolArray:
        """Tell which files have a unit that may contain one of the hashes. Unindexed files always may."""
        owner, place = self._owner(column), self._places[self._owners[column]]
        hit = np.zeros(len(place), dtype=np.bool_)
        for number, segment in enumerate(owner.segments):
            hit[owner.file_numbers(number, np.flatnonzero(segment.might_contain_any(column, hashes)))] = True
        everywhere = np.ones(self.num_units, dtype=np.bool_)
        everywhere[place[~hit & (place != ABSENT)]] = False
        return everywhere

    def null_counts(self, column: ColumnPath) -> tuple[IntArray, BoolArray]:
        """Return the NULLs of each file, and whether they are known for all of its units."""
        owner, place = self._owner(column), self._places[self._owners[column]]
        counts = np.zeros(self.num_units, dtype=np.int64)
        known = np.zeros(self.num_units, dtype=np.bool_)
        known[place[place != ABSENT]] = True
        for segment, of_units in zip(owner.segments, _of_units(owner, place), strict=True):
            counted, is_known = segment.null_counts(column)
            current = of_units != ABSENT
            np.add.at(counts, of_units[current], counted[current])
            known[of_units[current & ~is_known]] = False
        return counts, known

    def entirely_null(self, column: ColumnPath) -> BoolArray | None:
        """Tell which files have no value but NULL; None if there is no such file."""
        return entirely_null(self.null_counts(column), self.row_counts())

    def bounds(self, column: ColumnPath) -> UnitBounds:
        """Return the bounds of each file, which are those of its units."""
        owner, place = self._owner(column), self._places[self._owners[column]]
        bounds = [segment.bounds(column) for segment in owner.segments]
        return FileBounds(self.num_units, list(zip(bounds, _of_units(owner, place), strict=True)))

    def row_counts(self) -> IntArray:
        """Return the rows of each file."""
        return self._row_counts

    @cached_property
    def _row_counts(self) -> IntArray:
        rows = np.zeros(self.num_units, dtype=np.int64)
        for snapshot, place in zip(self._snapshots, self._places, strict=True):
            counted = np.zeros(self.num_units, dtype=np.int64)
            for segment, of_units in zip(snapshot.segments, _of_units(snapshot, place), strict=True):
                current = of_units != ABSENT
                np.add.at(counted, of_units[current], segment.row_counts()[current])
            here = place[place != ABSENT]
            rows[here] = counted[here]
        return rows

    def _owner(self, column: ColumnPath) -> Snapshot:
        return self._snapshots[self._owners[column]]


def _distinct(snapshots: Sequence[Snapshot]) -> tuple[DistinctFiles, list[IntArray]]:
    """Return the distinct files of all indexes, and the number of each row of each index's files among them."""
    files = [FileColumns.concat(snapshot.files.chunks()) for snapshot in snapshots]
    current = [np.flatnonzero(snapshot.files.current) for snapshot in snapshots]
    chosen = FileColumns.concat(map(FileColumns.take, files, current))
    # No tag has a tab, so the text is another one for another file.
    identities = pc.binary_join_element_wise(
        *(whole_numbers(column).cast(pa.large_string()) for column in (chosen.sizes, chosen.times)),
        chosen.uris,
        chosen.tags,
        text_scalar("\t"),
    )
    numbered = numbers(identities.dictionary_encode().indices, 4)
    firsts = np.unique(numbered, return_index=True)[1]
    places, start = [], 0
    for rows, of_index in zip(current, files, strict=True):
        place = np.full(of_index.num_rows, ABSENT, dtype=np.int64)
        place[rows] = numbered[start : start + len(rows)]
        start += len(rows)
        places.append(place)
    return DistinctFiles(chosen.take(firsts)), places


def _of_units(snapshot: Snapshot, place: IntArray) -> Iterator[IntArray]:
    """Yield for each segment the number of each unit's file."""
    for start, segment in zip(snapshot.files.starts, snapshot.segments, strict=False):
        yield place[segment.units.file_numbers + start]
