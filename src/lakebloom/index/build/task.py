"""The work of one build task: read the columns of some Parquet files, write one segment.

A file is indexed only as it was listed: its identity is checked before and after it is read, and it is read only when
any later change will show (``tables/listing/settled.py``). A file that changed, is gone, is too new or cannot be read
is rejected and named in the result; queries then read it, as they read all unindexed files. Units that such a file has
already added cannot be removed, so the segment is started again without the rejected files. If the index cannot be
written, the task fails.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from lakebloom.errors import DataFileError, LakebloomError
from lakebloom.index.build.embedded_import import filters_of
from lakebloom.index.build.plan import RejectedFile, ShardResult, summed
from lakebloom.index.build.segment_builder import SegmentBuilder
from lakebloom.index.build.value_bounds import batch_values
from lakebloom.index.units import Span, spans_of
from lakebloom.sbbf.hashing.hash_values import hash_array
from lakebloom.storage import open_index_storage
from lakebloom.tables.file_identity import is_same
from lakebloom.tables.listing.listing import look_again
from lakebloom.tables.listing.settled import TOO_NEW, too_new_reason, unsettled
from lakebloom.tables.parquet.columns import ParquetColumns

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa

    from lakebloom.index.build.embedded_import import FileFilters, ImportedFilter
    from lakebloom.index.build.plan import BuildPlan, ReadAnyway, Shard
    from lakebloom.index.build.value_bounds import BatchValues
    from lakebloom.sbbf.filter import Sbbf
    from lakebloom.sbbf.kernels import BoolArray, HashArray
    from lakebloom.storage import Storage
    from lakebloom.tables.file_identity import TableFile


class _FileSkippedError(Exception):
    def __init__(self, file: TableFile, code: str, reason: str) -> None:
        super().__init__(reason)
        self.rejected = RejectedFile(file.uri, code, reason)


def build_segment(plan: BuildPlan, shard: Shard, storage: Storage | None = None) -> tuple[ShardResult, list[Sbbf]]:
    """Read the files of a shard and write their segment. Also returns the partial global filters, if planned."""
    started = time.perf_counter()
    storage = storage or open_index_storage(plan.index_uri, plan.access.options)
    rejected: dict[str, RejectedFile] = {}
    bytes_read = 0
    while True:
        attempt = _Attempt(plan, SegmentBuilder(plan, storage, shard.number))
        for file in shard.files:
            if file.uri not in rejected:
                attempt.read(file)
        rejected.update((file.uri, file) for file in attempt.rejected)
        bytes_read += attempt.bytes_read
        if attempt.is_clean:
            break
        attempt.builder.abandon()
    segment = attempt.builder.finish()
    elapsed = time.perf_counter() - started
    result = ShardResult(
        *(shard.number, segment, tuple(rejected.values()), bytes_read, elapsed),
        filters_imported=attempt.builder.filters_imported,
        read_anyway=summed(attempt.read_anyway),
    )
    return result, attempt.builder.global_filters


class _Attempt:
    """One attempt at a segment. It is clean unless a file was rejected after it had added units."""

    def __init__(self, plan: BuildPlan, builder: SegmentBuilder) -> None:
        self.builder = builder
        self.bytes_read = 0
        self.rejected: list[RejectedFile] = []
        self.read_anyway: list[ReadAnyway] = []
        self.is_clean = True
        self._plan = plan

    def read(self, file: TableFile) -> None:
        """Add the units of a file, or record why it is rejected."""
        begun = len(self.builder.units)
        self.builder.pages = None
        try:
            self._read_unchanged(file)
        except _FileSkippedError as error:
            self.rejected.append(error.rejected)
            self.is_clean &= len(self.builder.units) == begun

    def _read_unchanged(self, file: TableFile) -> None:
        access = self._plan.access
        with _skipping(file):
            file = _seen(file, access.options)
            _require_settled(file)
            imported = filters_of(file.uri, self._plan) if self._plan.from_embedded else None
        if imported is not None:
            self.bytes_read += imported.bytes_read
            self.read_anyway += imported.refused
        numbers = [i for i in range(len(self._plan.columns)) if imported is None or i not in imported.columns]
        if imported is not None and not numbers:
            self._import_units(file, imported)
        else:
            with _skipping(file):
                specs = [self._plan.columns[number] for number in numbers]
                columns = ParquetColumns(file.uri, specs, access)
            with columns:
                self._add_units(file, columns, numbers, {} if imported is None else imported.columns)
                self.bytes_read += columns.bytes_read
        with _skipping(file):
            _seen(file, access.options)

    def _import_units(self, file: TableFile, imported: FileFilters) -> None:
        """Add units whose filters are all in the file."""
        for number, span in enumerate(spans_of(imported.row_groups, self._plan.granularity)):
            self._begin(number, imported.columns)
            self.builder.end(file, span)

    def _begin(self, unit: int, imported: Mapping[int, Sequence[ImportedFilter]]) -> None:
        """Begin a unit, some filters of which may be imported."""
        self.builder.begin()
        for column, filters in imported.items():
            taken = filters[unit]
            self.builder.take(column, taken.filter, taken.null_count, taken.bounds)

    def _add_units(
        self,
        file: TableFile,
        columns: ParquetColumns,
        numbers: Sequence[int],
        imported: Mapping[int, Sequence[ImportedFilter]],
    ) -> None:
        with _skipping(file):
            if self._plan.granularity not in ("file", "row_group"):
                self.builder.pages = columns.walk_pages()
            units = spans_of(columns.row_groups, self._plan.granularity, columns.page_starts)
        spans = enumerate(units)
        number, span = next(spans)
        rows_left = span.row_count
        self._begin(number, imported)
        for arrays in _batches(file, columns):
            batch = [_Hashed.of(array) for array in arrays]  # once, so that its dictionaries are hashed once
            at, size = 0, len(arrays[0])
            while at < size:
                while rows_left == 0:
                    self.builder.end(file, span)
                    number, span = next(spans)
                    rows_left = span.row_count
                    self._begin(number, imported)
                count = min(size - at, rows_left)
                self._add(numbers, batch, slice(at, at + count), span)
                at, rows_left = at + count, rows_left - count
        self.builder.end(file, span)
        for number, empty in spans:  # row groups without rows at the end
            self._begin(number, imported)
            self.builder.end(file, empty)

    def _add(self, numbers: Sequence[int], batch: Sequence[_Hashed], rows: slice, span: Span) -> None:
        for column, values in zip(numbers, batch, strict=True):
            hashes, valid = values.hashes, values.valid
            taken = hashes[rows] if valid is None else hashes[rows][valid[rows]]
            nulls = rows.stop - rows.start - len(taken)
            self.builder.add(column, taken, nulls, span.row_count, values.ordered.of(rows))


class _Hashed(NamedTuple):
    """The values of a column in a batch: their hashes, which are not NULL, and their order."""

    hashes: HashArray
    valid: BoolArray | None
    ordered: BatchValues

    @classmethod
    def of(cls, array: pa.Array) -> _Hashed:
        hashes, valid = hash_array(array)
        return cls(hashes, valid, batch_values(array, valid))


def _batches(file: TableFile, columns: ParquetColumns) -> Iterator[list[pa.Array]]:
    """Yield the rows of a file, never more than its footer says."""
    rows_left = columns.num_rows
    batches = (arrays for number in range(len(columns.row_groups)) for _, arrays in columns.batches(number))
    while True:
        with _skipping(file):
            arrays = next(batches, None)
            if arrays is None:
                return
            rows_left -= len(arrays[0])
            if rows_left < 0:
                raise DataFileError(f"{file.uri} does not match its footer", found=f"more than {columns.num_rows} rows")
        yield arrays


@contextmanager
def _skipping(file: TableFile) -> Iterator[None]:
    """Translate errors of a file to its rejection."""
    try:
        yield
    except LakebloomError as error:
        raise _FileSkippedError(file, error.code, str(error)) from error


def _seen(file: TableFile, options: Mapping[str, str]) -> TableFile:
    """Return the file with its full identity, of which the lister may know less."""
    now = look_again(file, options)
    if now is not None and is_same(file, now):
        return now
    reason = "it is gone" if now is None else f"listed as {_facts(file)}, now {_facts(now)}"
    raise _FileSkippedError(file, "FILE_CHANGED", f"the file changed while it was indexed: {reason}")


def _facts(file: TableFile) -> str:
    return f"{file.size_bytes} bytes of {file.mtime_ms} ms, {file.tag or 'without a tag'}"


def _require_settled(file: TableFile) -> None:
    if unsettled([file]):
        raise _FileSkippedError(file, TOO_NEW, too_new_reason(file))
