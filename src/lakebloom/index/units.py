"""Divides files into units, and estimates how many units a table has, from footers."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from lakebloom.errors import LakebloomError
from lakebloom.tables.parquet.columns import ParquetColumns
from lakebloom.tuning import PAGE_UNIT_ROWS, SAMPLED_FILES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lakebloom.store.records import Granularity
    from lakebloom.tables.access import TableAccess
    from lakebloom.tables.file_identity import TableFile
    from lakebloom.tables.parquet.columns import ColumnSpec, RowGroupShape

__all__ = ["PageStarts", "Shape", "Span", "sample_shape", "spans_of"]


@dataclass(frozen=True, slots=True)
class Span:
    """The rows of a unit, and the row groups that overlap them."""

    row_start: int
    row_count: int
    row_group_start: int = 0
    row_group_count: int = 0
    byte_start: int | None = None
    """Where these row groups start in the file; None if that is unknown."""
    byte_count: int | None = None


PageStarts: TypeAlias = "Callable[[int], Sequence[int]]"
"""Returns the rows of a row group, counted within it, at which a page of the first indexed column begins."""


def no_pages(row_group: int) -> Sequence[int]:
    """Return that no page begins within a row group: where its pages are is not known."""
    return ()


def spans_of(
    row_groups: Sequence[RowGroupShape], granularity: Granularity, page_starts: PageStarts = no_pages
) -> list[Span]:
    """Divide a file into units. A file without rows is one empty unit, so that it counts as indexed.

    ``page_starts`` is called for units of pages only.
    """
    num_rows = sum(group.row_count for group in row_groups)
    whole = [Span(0, num_rows, 0, len(row_groups), *_bytes_of(row_groups))]
    if granularity == "file" or num_rows == 0:
        return whole
    if granularity == "row_group":
        return [Span(group.row_start, group.row_count, i, 1, *_bytes_of([group])) for i, group in enumerate(row_groups)]
    if granularity == "page":
        return _page_spans(row_groups, page_starts)
    if granularity == "auto":
        if num_rows < 2 * PAGE_UNIT_ROWS:
            return whole
        spans = _page_spans(row_groups, page_starts)
        return spans if 1 < len(spans) <= num_rows // PAGE_UNIT_ROWS else whole
    starts = np.array([group.row_start for group in row_groups])
    spans = []
    for start in range(0, num_rows, granularity):
        count = min(granularity, num_rows - start)
        first = int(np.searchsorted(starts, start, side="right")) - 1
        last = int(np.searchsorted(starts, start + count - 1, side="right")) - 1
        spans.append(Span(start, count, first, last - first + 1, *_bytes_of(row_groups[first : last + 1])))
    return spans


def _page_spans(row_groups: Sequence[RowGroupShape], page_starts: PageStarts) -> list[Span]:
    """Return units of whole pages with enough rows, each in one row group; a small row group is one unit."""
    spans = []
    for number, group in enumerate(row_groups):
        starts = [0]
        if group.row_count >= 2 * PAGE_UNIT_ROWS:
            for start in page_starts(number):
                if start - starts[-1] >= PAGE_UNIT_ROWS and group.row_count - start >= PAGE_UNIT_ROWS:
                    starts.append(start)
        for start, stop in pairwise([*starts, group.row_count]):
            spans.append(Span(group.row_start + start, stop - start, number, 1, *_bytes_of([group])))
    return spans


def _bytes_of(row_groups: Sequence[RowGroupShape]) -> tuple[int, int] | tuple[None, None]:
    """Return where row groups lie in the file: the first byte, and how many there are."""
    starts = [group.byte_start for group in row_groups if group.byte_start is not None]
    stops = [group.byte_stop for group in row_groups if group.byte_stop is not None]
    if not starts or len(starts) < len(row_groups):
        return None, None
    return min(starts), max(stops) - min(starts)


@dataclass(frozen=True, slots=True)
class Shape:
    """The estimated number of units and rows of a table, and bytes of its indexed columns."""

    units: float
    rows: float
    column_bytes: float = 0.0
    """The stored bytes; 0 if only a scan can tell."""
    granularity: Granularity = "file"
    """What the units are; "auto" if they are not all files."""


def sample_shape(
    files: Sequence[TableFile],
    columns: Sequence[ColumnSpec],
    granularity: Granularity,
    access: TableAccess,
) -> Shape:
    """Return the shape of a Parquet table from the footers of a few files, spread over all of them.

    Files that cannot be read are omitted: the build will reject them. Raises AccessDeniedError,
    DataFileError, UnsupportedTypeError or the error of the first file if none can be read.
    """
    step = max(1, len(files) // SAMPLED_FILES)
    rows = units = size_bytes = column_bytes = read = 0
    problem: LakebloomError | None = None
    for file in files[::step]:
        try:
            with ParquetColumns(file.uri, columns, access) as reader:
                rows += reader.num_rows
                column_bytes += reader.column_bytes
                units += len(spans_of(reader.row_groups, granularity, reader.sampled_page_starts))
        except LakebloomError as error:
            problem = problem or error
            continue
        size_bytes += file.size_bytes
        read += 1
    if not read:
        assert problem is not None
        raise problem
    share = size_bytes / max(1, sum(file.size_bytes for file in files))
    return Shape(
        granularity=granularity,
        units=max(len(files), units / read * len(files)),
        rows=rows / share if share else 0,
        column_bytes=column_bytes / share if share else 0,
    )
