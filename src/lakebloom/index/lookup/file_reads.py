"""What to read of a table for a predicate: files and row groups that can match. Unindexed files are read in full."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import msgspec
import numpy as np
from msgspec.structs import replace

from lakebloom.errors import DataFileError, IndexStateError
from lakebloom.index.query.pruning import prune, resolver
from lakebloom.index.query.reader import candidates_in
from lakebloom.index.snapshot import Compared
from lakebloom.predicate.prune.shorten import Narrowing, long_lists
from lakebloom.predicate.tree import IsIn, Or
from lakebloom.tables.file_identity import is_same
from lakebloom.tables.listing.listing import look_again
from lakebloom.tables.parquet.pages.row_ranges import RowRanges
from lakebloom.tuning import OPEN_OBJECT_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa

    from lakebloom.index.snapshot import Snapshot
    from lakebloom.predicate.prune.prune import Pruned
    from lakebloom.predicate.tree import Literal as Value
    from lakebloom.predicate.tree import Predicate
    from lakebloom.store.page_table import RecordedAt
    from lakebloom.store.records import TableRecord
    from lakebloom.tables.columns import ColumnPath
    from lakebloom.tables.file_identity import TableFile
    from lakebloom.tables.parquet.rows import TableRows

Unindexed: TypeAlias = Literal["scan", "skip", "error"]


class Read(msgspec.Struct, frozen=True):
    """A read of a file."""

    file: TableFile
    row_groups: tuple[int, ...] | None
    """None: all of the file as it is by then."""
    rows: tuple[tuple[int, int], ...] | None = None
    """The rows of the file that can match, as (start, stop); None: all rows of the row groups."""
    shared: bool = False
    """Whether other tasks read the rest of the same file."""
    predicate: Predicate | None = None
    """A shorter predicate with the same result for these row groups; None: the predicate of the query."""
    pages: RecordedAt | None = None
    """Where the index says where pages of the file lie."""


def reads_of(
    snapshot: Snapshot,
    predicate: Predicate,
    listed: Sequence[TableFile],
    unindexed: Unindexed = "scan",
    told: list[Pruned] | None = None,
    table: TableRecord | None = None,
) -> list[Read]:
    """Return the reads of the files that a table has now, in the order of their URIs.

    ``table`` is the version of a table with a log. ``told`` gets what each part of the predicate did
    (``PrunedUnits.answers``).
    """
    unknown = unindexed_reads(snapshot.unknown(listed), unindexed)
    known = [
        read for read in candidate_reads(snapshot, predicate, told, table) if snapshot.is_listed(read.file, listed)
    ]
    return sorted([*known, *unknown], key=lambda read: read.file.uri)


def unindexed_reads(unknown: Sequence[TableFile], unindexed: Unindexed = "scan") -> list[Read]:
    """Return the reads of unindexed files. Raises IndexStateError."""
    if unknown and unindexed == "error":
        raise IndexStateError(
            f"{len(unknown)} files of the table are unindexed (new or changed)",
            found=unknown[0].uri,
            hint='refresh the index, or pass unindexed="scan" to read them in full',
        )
    return [Read(file, None) for file in unknown] if unindexed == "scan" else []


def candidate_reads(
    snapshot: Snapshot, predicate: Predicate, told: list[Pruned] | None = None, table: TableRecord | None = None
) -> list[Read]:
    """Return the reads of indexed files that can match. Their current state is not checked."""
    pruned = prune(snapshot, predicate, table=table)
    if told is not None:
        told += pruned.answers
    narrowing = Narrowing(resolver(snapshot, table), predicate) if long_lists(predicate) else None
    # Where units are files, their rows are all there are.
    has_ranges = snapshot.granularity != "file"
    groups: dict[TableFile, set[int]] = {}
    rows: dict[TableFile, list[tuple[int, int]]] = {}
    pages: dict[TableFile, RecordedAt] = {}
    shortened_of: dict[TableFile, list[Predicate]] = {}
    for segment, numbers in pruned.by_segment():
        candidates = candidates_in(segment, numbers)
        for candidate in candidates:
            groups.setdefault(candidate.file, set()).update(candidate.row_groups)
            if candidate.pages is not None:
                pages[candidate.file] = candidate.pages
            if has_ranges:
                stop = candidate.row_start + candidate.row_count
                rows.setdefault(candidate.file, []).append((candidate.row_start, stop))
        if narrowing is not None:
            for candidate, shortened in zip(candidates, narrowing.of_units(segment, numbers), strict=True):
                shortened_of.setdefault(candidate.file, []).append(shortened)
    return [
        Read(
            file,
            tuple(sorted(numbers)),
            tuple(rows[file]) if has_ranges else None,
            predicate=_any_of(shortened_of.get(file, [])),
            pages=pages.get(file),
        )
        for file, numbers in groups.items()
    ]


def _any_of(predicates: Sequence[Predicate]) -> Predicate | None:
    """Return a predicate that is TRUE where one of these is. Lists of one column become one, which is tested once."""
    if len(predicates) < 2:
        return predicates[0] if predicates else None
    lists: dict[ColumnPath, list[tuple[Value, ...]]] = {}
    parts: list[Predicate] = []
    for predicate in predicates:
        if isinstance(predicate, IsIn):
            lists.setdefault(predicate.column, []).append(predicate.values)
        else:
            parts.append(predicate)
    parts += [IsIn(column, tuple(chain.from_iterable(listed))) for column, listed in lists.items()]
    return parts[0] if len(parts) == 1 else Or(tuple(parts))


class FileShape(NamedTuple):
    """The size of an indexed file."""

    row_groups: int
    rows: int


def file_shapes(snapshot: Snapshot, reads: Sequence[Read]) -> dict[TableFile, FileShape]:
    """Return the number of row groups and rows of each indexed file that is read."""
    files = [read.file for read in reads if read.row_groups is not None]
    same = Compared(snapshot.files, files).matched.same
    shapes: dict[TableFile, FileShape] = {}
    for segment, chosen in zip(snapshot.segments, snapshot.units_of(same), strict=True):
        for unit in candidates_in(segment, np.flatnonzero(chosen)):
            before = shapes.get(unit.file, FileShape(0, 0))
            end = unit.row_start + unit.row_count
            shapes[unit.file] = FileShape(max(unit.row_groups.stop, before.row_groups), max(end, before.rows))
    return shapes


def packed(reads: Sequence[Read], shapes: Mapping[TableFile, FileShape], target_bytes: int) -> list[tuple[Read, ...]]:
    """Distribute reads over tasks of about this many bytes. Several tasks may read units of a large file."""
    tasks: list[tuple[Read, ...]] = []
    task: list[Read] = []
    size = 0.0
    parts = (part for read in reads for part in _cut(read, shapes.get(read.file), target_bytes))
    for part, part_bytes in parts:
        if task and size + part_bytes > target_bytes:
            tasks.append(tuple(task))
            task, size = [], 0.0
        task.append(part)
        size += part_bytes + OPEN_OBJECT_BYTES
    return [*tasks, tuple(task)] if task else tasks


def _cut(read: Read, shape: FileShape | None, target_bytes: int) -> Iterator[tuple[Read, float]]:
    if read.row_groups is None or shape is None or not shape.row_groups:
        yield read, float(read.file.size_bytes)
    elif read.rows is not None and sum(stop - start for start, stop in read.rows) < shape.rows:
        yield from _cut_rows(read, read.rows, read.file.size_bytes / shape.rows, target_bytes)
    else:  # all rows of the file: nothing is gained by pages
        yield from _cut_row_groups(replace(read, rows=None), read.row_groups, shape.row_groups, target_bytes)


def _cut_row_groups(read: Read, groups: tuple[int, ...], count: int, target_bytes: int) -> Iterator[tuple[Read, float]]:
    bytes_a_group = read.file.size_bytes / count
    at_once = max(1, int(target_bytes // max(bytes_a_group, 1)))
    for start in range(0, len(groups), at_once):
        part = groups[start : start + at_once]
        yield replace(read, row_groups=part, shared=len(part) < len(groups)), bytes_a_group * len(part)


def _cut_rows(
    read: Read, rows: tuple[tuple[int, int], ...], bytes_a_row: float, target_bytes: int
) -> Iterator[tuple[Read, float]]:
    """Yield some units at a time. Which of the row groups they are in is found out by who reads them."""
    part: list[tuple[int, int]] = []
    size = 0.0
    for start, stop in sorted(rows):
        unit_bytes = (stop - start) * bytes_a_row
        if part and size + unit_bytes > target_bytes:
            yield replace(read, rows=tuple(part), shared=True), size
            part, size = [], 0.0
        part.append((start, stop))
        size += unit_bytes
    if part:
        yield replace(read, rows=tuple(part), shared=len(part) < len(rows)), size


def batches_of(rows: TableRows, read: Read, schema: pa.Schema, options: Mapping[str, str]) -> Iterator[pa.RecordBatch]:
    """Yield the rows to read; all rows of a file that was replaced since it was listed.

    Raises DataFileError for a file that changes while it is read, or that was replaced when only a part of it is read
    here: other tasks may have read another version.
    """
    if read.row_groups is not None and not is_same(read.file, look_again(read.file, options)):
        if read.shared:
            raise _changed(read.file)
        read = replace(read, row_groups=None, rows=None)
    ranges = None if read.rows is None else RowRanges.of(read.rows)
    yield from rows.batches(read.file, read.row_groups, schema, ranges)
    if read.row_groups is not None:
        now = look_again(read.file, options)
        if now is not None and not is_same(read.file, now):
            raise _changed(read.file)


def _changed(file: TableFile) -> DataFileError:
    hint = "run the query again; if no one changes the file, machines see different inodes of it: raise partitionBytes"
    return DataFileError(f"{file.uri} changed while a query read it", hint=hint)
