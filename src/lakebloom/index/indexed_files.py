"""The files of one version of an index, numbered across its segments.

A file's number is its row: the rows of the first segment, then those of the second, and so on. So a version that only
adds segments keeps the numbers of its files. A file that was indexed again has several rows; the last one is current.
"""

from __future__ import annotations

from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa

from lakebloom.sbbf.hashing.buffers import numbers

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lakebloom.predicate.prune.unit_filters import BoolArray, IntArray
    from lakebloom.store.segments import Segment
    from lakebloom.tables.file_columns import FileColumns
    from lakebloom.tables.file_identity import TableFile
    from lakebloom.tables.file_matching import Listing, Matched

__all__ = ["DistinctFiles", "IndexedFiles", "NumberedFiles"]


class NumberedFiles(Protocol):
    """Files by their numbers, and which of them count."""

    @property
    def num_rows(self) -> int:
        """How many numbers there are."""

    @property
    def num_current(self) -> int:
        """How many files there are."""

    @property
    def current(self) -> BoolArray:
        """For each number whether its file counts."""

    def chunks(self) -> Iterator[FileColumns]:
        """Yield all files in the order of their numbers, in runs."""

    def __iter__(self) -> Iterator[TableFile]:
        """Yield the files that count."""

    def match(self, listing: Listing) -> Matched:
        """Find all files in a listing. Only files that count are the same."""


class DistinctFiles:
    """Files in memory, all of which count."""

    def __init__(self, columns: FileColumns) -> None:
        self._columns = columns
        self.num_rows = self.num_current = columns.num_rows
        self.current: BoolArray = np.ones(columns.num_rows, dtype=np.bool_)

    def chunks(self) -> Iterator[FileColumns]:
        """Yield all files, in one run."""
        yield self._columns

    def __iter__(self) -> Iterator[TableFile]:
        """Yield all files."""
        return iter(self._columns.files())

    def match(self, listing: Listing) -> Matched:
        """Find all files in a listing."""
        return listing.match(self.chunks(), self.num_rows)


class IndexedFiles:
    """The files of segments. Reads them part by part, and only when it must. Raises CorruptIndexError."""

    def __init__(self, segments: Sequence[Segment]) -> None:
        self._segments = segments
        self.starts: list[int] = [0, *accumulate(segment.record.num_files for segment in segments)]
        """The number of each segment's first file, and the number of all rows."""

    @property
    def num_rows(self) -> int:
        """How many rows there are, current or not."""
        return self.starts[-1]

    @cached_property
    def num_current(self) -> int:
        """How many files there are."""
        return int(np.count_nonzero(self.current))

    @cached_property
    def current(self) -> BoolArray:
        """For each row whether it is current: the last one of its URI."""
        found = np.ones(self.num_rows, dtype=np.bool_)
        overlapping = _overlapping([segment.record.uris for segment in self._segments])
        if not overlapping:
            return found
        runs: list[pa.Array] = []
        rows: list[IntArray] = []
        for number in overlapping:
            runs.extend(chunk.uris for chunk in self._segments[number].units.files.chunks())
            rows.append(np.arange(self.starts[number], self.starts[number + 1]))
        codes = pa.chunked_array(runs, pa.large_string()).dictionary_encode()
        of_rows = np.concatenate([np.empty(0, np.int64), *(numbers(run.indices, 4) for run in codes.chunks)])
        last: np.ndarray[Any, np.dtype[np.int64]] = np.zeros(int(of_rows.max(initial=-1)) + 1, dtype=np.int64)
        last[of_rows] = np.arange(len(of_rows))  # of equal codes the last one stays
        found[np.concatenate(rows)] = last[of_rows] == np.arange(len(of_rows))
        return found

    def of_segment(self, number: int, rows: BoolArray) -> BoolArray:
        """Return the part of an array over all rows that belongs to a segment."""
        return rows[self.starts[number] : self.starts[number + 1]]

    def rows(self, wanted: IntArray) -> list[TableFile]:
        """Return some files, by their ascending numbers."""
        cuts = np.searchsorted(wanted, self.starts)
        found: list[TableFile] = []
        for segment, start, first, end in zip(self._segments, self.starts, cuts, cuts[1:], strict=False):
            if first < end:
                found.extend(segment.units.files.rows(wanted[first:end] - start))
        return found

    def chunks(self, first_segment: int = 0) -> Iterator[FileColumns]:
        """Yield the rows from a segment on, current or not, in runs."""
        for segment in self._segments[first_segment:]:
            yield from segment.units.files.chunks()

    def __iter__(self) -> Iterator[TableFile]:
        """Yield the current files."""
        start = 0
        for run in self.chunks():
            here = self.current[start : start + run.num_rows]
            start += run.num_rows
            yield from (run if here.all() else run.take(np.flatnonzero(here))).files()

    def match(self, listing: Listing) -> Matched:
        """Find all rows in a listing. Only current rows count as the same."""
        found = listing.match(self.chunks(), self.num_rows)
        return found._replace(same=found.same & self.current)


def _overlapping(ranges: Sequence[tuple[str, str]]) -> list[int]:
    """Return the numbers of those ranges that share a value with another one, in their order."""
    order = sorted(range(len(ranges)), key=ranges.__getitem__)
    found: set[int] = set()
    widest: int | None = None  # the range that reaches furthest so far
    for number in order:
        if widest is not None and ranges[number][0] <= ranges[widest][1]:
            found |= {number, widest}
        if widest is None or ranges[number][1] > ranges[widest][1]:
            widest = number
    return sorted(found)
