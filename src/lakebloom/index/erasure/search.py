"""Which rows of files hold a key, deleted rows included: filters say where to look, and the rows themselves decide.

Only the key column is read: of files that the index knows the pages of units that can hold a key, of all other files
every page. What is read is compared by value, so a false positive costs time and nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from lakebloom.errors import DataFileError, LakebloomError, NotFoundError, StorageError
from lakebloom.index.erasure.keys import Matches
from lakebloom.index.lookup.file_reads import Read
from lakebloom.index.query.pruning import prune
from lakebloom.index.query.reader import candidates_in
from lakebloom.index.snapshot import Compared
from lakebloom.index.threads import CORES, pool
from lakebloom.tables.file_identity import is_same
from lakebloom.tables.formats.table_snapshot import DataFile
from lakebloom.tables.listing.listing import is_remote, look_again
from lakebloom.tables.parquet.pages.row_ranges import RowRanges
from lakebloom.tables.parquet.rows import TableRows, Wanted
from lakebloom.tuning import HOPELESS, PAGED_AT_ONCE, REQUESTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from lakebloom.index.current_table import CurrentTable
    from lakebloom.index.erasure.keys import Keys
    from lakebloom.index.snapshot import Snapshot
    from lakebloom.tables.columns import ColumnPath
    from lakebloom.tables.file_identity import TableFile
    from lakebloom.tables.parquet.open_file import OpenFile

__all__ = ["Evidence", "FileHits", "KeySearch"]

Evidence: TypeAlias = Literal["data", "index"]
"""What proves that a file does not hold a key: its rows, or also the filters of the index for this very file."""
_ATTEMPTS = 3


class FileHits(NamedTuple):
    """What was found in a file. One of ``matches`` and ``problem`` is there."""

    file: TableFile
    matches: Matches | None
    """None if the file could not be read."""
    is_gone: bool = False
    error: Exception | None = None
    problem: str = ""
    """The error as text, with the name of the file."""


class KeySearch:
    """Looks for keys in files of one version of a table, by the names and types that columns have in it."""

    def __init__(
        self,
        table: CurrentTable,
        column: ColumnPath,
        keys: Keys,
        options: Mapping[str, str],
        data_files: Mapping[str, DataFile] | None,
    ) -> None:
        """``data_files`` are the files to look in, by URI, for a table with a log."""
        record = table.record
        self._column, self._keys, self._options, self._table = column, keys, options, table
        # Without their deletes: a row that is marked as deleted is still in the file.
        physical = (
            None if data_files is None else {uri: each._replace(deletes=None) for uri, each in data_files.items()}
        )
        self._rows = TableRows(
            record.locations,
            record.schema,
            record.partition_columns,
            options,
            partition_values=table.values,
            logged=physical,
        )
        self._schema: pa.Schema = self._rows.schema_of([column[0]])

    def reads(self, snapshot: Snapshot | None, files: Sequence[TableFile]) -> list[Read]:
        """Return what to read of these files; all of them, whole, without an index."""
        if snapshot is None:
            return [Read(file, None) for file in files]
        compared = Compared(snapshot.files, files)
        logged = None if self._table.snapshot is None and self._table.record.snapshot is None else self._table.record
        pruned = prune(snapshot, self._keys.predicate(self._column), table=logged, hopeless=HOPELESS)
        groups: dict[TableFile, set[int]] = {}
        ranges: dict[TableFile, list[tuple[int, int]]] = {}
        for segment, numbers in pruned.by_segment():
            for candidate in candidates_in(segment, numbers):
                groups.setdefault(candidate.file, set()).update(candidate.row_groups)
                stop = candidate.row_start + candidate.row_count
                ranges.setdefault(candidate.file, []).append((candidate.row_start, stop))
        has_ranges = snapshot.granularity != "file"
        known = [
            Read(file, tuple(sorted(numbers)), tuple(ranges[file]) if has_ranges else None)
            for file, numbers in groups.items()
            if compared.has(file)
        ]
        return [*known, *(Read(file, None) for file in compared.unknown)]

    def run(self, reads: Sequence[Read]) -> Iterator[FileHits]:
        """Yield what is found in each file, in no particular order of files that hold nothing."""
        if len(reads) < 2:
            yield from map(self._of_file, reads)
            return
        threads = pool(REQUESTS if is_remote(reads[0].file.uri) else CORES)
        tasks = [threads.submit(self._of_file, read) for read in reads]
        try:
            for task in tasks:
                yield task.result()
        finally:
            for task in tasks:
                task.cancel()

    def _of_file(self, read: Read) -> FileHits:
        try:
            return FileHits(read.file, self._unchanged(read))
        except NotFoundError as error:
            return FileHits(read.file, None, is_gone=True, error=error, problem=_problem(read.file, error))
        except (LakebloomError, pa.ArrowException) as error:
            return FileHits(read.file, None, error=error, problem=_problem(read.file, error))

    def _unchanged(self, read: Read) -> Matches:
        """Return the matches of a file as it is when this returns: one that is replaced meanwhile is read again."""
        for _ in range(_ATTEMPTS):
            try:
                with self._rows.opened(read.file, self._schema, use_kept=False) as opened:
                    found = self._matches(opened, read)
                    if opened.is_unchanged(self._options):
                        return found
            except (DataFileError, StorageError, IndexError):  # the new file may not have these row groups
                if is_same(read.file, look_again(read.file, self._options)):
                    raise
            now = look_again(read.file, self._options)
            if now is None:
                raise NotFoundError(f"{read.file.uri} was removed while it was read")
            read = Read(now, None)
        raise DataFileError(f"{read.file.uri} changed again and again while it was read", hint="try again later")

    def _matches(self, opened: OpenFile, read: Read) -> Matches:
        groups = opened.row_groups if read.row_groups is None else read.row_groups
        starts = opened.footer.row_starts
        found: list[Matches] = []
        if read.rows is None:
            for group in groups:
                table = opened.read([group], self._schema, use_threads=False)
                matches = self._keys.among(table, self._column)
                found.append(Matches(matches.rows + starts[group], matches.keys))
        else:
            ranges = RowRanges.of(read.rows)
            for group in groups:
                for part in ranges.within(starts[group], starts[group + 1]).cut(PAGED_AT_ONCE):
                    (table,) = opened.read_ranges([Wanted(group, part)], self._schema, use_threads=False)
                    matches = self._keys.among(table, self._column)
                    found.append(Matches(part.row_numbers(matches.rows) + starts[group], matches.keys))
        none = np.zeros(0, dtype=np.int64)
        return Matches(
            np.concatenate([none, *(each.rows for each in found)]),
            np.concatenate([none, *(each.keys for each in found)]),
        )


def _problem(file: TableFile, error: Exception) -> str:
    text = str(error)
    return text if file.uri in text else f"{file.uri}: {text}"
