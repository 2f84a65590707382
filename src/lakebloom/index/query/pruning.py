"""Asking an index: which units can match a predicate. Lists nothing, reads one row of each tile and value."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pyarrow as pa

from lakebloom.errors import CorruptIndexError, InvalidArgumentError
from lakebloom.index.current_table import recorded_table
from lakebloom.index.query.views.read_schema import AsRead
from lakebloom.index.snapshot import Snapshot
from lakebloom.index.threads import CORES, REQUESTS, pool
from lakebloom.predicate.prune.prune import Pruner
from lakebloom.predicate.tree import Node, renamed
from lakebloom.storage import to_local_path
from lakebloom.storage.metered import Metered

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import TypeVar

    from lakebloom.index.catalog import Index
    from lakebloom.index.current_table import CurrentTable
    from lakebloom.predicate.prune.prune import Pruned, Resolver
    from lakebloom.predicate.prune.unit_filters import IntArray, UnitFilters
    from lakebloom.predicate.tree import Predicate
    from lakebloom.store.segments import Segment
    from lakebloom.tables.columns import ColumnPath
    from lakebloom.tables.file_identity import TableFile

    ResultT = TypeVar("ResultT")

_MUCH_WORK, _MANY_VALUES = 200_000, 8
"""From so many pairs of value and unit on threads are worth their while; a few values ask too little between one call
and the next, and threads would wait for each other."""

CANDIDATES_SCHEMA = pa.schema(
    [
        pa.field("path", pa.string(), nullable=False),
        pa.field("row_start", pa.int64(), nullable=False),
        pa.field("row_count", pa.int64(), nullable=False),
        pa.field("row_groups", pa.list_(pa.int32()), nullable=False),
    ]
)


class Candidate(msgspec.Struct, frozen=True):
    """A unit that can match."""

    file: TableFile
    row_start: int
    row_count: int
    row_groups: range


class Reader:
    """An index open for questions. Keeps what it has read of a version and notices new ones."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._storage = Metered(index.storage)
        self._snapshot: Snapshot | None = None

    def snapshot(self) -> Snapshot:
        """Return the newest version."""
        entry = self._index.active()
        known = self._snapshot  # other threads ask too
        if known is None or known.entry is not entry:
            self._snapshot = known = Snapshot(self._storage, entry, known)
        return known

    def with_newest(self, question: Callable[[Snapshot], ResultT]) -> ResultT:
        """Ask the newest version; one that was vacuumed while it was asked is exchanged for its successor."""
        while True:
            snapshot = self.snapshot()
            try:
                return question(snapshot)
            except CorruptIndexError:
                self._snapshot = None
                self._index.log.forget()
                if self.snapshot().entry == snapshot.entry:
                    raise

    def candidates(
        self,
        predicate: Predicate,
        options: Mapping[str, str] | None = None,
        current: Callable[[Snapshot], CurrentTable] = recorded_table,
    ) -> list[Candidate]:
        """Return the units that can match of files that the table may have now, by their names.

        ``current`` tells what the table of a version is. Raises UnsupportedSourceError for a table that is none of
        plain files.
        """
        require_predicate(predicate)
        return self.with_newest(lambda snapshot: _candidates_now(snapshot, predicate, options, current(snapshot)))


def require_predicate(predicate: object) -> None:
    """Raise InvalidArgumentError for anything but a predicate."""
    if not isinstance(predicate, Node):
        raise InvalidArgumentError(
            "a predicate is made with col, or is SQL text",
            found=predicate,
            hint='for example col("user_id") == 42, or "user_id = 42"',
        )


def resolver(snapshot: Snapshot) -> Resolver:
    """Return how a predicate's names find the index's columns: by the table's own rule for names."""
    columns = {column.path for column in snapshot.entry.config.columns}
    names = snapshot.names

    def resolve(path: ColumnPath) -> ColumnPath | None:
        found = names.find(path)  # among all columns: K may be indexed where k is asked for
        return found if found in columns else None

    return resolve


def _ask(snapshot: Snapshot, pruner: Pruner, filters: Sequence[UnitFilters]) -> list[Pruned]:
    as_read = snapshot.as_read
    # A file without the column was indexed as NULL, and is read as the default.
    asked = filters if as_read is None else [AsRead(units, as_read) for units in filters]
    return ask_each(pruner, asked, remote=snapshot.is_remote)


def ask_each(pruner: Pruner, segments: Sequence[UnitFilters], *, remote: bool) -> list[Pruned]:
    """Ask several segments, at the same time where there is much to ask, or where each waits for the network."""
    work = pruner.num_values * sum(segment.num_units for segment in segments)
    is_much = work >= _MUCH_WORK and pruner.num_values >= _MANY_VALUES
    workers = REQUESTS if remote else CORES if is_much else 1
    if len(segments) < 2 or workers < 2:
        return [pruner.can_match(segment) for segment in segments]
    # The first one alone: it makes what is common to all.
    first = pruner.can_match(segments[0])
    return [first, *pool(workers).map(pruner.can_match, segments[1:])]


def _candidates_now(
    snapshot: Snapshot, predicate: Predicate, options: Mapping[str, str] | None, table: CurrentTable
) -> list[Candidate]:
    table.require_plain(options)
    found = candidates_of(snapshot, renamed(predicate, snapshot.names.require))
    return [candidate for candidate in found if table.may_hold(candidate.file.uri)]


def candidates_of(snapshot: Snapshot, predicate: Predicate) -> list[Candidate]:
    """Return the units of one version that can match, in the order of the segments."""
    return [
        candidate
        for segment, numbers in candidate_units(snapshot, predicate)
        for candidate in candidates_in(segment, numbers)
    ]


def candidate_units(
    snapshot: Snapshot, predicate: Predicate, told: list[Pruned] | None = None
) -> Iterator[tuple[Segment, IntArray]]:
    """Yield the numbers of the units that can match for each segment that has any.

    ``told`` is given what each part of the predicate did: for each segment, or once for all of them side by side.
    """
    pruner = Pruner(predicate, resolve=resolver(snapshot))
    whole = snapshot.side_by_side if pruner.num_values < _MANY_VALUES else None
    if whole is not None:
        (pruned,) = answers = _ask(snapshot, pruner, [whole])
        if told is not None:
            told += answers
        if pruned.keep.any():
            yield from whole.by_segment(np.flatnonzero(pruned.keep & np.concatenate(snapshot.current)))
        return
    answers = _ask(snapshot, pruner, snapshot.segments)
    if told is not None:
        told += answers
    for number, (segment, pruned) in enumerate(zip(snapshot.segments, answers, strict=True)):
        if pruned.keep.any():
            yield segment, np.flatnonzero(pruned.keep & snapshot.current[number])


def candidates_in(segment: Segment, numbers: IntArray) -> list[Candidate]:
    """Return units of a segment by their numbers."""
    names = ("row_start", "row_count", "row_group_start", "row_group_count")
    columns = [segment.units.whole(name)[numbers].tolist() for name in names]
    files = segment.units.distinct_files
    return [
        Candidate(files[file], row_start, row_count, range(first, first + count))
        for file, row_start, row_count, first, count in zip(
            segment.units.file_numbers[numbers].tolist(), *columns, strict=True
        )
    ]


def candidate_table(candidates: list[Candidate]) -> pa.Table:
    """Return candidates as an Arrow table: path, row_start, row_count, row_groups. Local paths are plain paths."""
    columns = [
        [_shown_path(candidate.file.uri) for candidate in candidates],
        [candidate.row_start for candidate in candidates],
        [candidate.row_count for candidate in candidates],
        [list(candidate.row_groups) for candidate in candidates],
    ]
    return pa.table(
        [pa.array(values, field.type) for field, values in zip(CANDIDATES_SCHEMA, columns, strict=True)],
        schema=CANDIDATES_SCHEMA,
    )


def _shown_path(uri: str) -> str:
    return to_local_path(uri) if uri.startswith("file:") else uri
