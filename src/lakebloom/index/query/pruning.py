"""Pruning: which units of an index can match a predicate. The only way from a predicate to units.

Lists nothing, and reads one row for each tile and value. This module decides how units are probed: all segments as one
set for few values, in threads for many values, and with many concurrent requests if the index is remote.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from lakebloom.index.query.views.read_schema import AsRead, ReadSchema
from lakebloom.index.query.views.side_by_side import SideBySide
from lakebloom.index.threads import CORES, pool
from lakebloom.predicate.prune.prune import Pruner
from lakebloom.tuning import LONG_LIST, REQUESTS, THREADED_PAIRS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lakebloom.index.query.views.combined import Together
    from lakebloom.index.snapshot import Snapshot
    from lakebloom.predicate.prune.prune import Pruned, Resolver
    from lakebloom.predicate.prune.unit_filters import BoolArray, IntArray, UnitFilters
    from lakebloom.predicate.tree import Predicate
    from lakebloom.store.records import TableRecord
    from lakebloom.store.segments import Segment
    from lakebloom.tables.columns import ColumnPath

__all__ = ["PrunedUnits", "prune", "prune_together", "read_schema_of", "resolver", "side_by_side"]


class PrunedUnits(NamedTuple):
    """The units of a version that can match."""

    snapshot: Snapshot
    answers: tuple[Pruned, ...]
    """What each part of the predicate did: for each segment, or once for all of them side by side."""
    whole: SideBySide | None

    def by_segment(self) -> Iterator[tuple[Segment, IntArray]]:
        """Yield the numbers of the current units that can match, for each segment that has any."""
        for number, passed in self._passed():
            current = passed[self.snapshot.current[number][passed]]
            if len(current):
                yield self.snapshot.segments[number], current

    def _passed(self) -> Iterator[tuple[int, IntArray]]:
        """Yield the number of each segment in which units passed, and their numbers in it."""
        if self.whole is None:
            for number, pruned in enumerate(self.answers):
                if pruned.kept:
                    yield number, pruned.kept.numbers
        elif self.answers[0].kept:
            yield from self.whole.by_segment(self.answers[0].kept.numbers)

    def files(self) -> BoolArray:
        """Tell for each row of the version's files whether it is current and one of its units can match."""
        files = self.snapshot.files
        kept = np.zeros(files.num_rows, dtype=np.bool_)
        for number, passed in self._passed():
            kept[self.snapshot.file_numbers(number, passed)] = True
        return kept & files.current


def prune(
    snapshot: Snapshot,
    predicate: Predicate,
    read_schema: ReadSchema | None = None,
    *,
    table: TableRecord | None = None,
    hopeless: float = math.inf,
) -> PrunedUnits:
    """Return the units that can match if files are read with this schema, by default that of the table.

    ``table`` is the version of a table with a log whose columns the predicate names.

    A list of values is not probed if more than the share ``hopeless`` of the units would be false positives.
    """
    pruner = Pruner(predicate, resolve=resolver(snapshot, table), hopeless=hopeless)
    whole = side_by_side(snapshot) if pruner.num_values < LONG_LIST else None
    units: Sequence[UnitFilters] = snapshot.segments if whole is None else [whole]
    schema = read_schema or read_schema_of(snapshot, table)
    if schema is not None:
        units = [AsRead(each, schema) for each in units]
    return PrunedUnits(snapshot, tuple(_ask_each(pruner, units, remote=snapshot.is_remote)), whole)


def prune_together(
    together: Together, predicate: Predicate, read_schema: ReadSchema, *, hopeless: float = math.inf
) -> Pruned:
    """Return which files of several indexes can match, each column being probed in the index that has it."""
    return Pruner(predicate, resolve=together.resolve, hopeless=hopeless).can_match(AsRead(together, read_schema))


def resolver(snapshot: Snapshot, table: TableRecord | None = None) -> Resolver:
    """Return a function from a predicate's columns to the index's, by the table's rule for names.

    Columns of a table with a log are known by what files call them: one that was renamed is still the same, and one
    that was dropped and added again is not.
    """
    if table is not None and table.snapshot is not None:
        return _logged(snapshot, table).names.get
    columns = {column.path for column in snapshot.commit.config.columns}
    names = snapshot.names

    def resolve(path: ColumnPath) -> ColumnPath | None:
        found = names.find(path)  # among all columns of the table, K and k may both exist
        return found if found in columns else None

    return resolve


class _Logged(NamedTuple):
    """The indexed columns in a version of a table with a log."""

    table: TableRecord
    names: dict[ColumnPath, ColumnPath]
    """What the index calls each column of the version that is indexed."""
    schema: ReadSchema | None
    """The types of these columns in the version, under the names of the index; None if they are those of the index."""


def _logged(snapshot: Snapshot, table: TableRecord) -> _Logged:
    kept = _logged_of.get(snapshot)
    if kept is None or kept.table is not table:
        columns, types = snapshot.commit.config.columns, table.schema.types
        indexed = {column.physical_path: column.path for column in columns}
        # A value that the log states wins over that of a file, and a field in a struct may have a default.
        unused = {*table.partition_columns, *table.schema.has_nested_defaults}
        names = {
            path: indexed[found.path]
            for path, found in table.schema.physical.items()
            if found.path in indexed and path[0] not in unused
        }
        now = {known: types[path] for path, known in names.items()}
        of_index = tuple(now.get(column.path, "") for column in columns)
        known = (*((name,) for name in table.schema.defaults), *table.schema.initial_defaults)
        defaults = {names[path][0] for path in known if path in names}
        is_same = not defaults and all(segment.record.types == of_index for segment in snapshot.segments)
        schema = None if is_same else ReadSchema.of_columns(table.format, now, defaults)
        _logged_of[snapshot] = kept = _Logged(table, names, schema)
    return kept


_logged_of: WeakKeyDictionary[Snapshot, _Logged] = WeakKeyDictionary()
_whole_of: WeakKeyDictionary[Snapshot, SideBySide | None] = WeakKeyDictionary()
_schema_of: WeakKeyDictionary[Snapshot, ReadSchema | None] = WeakKeyDictionary()


def side_by_side(snapshot: Snapshot) -> SideBySide | None:
    """Return all segments as one set, if that is faster to probe."""
    if snapshot.is_remote:
        return None
    if snapshot not in _whole_of:
        _whole_of[snapshot] = SideBySide.of(snapshot.segments)
    return _whole_of[snapshot]


def read_schema_of(snapshot: Snapshot, table: TableRecord | None) -> ReadSchema | None:
    """Return how files are read that are read as a table has them; None if all columns are as they were indexed."""
    if table is None or table.snapshot is None:
        return _recorded_schema(snapshot)
    return _logged(snapshot, table).schema


def _recorded_schema(snapshot: Snapshot) -> ReadSchema | None:
    """Return the table's schema if it has columns with defaults; otherwise None.

    A file without such a column was indexed as NULL, and is read as the default.
    """
    if snapshot not in _schema_of:
        table = snapshot.commit.table
        _schema_of[snapshot] = ReadSchema(table.format, table.schema) if table.schema.defaults else None
    return _schema_of[snapshot]


def _ask_each(pruner: Pruner, segments: Sequence[UnitFilters], *, remote: bool) -> list[Pruned]:
    """Probe several segments; at the same time if there are many values, or if the index is remote."""
    work = pruner.num_values * sum(segment.num_units for segment in segments)
    is_much = work >= THREADED_PAIRS and pruner.num_values >= LONG_LIST
    workers = REQUESTS if remote else CORES if is_much else 1
    if len(segments) < 2 or workers < 2:
        return [pruner.can_match(segment) for segment in segments]
    pruner.prepare(segments[0])
    return list(pool(workers).map(pruner.can_match, segments))
