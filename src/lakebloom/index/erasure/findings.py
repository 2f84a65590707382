"""Finds the rows of some keys in every retained version of a table.

A physical file is read once, however many versions have it. Which of its rows a version shows is then said by the
deletes of the file in that version.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from lakebloom.errors import DataFileError, LakebloomError, NotFoundError, StorageError
from lakebloom.index.erasure.leftovers import Leftovers, leftovers_of
from lakebloom.index.erasure.retained import readings_of, retained_history
from lakebloom.index.erasure.search import KeySearch
from lakebloom.tables.columns import format_name
from lakebloom.tables.formats.table_snapshot import DataFile
from lakebloom.tables.listing.glob import fixed_part
from lakebloom.tables.listing.partitions import partition_names, partition_values

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
    """Files that no version has as data, and the keys that their rows hold."""
    states: dict[str, str] = field(default_factory=dict)
    """Which of these are files of deletes, by URI."""
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
    by_reading, outside = _by_reading(history, readings)
    spans: dict[str, list[RetainedFile]] = {}
    for file in history.files:
        spans.setdefault(file.data_file.file.uri, []).append(file)
    found.files = len(spans)
    leftovers = leftovers_of(table, spans.keys(), options) if with_leftovers else Leftovers([], {}, [])
    found.leftover_files, found.states = len(leftovers.files), leftovers.states
    found.problems.extend(leftovers.problems)
    newest = len(history.versions) - 1
    is_iceberg = table.record.snapshot is not None and table.record.snapshot.format == "iceberg"
    newest_place = max((reading.place for reading in distinct), default=None)
    if newest_place is None:
        found.problems.append(f"no retained version has the column {format_name(column.path)}: nothing was read")
    for reading in distinct:
        extra = leftovers.files if reading.place == newest_place else []
        named, unnamed = _by_directory(reading, extra)
        certain = _search(found, reading, keys, options, index, by_reading.get(reading.place, {}), named)
        loose = _search(found, reading.in_files(), keys, options, None, outside.get(reading.place, {}), unnamed)
        for is_loose, hits_of_files in ((False, certain), (True, loose)):
            for hits in hits_of_files:
                known = spans.get(hits.file.uri)
                if known is None:
                    _note_leftover(found, hits)
                else:
                    is_current = any(span.last == newest for span in known)
                    _note(found, hits, known, options, is_current=is_current, is_loose=is_loose)
        if extra and is_iceberg:
            _search_copies(found, reading.in_copies(), keys, options, extra)
    return found


_FilesByReading: TypeAlias = "dict[int, dict[str, DataFile]]"
"""Files by the ways to read them, which are named by their places."""


def _by_reading(history: TableHistory, readings: list[ColumnReading | None]) -> tuple[_FilesByReading, _FilesByReading]:
    """Return the files by the newest way of reading that a version with the file has; and those of other versions.

    A file that only versions without the column have may still hold it. It is read as the nearest version before them
    reads the column, or else as the first one after them.
    """
    last_with, last = [], -1
    for place, reading in enumerate(readings):
        last = last if reading is None else place
        last_with.append(last)
    first_with = next((place for place, reading in enumerate(readings) if reading is not None), -1)
    if first_with < 0:
        return {}, {}
    inside: dict[str, tuple[int, DataFile]] = {}
    outside: dict[str, tuple[int, DataFile]] = {}
    for file in history.files:
        place = last_with[file.last]
        chosen = inside if place >= file.first else outside
        uri = file.data_file.file.uri
        if place > chosen.get(uri, (-2,))[0]:
            chosen[uri] = place, file.data_file
    alone = {uri: (max(place, first_with), each) for uri, (place, each) in outside.items() if uri not in inside}
    return _grouped(inside, readings), _grouped(alone, readings)


def _grouped(chosen: dict[str, tuple[int, DataFile]], readings: list[ColumnReading | None]) -> _FilesByReading:
    found: _FilesByReading = {}
    for uri, (place, data_file) in chosen.items():
        reading = readings[place]
        assert reading is not None
        found.setdefault(reading.place, {})[uri] = data_file
    return found


def _by_directory(reading: ColumnReading, files: list[DataFile]) -> tuple[list[DataFile], list[DataFile]]:
    """Return the leftovers whose directory names the value of the column, as Delta's may, and all others.

    The others have no values but those in them: which an Iceberg file has besides, only its manifest says.
    """
    record, name = reading.table.record, reading.path[0]
    if record.snapshot is None or record.snapshot.format != "delta" or name not in record.partition_columns:
        return [], files
    physical = record.schema.physical[name,].path[0]
    root = [fixed_part(record.locations[0])]
    named, unnamed = [], []
    for each in files:
        known = partition_names(each.file.uri, root)
        written = next((one for one in known if one.lower() in (physical.lower(), name.lower())), None)
        if written is None:
            unnamed.append(each)
        else:
            value = partition_values(each.file.uri, root, [written])[written]
            named.append(DataFile(each.file, ((physical, value),)))
    return named, unnamed


def _search(
    found: Findings,
    reading: ColumnReading,
    keys: Keys,
    options: Mapping[str, str],
    index: Snapshot | None,
    data_files: Mapping[str, DataFile],
    extra: list[DataFile],
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
    known = {**data_files, **{each.file.uri: each for each in extra}} if is_logged else None
    search = KeySearch(reading.table, reading.path, in_type, options, known)
    reads = search.reads(index, sorted(each.file for each in data_files.values())) + search.reads(
        None, [each.file for each in extra]
    )
    found.files_read += len(reads)
    yield from search.run(reads)


def _search_copies(
    found: Findings, reading: ColumnReading, keys: Keys, options: Mapping[str, str], extra: list[DataFile]
) -> None:
    """Look for the copies of rows that files of position deletes may hold. The files are counted already."""
    in_type = keys.converted(reading.kind)
    if in_type is None:
        return  # which is noted already
    known = {each.file.uri: each for each in extra}
    search = KeySearch(reading.table, reading.path, in_type, options, known)
    for hits in search.run(search.reads(None, [each.file for each in extra])):
        if hits.matches is not None and len(hits.matches.rows):
            found.leftovers.append((hits.file, hits.matches.keys))
        elif hits.matches is None and not hits.is_gone and hits.problem not in found.problems:
            found.problems.append(hits.problem)


def _note(
    found: Findings,
    hits: FileHits,
    spans: list[RetainedFile],
    options: Mapping[str, str],
    *,
    is_current: bool,
    is_loose: bool,
) -> None:
    """``is_loose`` is said of a file that no version with the column has: nobody else reads the column there."""
    if hits.matches is None:
        if is_current and (hits.is_gone or not is_loose):
            if not isinstance(hits.error, (DataFileError, StorageError)) and hits.error is not None:
                raise hits.error
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
