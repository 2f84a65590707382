"""The work of one build task: read the columns of some Parquet files, write one segment.

A file is indexed only as it was listed: its size and modification time are looked at before and after it is read. One
that changed, vanished or cannot be read is left out and named in the result; queries then read it, as they read any
file that the index does not know. What such a file had already put into the segment cannot be taken out again, so the
segment is started anew without it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from lakebloom.errors import LakebloomError
from lakebloom.index.plan import GroupResult, SkippedFile
from lakebloom.index.segment_builder import SegmentBuilder, Span
from lakebloom.sbbf.hashing import hash_array
from lakebloom.sbbf.kernels import load_compiled
from lakebloom.storage import open_storage
from lakebloom.tables.listing import stat_file
from lakebloom.tables.parquet_columns import ParquetColumns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from lakebloom.index.plan import BuildPlan, FileGroup
    from lakebloom.sbbf.filter import Sbbf
    from lakebloom.storage import Storage
    from lakebloom.store.records import Granularity
    from lakebloom.tables.files import TableFile
    from lakebloom.tables.parquet_columns import RowGroupShape


class _FileChangedError(Exception):
    def __init__(self, skipped: SkippedFile) -> None:
        super().__init__(skipped.reason)
        self.skipped = skipped


def spans_of(row_groups: Sequence[RowGroupShape], granularity: Granularity) -> list[Span]:
    """Divide a file into units. A file without rows is one empty unit, so that it counts as known."""
    num_rows = sum(group.row_count for group in row_groups)
    if granularity == "file" or num_rows == 0:
        return [Span(0, num_rows, 0, len(row_groups))]
    if granularity == "row_group":
        return [Span(group.row_start, group.row_count, i, 1) for i, group in enumerate(row_groups)]
    assert isinstance(granularity, int)
    starts = np.array([group.row_start for group in row_groups])
    spans = []
    for start in range(0, num_rows, granularity):
        count = min(granularity, num_rows - start)
        first = int(np.searchsorted(starts, start, side="right")) - 1
        last = int(np.searchsorted(starts, start + count - 1, side="right")) - 1
        spans.append(Span(start, count, first, last - first + 1))
    return spans


def build_segment(plan: BuildPlan, group: FileGroup, storage: Storage | None = None) -> tuple[GroupResult, list[Sbbf]]:
    """Read the files of a group and write their segment; returns also the partial global filters, if wanted."""
    load_compiled()
    started = time.perf_counter()
    storage = storage or open_storage(plan.index_uri, plan.storage_options)
    skipped: list[SkippedFile] = []
    while True:
        task = _Reading(plan, SegmentBuilder(plan, storage, group.number), skipped)
        try:
            for file in group.files:
                task.read(file)
            break
        except _FileChangedError as change:
            skipped.append(change.skipped)
    segment = task.builder.finish()
    elapsed = time.perf_counter() - started
    return GroupResult(group.number, segment, tuple(skipped), task.bytes_read, elapsed), task.builder.global_filters


class _Reading:
    """One attempt at a segment."""

    def __init__(self, plan: BuildPlan, builder: SegmentBuilder, skipped: list[SkippedFile]) -> None:
        self.builder = builder
        self.bytes_read = 0
        self._plan = plan
        self._skipped = skipped

    def read(self, file: TableFile) -> None:
        """Add the units of a file, or note why it has none."""
        if any(skipped.uri == file.uri for skipped in self._skipped):
            return
        begun = len(self.builder.units)
        try:
            self._read_unchanged(file)
        except _FileChangedError as change:
            skipped = change.skipped
        except LakebloomError as error:
            skipped = SkippedFile(file.uri, error.code, str(error))
        else:
            return
        if len(self.builder.units) > begun:
            raise _FileChangedError(skipped)
        self._skipped.append(skipped)

    def _read_unchanged(self, file: TableFile) -> None:
        _require_unchanged(file, self._plan.storage_options)
        with ParquetColumns(
            file.uri, self._plan.columns, self._plan.storage_options, case_sensitive=self._plan.case_sensitive
        ) as columns:
            self._read_units(file, columns)
            self.bytes_read += columns.bytes_read
        _require_unchanged(file, self._plan.storage_options)

    def _read_units(self, file: TableFile, columns: ParquetColumns) -> None:
        spans = iter(spans_of(columns.row_groups, self._plan.granularity))
        span = next(spans)
        rows_left = span.row_count
        self.builder.begin()
        for row_group in range(len(columns.row_groups)):
            for _, arrays in columns.batches(row_group):
                at, size = 0, len(arrays[0])
                while at < size:
                    taken = min(size - at, rows_left)
                    self._add([array.slice(at, taken) for array in arrays], span)
                    at, rows_left = at + taken, rows_left - taken
                    if rows_left == 0 and (following := next(spans, None)) is not None:
                        self.builder.end(file, span)
                        span, rows_left = following, following.row_count
                        self.builder.begin()
        self.builder.end(file, span)

    def _add(self, arrays: Sequence[pa.Array], span: Span) -> None:
        for column, array in enumerate(arrays):
            hashes, valid = hash_array(array)
            if valid is not None:
                hashes = hashes[valid]
            self.builder.add(column, hashes, len(array) - len(hashes), span.row_count)


def _require_unchanged(file: TableFile, options: Mapping[str, str]) -> None:
    now = stat_file(file.uri, options)
    if now == file:
        return
    reason = "it is gone" if now is None else f"it has {now.size_bytes} bytes of {now.mtime_ms} now"
    raise _FileChangedError(SkippedFile(file.uri, "FILE_CHANGED", f"the file changed while it was indexed: {reason}"))
