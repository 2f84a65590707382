"""An index open for queries, and the units that can match as candidates that other engines read."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pyarrow as pa

import lakebloom.arrow_compute as pc
from lakebloom.errors import CorruptIndexError, InvalidArgumentError, StorageError
from lakebloom.index.current_table import recorded_table
from lakebloom.index.query.pruning import prune
from lakebloom.index.snapshot import Snapshot
from lakebloom.predicate.tree import Node, renamed
from lakebloom.sbbf.distinct import distinct_numbers
from lakebloom.sbbf.values.plain_arrays import plain_array
from lakebloom.storage import to_local_path
from lakebloom.storage.metered import Metered
from lakebloom.tables.file_columns import whole_numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeVar

    from lakebloom.index.catalog import Index
    from lakebloom.index.current_table import CurrentTable
    from lakebloom.predicate.prune.unit_filters import IntArray
    from lakebloom.predicate.tree import Predicate
    from lakebloom.store.page_table import RecordedAt
    from lakebloom.store.segments import Segment
    from lakebloom.tables.file_identity import TableFile

    ResultT = TypeVar("ResultT")

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
    pages: RecordedAt | None = None
    """Where the index says where pages of the file lie."""


class Reader:
    """An index open for queries. Keeps what it has read of a version, and notices new versions."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._storage = Metered(index.storage)
        self._snapshot: Snapshot | None = None

    def snapshot(self) -> Snapshot:
        """Return the newest version."""
        commit = self._index.active()
        known = self._snapshot  # other threads may change it
        if known is None or known.commit is not commit:
            self._snapshot = known = Snapshot(self._storage, commit, known)
        return known

    def with_newest(self, query: Callable[[Snapshot], ResultT]) -> ResultT:
        """Run a query on the newest version; on its successor if it is vacuumed meanwhile."""
        while True:
            snapshot = self.snapshot()
            try:
                return query(snapshot)
            except CorruptIndexError:
                self._snapshot = None
                self._index.log.forget()
                if self.snapshot().commit == snapshot.commit:
                    raise

    @property
    def options(self) -> Mapping[str, str]:
        """Those of the object store of the index and its table."""
        return self._index.options

    def recorded_table(self, snapshot: Snapshot) -> CurrentTable:
        """Return the table as the last build or refresh found it; one with a log as its log describes it now."""
        return recorded_table(snapshot, self.options)

    def candidates(self, predicate: Predicate, current: Callable[[Snapshot], CurrentTable] | None = None) -> pa.Table:
        """Return the units that can match of files that the table may have now, by their names: CANDIDATES_SCHEMA.

        ``current`` returns the table of a version. Raises UnsupportedSourceError for a table that is no longer one of
        plain files.
        """
        require_predicate(predicate)

        def found(snapshot: Snapshot) -> pa.Table:
            table = (current or self.recorded_table)(snapshot)
            table.require_plain(self.options)
            names = snapshot.names if table.snapshot is None else table.record.schema.names
            kept = prune(snapshot, renamed(predicate, names.require), table=table.record)
            may_hold = None if table.holds_all else table.may_hold
            batches = [_candidate_rows(segment, numbers, may_hold) for segment, numbers in kept.by_segment()]
            return pa.Table.from_batches(batches, CANDIDATES_SCHEMA)

        return self.with_newest(found)


def require_predicate(predicate: object) -> None:
    """Raise InvalidArgumentError for anything but a predicate."""
    if not isinstance(predicate, Node):
        raise InvalidArgumentError(
            "a predicate must be made with col, or be SQL text",
            found=predicate,
            hint='for example col("user_id") == 42, or "user_id = 42"',
        )


def candidates_in(segment: Segment, numbers: IntArray) -> list[Candidate]:
    """Return units of a segment by their numbers."""
    names = ("row_start", "row_count", "row_group_start", "row_group_count")
    columns = [column.tolist() for column in segment.units.rows(names, numbers)]
    distinct, places = distinct_numbers(segment.units.files.of_units(numbers))
    files = segment.units.files.rows(distinct)
    pages = _recorded_pages(segment, distinct)
    return [
        Candidate(files[file], row_start, row_count, range(first, first + count), pages[file])
        for file, row_start, row_count, first, count in zip(places.tolist(), *columns, strict=True)
    ]


def _recorded_pages(segment: Segment, files: IntArray) -> list[RecordedAt | None]:
    """Return where the locations of pages are; those that cannot be read are as good as none."""
    if segment.pages is not None:
        with suppress(CorruptIndexError, StorageError):
            return segment.pages.at(files)
    return [None] * len(files)


def _candidate_rows(segment: Segment, numbers: IntArray, may_hold: Callable[[str], bool] | None) -> pa.RecordBatch:
    """Return units of a segment by their numbers, but for those in files that the table cannot have."""
    distinct, places = distinct_numbers(segment.units.files.of_units(numbers))
    uris = segment.units.files.uris(distinct)
    if may_hold is not None:
        here = np.fromiter(map(may_hold, uris), np.bool_, len(uris))[places]
        numbers, places = numbers[here], places[here]
    names = ("row_start", "row_count", "row_group_start", "row_group_count")
    row_starts, row_counts, firsts, counts = segment.units.rows(names, numbers)
    ends = np.cumsum(np.append(0, counts))
    groups = np.arange(ends[-1]) + np.repeat(firsts - ends[:-1], counts)
    # Not with pa.array, which loads pandas if it is installed: that takes longer than the query.
    paths = plain_array([_shown_path(uri) for uri in uris], pa.string())
    columns = [
        pc.take(paths, whole_numbers(places)),
        whole_numbers(row_starts),
        whole_numbers(row_counts),
        pa.ListArray.from_arrays(plain_array(ends, pa.int32()), plain_array(groups, pa.int32())),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=CANDIDATES_SCHEMA)


def _shown_path(uri: str) -> str:
    return to_local_path(uri) if uri.startswith("file:") else uri
