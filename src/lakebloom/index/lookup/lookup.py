"""Lookups: candidates from the index, rows from the files, checked against the predicate.

The result is that of a full scan. Files are listed, or watched since the last listing. Unindexed files are read in
full, and a candidate counts only for the file it was built from. The columns of the predicate are read first, and the
others only for rows that match.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, get_args

import numpy as np
import pyarrow as pa

import lakebloom.arrow_compute as pc
from lakebloom.errors import (
    CorruptIndexError,
    DataFileError,
    InvalidArgumentError,
    NotFoundError,
    StorageError,
)
from lakebloom.index.as_of import NEWEST
from lakebloom.index.current_table import table_at
from lakebloom.index.lookup.file_reads import Read, Unindexed, candidate_reads, reads_of, unindexed_reads
from lakebloom.index.lookup.lookup_table import ListedAhead, LookupTable
from lakebloom.index.query.reader import require_predicate
from lakebloom.index.threads import CORES, pool
from lakebloom.predicate.prune.row_groups import groups_that_can_match
from lakebloom.predicate.rows.evaluate import row_mask
from lakebloom.predicate.tree import columns as columns_of
from lakebloom.predicate.tree import renamed
from lakebloom.sbbf.hashing.buffers import numbers
from lakebloom.sbbf.values.plain_arrays import plain_array
from lakebloom.store.page_table import read_recorded
from lakebloom.tables.file_identity import is_same
from lakebloom.tables.listing.listing import is_remote, look_again
from lakebloom.tables.parquet.pages.locations import UnpagedError
from lakebloom.tables.parquet.pages.row_ranges import RowRanges
from lakebloom.tables.parquet.rows import TableRows, Wanted, rows_without_columns
from lakebloom.tuning import PAGED_AT_ONCE, REQUESTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from lakebloom.index.as_of import AsOf
    from lakebloom.index.current_table import CurrentTable
    from lakebloom.index.query.reader import Reader
    from lakebloom.index.snapshot import Snapshot
    from lakebloom.predicate.tree import Predicate
    from lakebloom.storage import Storage
    from lakebloom.store.page_table import RecordedAt
    from lakebloom.tables.file_identity import TableFile
    from lakebloom.tables.parquet.pages.row_ranges import Numbers
    from lakebloom.tables.parquet.rows import OpenFile

__all__ = ["Lookups", "Unindexed"]

_UNINDEXED = get_args(Unindexed)
_ATTEMPTS = 5
"""How many versions are tried if files of each are missing."""


class Lookups:
    """Looks up rows in the table of one index. Keeps facts about the table between lookups."""

    def __init__(self, reader: Reader, current: Callable[[Snapshot], CurrentTable] | None = None) -> None:
        """``current`` returns the table of a version as it is now."""
        self._reader = reader
        self._current = current or reader.recorded_table
        self._options = reader.options
        self._table: LookupTable | None = None

    def rows(
        self,
        predicate: Predicate,
        columns: Sequence[str] | None,
        limit: int | None,
        unindexed: Unindexed,
        as_of: AsOf = NEWEST,
    ) -> pa.Table:
        """Return the rows for which the predicate is TRUE, in the newest version of the table or in another one."""
        require_predicate(predicate)
        if unindexed not in _UNINDEXED:
            raise InvalidArgumentError('unindexed must be "scan", "skip" or "error"', found=unindexed)
        if limit is not None and limit < 0:
            raise InvalidArgumentError("limit must not be negative", found=limit)
        ahead = self._list_ahead(unindexed, as_of)
        return self._reader.with_newest(
            lambda snapshot: self._of_version(snapshot, as_of, predicate, columns, limit, unindexed, ahead)
        )

    def _list_ahead(self, unindexed: Unindexed, as_of: AsOf) -> ListedAhead | None:
        """Begin to list an object store's table, while the newest version of the index is read."""
        table = self._table
        if table is None or not table.lists_objects or unindexed == "skip" or as_of != NEWEST:
            return None
        return ListedAhead(table)

    def _of_version(
        self,
        snapshot: Snapshot,
        as_of: AsOf,
        predicate: Predicate,
        columns: Sequence[str] | None,
        limit: int | None,
        unindexed: Unindexed,
        ahead: ListedAhead | None,
    ) -> pa.Table:
        """Return the rows; of the next version of a table with a log, if a file was vacuumed meanwhile."""
        failed = 0
        while True:
            current = table_at(snapshot, self._options, as_of, self._current)
            try:
                return self._rows(snapshot, current, predicate, columns, limit, unindexed, ahead)
            except NotFoundError:
                failed += 1  # a file that is lost is missing in each version that a writer adds, too
                if current.snapshot is None or as_of != NEWEST or failed == _ATTEMPTS:
                    raise
                if self._current(snapshot) == current:
                    raise

    def _rows(
        self,
        snapshot: Snapshot,
        current: CurrentTable,
        predicate: Predicate,
        columns: Sequence[str] | None,
        limit: int | None,
        unindexed: Unindexed,
        ahead: ListedAhead | None,
    ) -> pa.Table:
        table = self._table_of(current)
        files = table.files if ahead is None or ahead.table is not table else ahead.files
        predicate = renamed(predicate, table.rows.names.require)
        output = table.rows.schema_of(table.rows.chosen(columns))
        reads = self._reads(snapshot, table, predicate, unindexed, files)
        if not reads:
            # Not schema.empty_table(), which loads pandas if it is installed.
            return pa.Table.from_batches([], schema=output) if output.names else rows_without_columns(0)
        search = _Search(table.rows, predicate, output, self._options, unindexed, snapshot.storage)
        parts, found = [], 0
        for part in search.run(reads):
            parts.append(part)
            found += part.num_rows
            if limit is not None and found >= limit:
                break
        if not output.names:  # tables without columns lose their rows in concat_tables
            return rows_without_columns(found if limit is None else min(found, limit))
        whole = pa.concat_tables(parts) if parts else pa.Table.from_batches([], schema=output)
        return whole if limit is None else whole.slice(0, limit)

    def _reads(
        self,
        snapshot: Snapshot,
        table: LookupTable,
        predicate: Predicate,
        unindexed: Unindexed,
        files: Callable[[], Sequence[TableFile]],
    ) -> list[Read]:
        """Return what to read, in the order of the files' URIs."""
        keys = table.keys(snapshot)
        if keys is None:
            return unindexed_reads(files(), unindexed)
        if unindexed == "skip":
            table.current.require_plain(self._options)
            candidates = candidate_reads(snapshot, predicate, table=table.logged)
            reads = [read for read in candidates if table.may_hold(read.file)]
            return sorted(reads, key=lambda read: read.file.uri)
        listed = files()
        if keys.is_nowhere(predicate):
            reads = unindexed_reads(snapshot.unknown(listed), unindexed)
            return sorted(reads, key=lambda read: read.file.uri) if reads else reads
        return reads_of(snapshot, predicate, listed, unindexed, table=table.logged)

    def _table_of(self, current: CurrentTable) -> LookupTable:
        table = self._table  # other threads may change it
        if table is None or (table.current is not current and table.current != current):
            self._table = table = LookupTable(current, self._options, table)
        return table


class _Search:
    """Searches the rows of some files."""

    def __init__(
        self,
        rows: TableRows,
        predicate: Predicate,
        output: pa.Schema,
        options: Mapping[str, str],
        unindexed: Unindexed,
        storage: Storage,
    ) -> None:
        """``output`` are the columns to return; ``storage`` is that of the index."""
        self._rows, self._predicate, self._options, self._unindexed = rows, predicate, options, unindexed
        self._storage = storage
        self._output = output
        self._tested = rows.schema_of(dict.fromkeys(path[0] for path in columns_of(predicate)))
        self._tested_names = frozenset(self._tested.names)
        self._others = rows.schema_of(name for name in output.names if name not in self._tested_names)
        self._read = rows.schema_of([*self._tested.names, *self._others.names])

    def run(self, reads: Sequence[Read]) -> Iterator[pa.Table]:
        """Yield the matching rows of each file that has any, in the order of the reads."""
        if len(reads) > 1:
            threads = pool(REQUESTS if is_remote(reads[0].file.uri) else CORES)
            tasks = [threads.submit(self._of_file, read, False) for read in reads]
            try:
                for task in tasks:
                    yield from task.result()
            finally:  # also if the caller stops early
                for task in tasks:
                    task.cancel()
        else:
            for read in reads:
                yield from self._of_file(read, True)

    def _of_file(self, read: Read, use_threads: bool) -> list[pa.Table]:
        """Return the matching rows of a file as it is now, even if its row groups in the index are outdated."""
        if read.row_groups is not None:
            found = self._unless_changed(read, use_threads)
            if found is not None or self._unindexed == "skip":
                return found or []
        now = look_again(read.file, self._options) or read.file
        groups = groups_that_can_match(now, self._predicate, self._rows.types) if self._rows.named_as_in_files else None
        found = None if groups is None else self._unless_changed(Read(now, groups), use_threads)
        if found is not None:
            return found
        # The file may have been replaced, and a cached footer may not belong to it.
        with self._rows.opened(now, self._tested, use_kept=False) as opened:
            return self._of_groups(opened, opened.row_groups, self._predicate, use_threads)

    def _unless_changed(self, read: Read, use_threads: bool) -> list[pa.Table] | None:
        """Return the matching rows; None if the file was replaced, because then its row groups are others."""
        predicate = self._predicate if read.predicate is None else read.predicate
        try:
            with self._rows.opened(read.file, self._tested) as opened:
                if read.pages is not None:
                    opened.footer.pages.load_recorded = partial(_recorded, self._storage, read.pages)
                if read.rows is None:
                    found = self._of_groups(opened, read.row_groups or (), predicate, use_threads)
                else:
                    found = self._of_ranges(opened, read.row_groups or (), read.rows, predicate, use_threads)
        except (DataFileError, StorageError, IndexError):  # the new file may not have these row groups
            if not is_same(read.file, look_again(read.file, self._options)):
                return None
            if not self._rows.forget_footer(read.file):
                raise
            # A log says nothing of an object that was written again, and what was kept of it is of no use any more.
            return self._unless_changed(read, use_threads)
        if not opened.is_unchanged(self._options):
            return None
        self._rows.keep_footer(opened)
        return found

    def _of_groups(
        self, opened: OpenFile, row_groups: Iterable[int], predicate: Predicate, use_threads: bool
    ) -> list[pa.Table]:
        """Return the matching rows of whole row groups, with the memory of one at a time."""
        found = []
        for group in row_groups:
            tested = opened.read([group], self._tested, use_threads=use_threads)
            positions = opened.live.among(group, self._matches(predicate, tested))
            if len(positions):
                others = opened.take(group, positions, self._others, use_threads=use_threads)
                found.append(self._joined(pc.take(tested, plain_array(positions, pa.int64())), others))
        return found

    def _of_ranges(
        self,
        opened: OpenFile,
        row_groups: Sequence[int],
        rows: Sequence[tuple[int, int]],
        predicate: Predicate,
        use_threads: bool,
    ) -> list[pa.Table]:
        """Return the matching rows among some rows of the file: of each step all pages are read at once."""
        ranges, starts = RowRanges.of(rows), opened.footer.row_starts
        wanted = [Wanted(group, ranges.within(starts[group], starts[group + 1])) for group in row_groups]
        opened.expect(row_groups, self._read)
        found = []
        for batch in _batches(wanted):
            matches, taken = [], []
            for each, tested in zip(
                batch, opened.read_ranges(batch, self._tested, use_threads=use_threads), strict=True
            ):
                positions = self._matches(predicate, tested)
                numbers_in_group = each.rows.row_numbers(positions)
                live = opened.live.mask(each.row_group, numbers_in_group)
                if live is not None:
                    positions, numbers_in_group = positions[live], numbers_in_group[live]
                if len(positions):
                    matches.append((each.row_group, numbers_in_group))
                    taken.append(pc.take(tested, plain_array(positions, pa.int64())))
            others = opened.take_rows(matches, self._others, use_threads=use_threads)
            found += [self._joined(*pair) for pair in zip(taken, others, strict=True)]
        return found

    def _matches(self, predicate: Predicate, tested: pa.Table) -> Numbers:
        """Return the positions of the rows that match."""
        if not tested.num_rows:  # older versions of Arrow crash on a table without chunks
            return np.zeros(0, dtype=np.int64)
        return numbers(pc.indices_nonzero(row_mask(predicate, tested, self._rows.types)), 8)

    def _joined(self, tested: pa.Table, others: pa.Table) -> pa.Table:
        if not self._output.names:
            return rows_without_columns(tested.num_rows)
        columns = [(tested if name in self._tested_names else others)[name] for name in self._output.names]
        return pa.table(columns, schema=self._output)


def _batches(wanted: Sequence[Wanted]) -> Iterator[list[Wanted]]:
    """Yield row groups with so few rows to read that their pages fit into memory together."""
    batch: list[Wanted] = []
    rows = 0
    for each in wanted:
        if batch and rows + each.rows.num_rows > PAGED_AT_ONCE:
            yield batch
            batch, rows = [], 0
        batch.append(each)
        rows += each.rows.num_rows
    if batch:
        yield batch


def _recorded(storage: Storage, at: RecordedAt) -> bytes:
    """Return what an index recorded of a file's pages. Raises UnpagedError: then row groups are read."""
    try:
        return read_recorded(storage, at)
    except (CorruptIndexError, StorageError) as error:
        raise UnpagedError("unreadable page locations in the index") from error
