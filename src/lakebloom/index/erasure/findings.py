"""Finds the rows of some keys in every retained version of a table.

A physical file is read once, however many versions have it. Which of its rows a version shows is then said by the
deletes of the file in that version.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lakebloom.errors import DataFileError, LakebloomError, NotFoundError
from lakebloom.index.erasure.retained import readings_of, retained_history, unreferenced_files
from lakebloom.index.erasure.search import KeySearch
from lakebloom.tables.columns import format_name
from lakebloom.tables.formats.table_snapshot import DataFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from lakebloom.index.current_table import CurrentTable
    from lakebloom.index.erasure.keys import Keys, Matches
    from lakebloom.index.erasure.retained import ColumnReading
    from lakebloom.index.erasure.search import FileHits
    from lakebloom.index.snapshot import Snapshot
    from lakebloom.store.records import ColumnRecord
    from lakebloom.tables.file_identity import TableFile
    from lakebloom.tables.formats.table_history import RetainedFile, TableHistory
    from lakebloom.tables.parquet.pages.row_ranges import Numbers

__all__ = ["Findings", "Held", "find"]


class Held(NamedTuple):
    """A file of some versions that holds keys."""

    file: RetainedFile
    matches: Matches
    is_live: np.ndarray[tuple[int], np.dtype[np.bool_]]
    """For each match whether the row counts in these versions."""


@dataclass(slots=True)
class Findings:
    """What was found."""

    table: CurrentTable
    history: TableHistory
    readings: list[ColumnReading | None]
    """For each version how it has the column; None where it does not."""
    held: list[Held] = field(default_factory=list)
    leftovers: list[tuple[TableFile, Numbers]] = field(default_factory=list)
    """Files that no version has, and the keys that their rows hold."""
    files: int = 0
    files_read: int = 0
    files_gone: int = 0
    leftover_files: int = 0
    problems: list[str] = field(default_factory=list)
    """What could not be read or compared: nothing is known about it."""


def find(
    table: CurrentTable,
    column: ColumnRecord,
    keys: Keys,
    options: Mapping[str, str],
    *,
    index: Snapshot | None,
    with_leftovers: bool,
) -> Findings:
    """Look for keys in all that is kept of a table. Without an index every file is read.

    Raises the errors of reading the files of the newest version. What cannot be read of older versions is a problem in
    the result. Files that are gone hold nothing.
    """
    history = retained_history(table, options)
    readings, distinct = readings_of(table, history, column)
    found = Findings(table, history, readings)
    by_reading = _by_reading(history, readings)
    spans: dict[str, list[RetainedFile]] = {}
    for file in history.files:
        spans.setdefault(file.data_file.file.uri, []).append(file)
    found.files = len(spans)
    leftovers = unreferenced_files(table, spans.keys(), options) if with_leftovers else []
    found.leftover_files = len(leftovers)
    newest = len(history.versions) - 1
    newest_place = max((reading.place for reading in distinct), default=None)
    if newest_place is None:
        found.problems.append(f"no retained version has the column {format_name(column.path)}: nothing was read")
    for reading in distinct:
        data_files = by_reading.get(reading.place, {})
        extra = leftovers if reading.place == newest_place else []
        for hits in _search(found, reading, keys, options, index, data_files, extra):
            if hits.file.uri in data_files:
                is_current = any(span.last == newest for span in spans[hits.file.uri])
                _note(found, hits, spans[hits.file.uri], options, is_current=is_current)
            else:
                _note_leftover(found, hits)
    return found


def _by_reading(history: TableHistory, readings: list[ColumnReading | None]) -> dict[int, dict[str, DataFile]]:
    """Return the files to read by each way of reading, which is named by its place: the newest that a file has."""
    last_with, last = [], -1
    for place, reading in enumerate(readings):
        last = last if reading is None else place
        last_with.append(last)
    chosen: dict[str, tuple[int, DataFile]] = {}
    for file in history.files:
        place = last_with[file.last]
        uri = file.data_file.file.uri
        if place >= file.first and place > chosen.get(uri, (-1,))[0]:
            chosen[uri] = place, file.data_file
    found: dict[int, dict[str, DataFile]] = {}
    for uri, (place, data_file) in chosen.items():
        reading = readings[place]
        assert reading is not None
        found.setdefault(reading.place, {})[uri] = data_file
    return found


def _search(
    found: Findings,
    reading: ColumnReading,
    keys: Keys,
    options: Mapping[str, str],
    index: Snapshot | None,
    data_files: Mapping[str, DataFile],
    extra: list[TableFile],
) -> Iterator[FileHits]:
    """Yield what the files of one way of reading hold."""
    if not data_files and not extra:
        return
    in_type = keys.converted(reading.kind)
    if in_type is None:
        found.problems.append(
            f"{len(data_files) + len(extra):,} files are not compared: in version "
            f"{found.history.versions[reading.place].version} the column {format_name(reading.path)} has the type "
            f"{reading.kind}, and keys of the type {keys.kind} do not convert to it"
        )
        return
    is_logged = reading.table.record.snapshot is not None
    known = {**data_files, **{file.uri: DataFile(file) for file in extra}} if is_logged else None
    search = KeySearch(reading.table, reading.path, in_type, options, known)
    reads = search.reads(index, sorted(each.file for each in data_files.values())) + search.reads(None, extra)
    found.files_read += len(reads)
    yield from search.run(reads)


def _note(
    found: Findings, hits: FileHits, spans: list[RetainedFile], options: Mapping[str, str], *, is_current: bool
) -> None:
    if hits.matches is None:
        if is_current:
            raise (NotFoundError if hits.is_gone else DataFileError)(
                f"a file of the newest version cannot be read: {hits.file.uri}", found=hits.problem
            )
        found.files_gone += hits.is_gone
        if not hits.is_gone:
            found.problems.append(hits.problem)
        return
    if not len(hits.matches.rows):
        return
    for span in spans:
        deletes = span.data_file.deletes
        is_live = np.ones(len(hits.matches.rows), dtype=np.bool_)
        if deletes is not None:
            try:
                is_live = ~deletes.open(options).deleted(hits.matches.rows)
            except LakebloomError as error:
                if span.last == len(found.history.versions) - 1:
                    raise
                found.problems.append(str(error))  # the rows count as held
        found.held.append(Held(span, hits.matches, is_live))


def _note_leftover(found: Findings, hits: FileHits) -> None:
    if hits.matches is None:
        found.leftover_files -= hits.is_gone
        if not hits.is_gone:
            found.problems.append(hits.problem)
    elif len(hits.matches.rows):
        found.leftovers.append((hits.file, hits.matches.keys))
