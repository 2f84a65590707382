"""Finds many known files in a listing of a table, and tells which of them are the same.

Both are sorted by URI as a rule, so a run of known files is found where its first file is listed. What is not in order
is looked up by URI. Files are compared by what both sides know, as ``file_identity.is_same`` does.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

import lakebloom.arrow_compute as pc
from lakebloom.sbbf.hashing.buffers import numbers_or
from lakebloom.tables.file_columns import FileColumns
from lakebloom.tables.file_list import FileList

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from lakebloom.tables.file_identity import TableFile

    BoolArray = np.ndarray[Any, np.dtype[np.bool_]]
    IntArray = np.ndarray[Any, np.dtype[np.int64]]

__all__ = ["ABSENT", "Listing", "Matched"]

ABSENT = -1
_NARROW = 4
"""Known files are looked up in a part of a listing, if that is not more than so many times their number."""


class Matched(NamedTuple):
    """Known files, found in a listing."""

    places: IntArray
    """Where each known file is listed, by its URI; ABSENT if it is not."""
    same: BoolArray
    """Whether it is listed as it is known."""


class Listing:
    """Files as they are listed, in any order, each URI once."""

    def __init__(self, columns: FileColumns) -> None:
        self._columns = columns
        texts = columns.uris
        self._is_sorted = len(texts) < 2 or bool(pc.all(pc.less(texts[:-1], texts[1:])).as_py())

    @classmethod
    def of(cls, files: Sequence[TableFile]) -> Listing:
        """Return these files as a listing."""
        return cls(files.columns if isinstance(files, FileList) else FileColumns.of(files))

    def match(self, known: Iterable[FileColumns], num_known: int) -> Matched:
        """Find known files, given in runs, ``num_known`` in all."""
        places = np.full(num_known, ABSENT, dtype=np.int64)
        same = np.zeros(num_known, dtype=np.bool_)
        rest: list[tuple[int, FileColumns]] = []
        start = 0
        for run in known:
            stop = start + run.num_rows
            found = self._nearby(run)
            if found is None:
                rest.append((start, run))
            else:
                places[start:stop] = found
                same[start:stop] = self._same(run, found)
            start = stop
        if rest:
            looked_up = self._looked_up(pa.chunked_array([run.uris for _, run in rest]), 0, self._columns.num_rows)
            done = 0
            for start, run in rest:
                found = looked_up[done : done + run.num_rows]
                done += run.num_rows
                places[start : start + run.num_rows] = found
                same[start : start + run.num_rows] = self._same(run, found)
        return Matched(places, same)

    def _nearby(self, run: FileColumns) -> IntArray | None:
        """Return the places of a run, if the listing is in order and has its files close together."""
        if not run.num_rows or not self._columns.num_rows:
            return np.full(run.num_rows, ABSENT, dtype=np.int64)
        if not self._is_sorted:
            return None
        first = self._place(bisect_left, run.uris[0].as_py())
        if self._columns.uris.slice(first, run.num_rows).equals(run.uris):
            return np.arange(first, first + run.num_rows)
        ends = pc.min_max(run.uris).as_py()
        low, high = self._place(bisect_left, ends["min"]), self._place(bisect_right, ends["max"])
        return self._looked_up(run.uris, low, high) if high - low <= _NARROW * run.num_rows else None

    def _place(self, bisect: Callable[..., int], uri: str) -> int:
        """Return where a URI is or would be in a listing that is in order."""
        return bisect(range(self._columns.num_rows), uri, key=lambda row: self._columns.uris[row].as_py())

    def _looked_up(self, uris: pa.Array | pa.ChunkedArray, low: int, high: int) -> IntArray:
        """Find URIs in a part of the listing."""
        found = pc.index_in(uris, value_set=self._columns.uris.slice(low, high - low))
        chunks = found.chunks if isinstance(found, pa.ChunkedArray) else [found]
        return np.concatenate([numbers_or(chunk, 4, ABSENT - low) for chunk in chunks]) + low

    def _same(self, run: FileColumns, places: IntArray) -> BoolArray:
        same = np.zeros(run.num_rows, dtype=np.bool_)
        rows = np.flatnonzero(places != ABSENT)
        if not len(rows):
            return same
        if len(rows) == run.num_rows and np.array_equal(places, np.arange(places[0], places[0] + len(places))):
            return run.same_as(self._columns.slice(int(places[0]), int(places[0]) + len(places)))
        same[rows] = run.take(rows).same_as(self._columns.take(places[rows]))
        return same
