"""Sums up what was found: for each file, for each run of versions, and for the newest version."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lakebloom.index.erasure.records import KeyFile, KeyVersions
from lakebloom.sbbf.values.plain_arrays import plain_array
from lakebloom.storage import to_local_path

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lakebloom.index.erasure.findings import Findings, Held
    from lakebloom.index.erasure.keys import Keys
    from lakebloom.tables.formats.table_history import TableRef
    from lakebloom.tables.parquet.pages.row_ranges import Numbers

__all__ = ["Summary", "matches_table"]

_NEVER = np.iinfo(np.int64).max


class Summary:
    """Counts of one search."""

    def __init__(self, found: Findings) -> None:
        self._found, self._history = found, found.history
        count = len(found.history.versions)
        self._newest = count - 1
        self._has_column = np.array([reading is not None for reading in found.readings], dtype=np.bool_)
        self._rows, self._hidden, self._files = (np.zeros(count + 1, dtype=np.int64) for _ in range(3))
        # 0: no file; _NEVER: a current file, or one of which that is not known.
        self._removable = np.zeros(count, dtype=np.int64)
        self._starts = np.zeros(count + 1, dtype=np.bool_)
        self._starts[0] = True
        self._starts[1:count] |= self._has_column[1:] != self._has_column[:-1]
        self._until = _removable(found)
        for held in found.held:
            self._add(held)
        for sums in (self._rows, self._hidden, self._files):
            np.cumsum(sums, out=sums)
        without = ~self._has_column
        self._hidden[:-1][without] += self._rows[:-1][without]
        self._rows[:-1][without] = 0

    def _add(self, held: Held) -> None:
        first, stop = held.file.first, held.file.last + 1
        live = int(np.count_nonzero(held.is_live))
        for sums, number in ((self._rows, live), (self._hidden, len(held.is_live) - live), (self._files, 1)):
            sums[first] += number
            sums[stop] -= number
        self._starts[[first, stop]] = True
        until = self._until[held.file.data_file.file.uri]
        part = self._removable[first:stop]
        np.maximum(part, _NEVER if until is None else until, out=part)

    @property
    def newest_rows(self) -> int:
        """Rows with keys that the newest version shows."""
        return int(self._rows[self._newest])

    @property
    def newest_hidden(self) -> int:
        """Rows with keys in files of the newest version that it does not show."""
        return int(self._hidden[self._newest])

    @property
    def newest_files(self) -> int:
        """Files of the newest version that hold keys, shown or not."""
        return int(self._files[self._newest])

    @property
    def newest_keys(self) -> Numbers:
        """The keys that the newest version shows."""
        shown = [held.matches.keys[held.is_live] for held in self._current] if self._has_column[-1] else []
        return np.concatenate([np.zeros(0, dtype=np.int64), *shown])

    @property
    def _current(self) -> list[Held]:
        return [held for held in self._found.held if held.file.last == self._newest]

    @property
    def holding(self) -> int:
        """How many versions hold keys. One may be there twice, with different columns."""
        return len({self._history.versions[place].version for place in np.flatnonzero(self._files[:-1]).tolist()})

    @property
    def orphans_ms(self) -> int | None:
        """When the youngest file of no version that holds keys was written; None if there is none."""
        found, states = self._found.leftovers, self._found.states
        return max((file.mtime_ms for file, _ in found if file.uri not in states), default=None)

    @property
    def refs(self) -> tuple[TableRef, ...]:
        """The branches and tags that keep a version that holds keys."""
        return self._refs(np.flatnonzero(self._files[:-1]).tolist())

    def _refs(self, places: Iterable[int]) -> tuple[TableRef, ...]:
        return tuple(sorted({ref for place in places for ref in self._history.versions[place].refs or ()}))

    def versions(self) -> list[KeyVersions]:
        """Return the versions that hold keys, the newest first; neighbours that have the same files are one record."""
        versions = self._history.versions
        starts = np.flatnonzero(self._starts[:-1]).tolist()
        found = []
        for first, stop in zip(starts, [*starts[1:], len(versions)], strict=True):
            if not self._files[first]:
                continue
            until = int(self._removable[first])
            found.append(
                KeyVersions(
                    versions[first].version,
                    versions[stop - 1].version,
                    versions[stop - 1].timestamp_ms,
                    stop == len(versions),
                    int(self._files[first]),
                    int(self._rows[first]),
                    int(self._hidden[first]),
                    None if until == _NEVER else until,
                    None if versions[first].refs is None else tuple(map(str, self._refs(range(first, stop)))),
                )
            )
        return found[::-1]

    def files(self) -> list[KeyFile]:
        """Return the files that hold keys: current ones first, then old ones, then those of no version."""
        spans: dict[str, list[Held]] = {}
        for held in self._found.held:
            spans.setdefault(held.file.data_file.file.uri, []).append(held)
        found = [self._file(uri, sorted(each, key=lambda held: held.file.last)) for uri, each in spans.items()]
        found += [
            KeyFile(_shown(file.uri), state, 0, len(keys), len(np.unique(keys)), None, None, None)
            for file, keys in self._found.leftovers
            for state in (self._found.states.get(file.uri, "unreferenced"),)
        ]
        order = ("current", "deletes", "old", "unreferenced")
        return sorted(found, key=lambda file: (order.index(file.state), file.path))

    def _file(self, uri: str, spans: list[Held]) -> KeyFile:
        last, versions = spans[-1], self._history.versions
        live = int(np.count_nonzero(last.is_live)) if self._has_column[last.file.last] else 0
        is_current = last.file.last == self._newest
        return KeyFile(
            path=_shown(uri),
            state="current" if is_current else "old",
            rows=live,
            rows_hidden=len(last.is_live) - live,
            keys=len(np.unique(last.matches.keys)),
            first_version=None if self._is_plain else versions[min(held.file.first for held in spans)].version,
            last_version=None if self._is_plain else versions[last.file.last].version,
            removable_ms=self._until[uri],
        )

    @property
    def _is_plain(self) -> bool:
        return self._found.table.record.snapshot is None


def _removable(found: Findings) -> dict[str, int | None]:
    """Return for each file from when on it may be removed: with other deletes it may still be part of the table."""
    newest = len(found.history.versions) - 1
    until: dict[str, int | None] = {}
    for held in found.held:
        uri = held.file.data_file.file.uri
        time_ms = None if held.file.last == newest else found.history.removable_ms(held.file)
        before = until.get(uri, time_ms)
        until[uri] = None if time_ms is None or before is None else max(before, time_ms)
    return until


def matches_table(found: Findings, keys: Keys) -> pa.Table:
    """Return the rows that the newest version shows: path, row_number, key."""
    newest = len(found.history.versions) - 1
    current = [held for held in found.held if held.file.last == newest and found.readings[-1] is not None]
    paths = [_shown(held.file.data_file.file.uri) for held in current]
    none = np.zeros(0, dtype=np.int64)
    counts = [int(np.count_nonzero(held.is_live)) for held in current]
    places = np.repeat(np.arange(len(current), dtype=np.int64), counts)
    rows = np.concatenate([none, *(held.matches.rows[held.is_live] for held in current)])
    numbers = np.concatenate([none, *(held.matches.keys[held.is_live] for held in current)])
    return pa.table(
        {
            "path": plain_array(paths, pa.string()).take(plain_array(places, pa.int64())),
            "row_number": plain_array(rows, pa.int64()),
            "key": keys.values.take(plain_array(numbers, pa.int64())),
        }
    )


def _shown(uri: str) -> str:
    return to_local_path(uri) if uri.startswith("file:") else uri
