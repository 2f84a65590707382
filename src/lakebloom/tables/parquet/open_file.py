"""One file of a table, open for reading: whole row groups, or of each column only the pages that hold some rows."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import lakebloom.arrow_compute as pc
from lakebloom.sbbf.values.plain_arrays import plain_array
from lakebloom.tables.file_identity import is_logged, is_same
from lakebloom.tables.listing.listing import look_again
from lakebloom.tables.parquet.open import fetched, page_bytes, seen_version
from lakebloom.tables.parquet.pages.file_pages import UnpagedError, Wanted
from lakebloom.tables.parquet.pages.row_ranges import RowRanges

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from lakebloom.tables.file_identity import TableFile
    from lakebloom.tables.parquet.kept_footers import KeptFooter
    from lakebloom.tables.parquet.pages.loading import PageBytes
    from lakebloom.tables.parquet.pages.row_ranges import Numbers
    from lakebloom.tables.parquet.rows import TableRows
    from lakebloom.tables.parquet.views import View

__all__ = ["OpenFile", "cut_rows"]


class OpenFile:
    """Reads rows of an open file, in the table's schema."""

    def __init__(
        self,
        rows: TableRows,
        file: TableFile,
        source: pa.NativeFile,
        footer: KeptFooter,
        asked: pa.Schema,
    ) -> None:
        """``asked`` are the columns of which most is read."""
        self._rows, self._source, self._asked = rows, source, asked
        self.file, self.footer = file, footer
        self.live = rows.live(file, footer)
        """Which rows of the file count."""

    @property
    def row_groups(self) -> range:
        """The numbers of its row groups."""
        return range(len(self.footer.row_counts))

    @cached_property
    def bytes(self) -> PageBytes:
        """The file as pages are read of it."""
        return page_bytes(self._source)

    def is_unchanged(self, options: Mapping[str, str]) -> bool:
        """Tell whether all that was read is of the file as it was listed. Asks the store only if that is not known."""
        version = seen_version(self._source)
        now = look_again(self.file, options) if version is None or is_logged(self.file) else version.file
        return is_same(self.file, now)

    def read(self, row_groups: Sequence[int], schema: pa.Schema, *, use_threads: bool = True) -> pa.Table:
        """Return the rows of some row groups."""
        view = self._view(schema)
        num_rows = sum(self.footer.row_counts[group] for group in row_groups)
        return view.rows(self._read_leaves(row_groups, view.leaves, use_threads), num_rows)

    def read_ranges(self, wanted: Sequence[Wanted], schema: pa.Schema, *, use_threads: bool = True) -> list[pa.Table]:
        """Return rows of several row groups, with one read of all pages."""
        view = self._view(schema)
        return [
            cut_rows(self.read([each.row_group], schema, use_threads=use_threads), each.rows)
            if arrays is None
            else view.rows(dict(zip(view.names, arrays, strict=True)), each.rows.num_rows)
            for each, arrays in zip(wanted, self._paged(wanted, view), strict=True)
        ]

    def take(self, row_group: int, numbers: Numbers, schema: pa.Schema, *, use_threads: bool = True) -> pa.Table:
        """Return some rows of a row group, by their ascending numbers in it."""
        (table,) = self.take_rows([(row_group, numbers)], schema, use_threads=use_threads)
        return table

    def take_rows(
        self, chosen: Sequence[tuple[int, Numbers]], schema: pa.Schema, *, use_threads: bool = True
    ) -> list[pa.Table]:
        """Return some rows of several row groups, with one read of all pages."""
        view = self._view(schema)
        wanted = [Wanted(group, RowRanges.of_rows(numbers)) for group, numbers in chosen]
        return [
            self._take_of_group(group, numbers, view, use_threads)
            if arrays is None
            else view.rows(dict(zip(view.names, arrays, strict=True)), len(numbers))
            for (group, numbers), arrays in zip(chosen, self._paged(wanted, view), strict=True)
        ]

    def has_pages(self, row_groups: Sequence[int], schema: pa.Schema) -> bool:
        """Tell whether pages of row groups can be read. Finds those of all columns, of an object by one request."""
        if not all(self.footer.has_pages[group] for group in row_groups):
            return False
        try:
            self.footer.pages.locate(self.bytes, row_groups, self._view(schema).numbers)
        except UnpagedError as error:
            self._rows.unpaged[error.reason] += 1
            return False
        return True

    def expect(self, row_groups: Sequence[int], schema: pa.Schema) -> None:
        """Find the pages of columns that will be read in several steps: of an object that takes one request less."""
        groups = [group for group in row_groups if self.footer.has_pages[group]]
        if groups and self.bytes.is_remote:
            try:
                self.footer.pages.locate(self.bytes, groups, self._view(schema).numbers)
            except UnpagedError:  # counted by who reads them
                return

    def _view(self, schema: pa.Schema) -> View:
        return self._rows.kept_view(self.file, self.footer, schema)

    def _paged(self, wanted: Sequence[Wanted], view: View) -> list[list[pa.ChunkedArray] | None]:
        """Return the columns that the file has, read by pages; None where the row group has to be read."""
        found: list[list[pa.ChunkedArray] | None] = [None] * len(wanted)
        paged = [number for number, each in enumerate(wanted) if self._is_part(each)]
        if not paged:
            return found
        columns = view.numbers
        try:
            read = self.footer.pages.read(self.bytes, [wanted[number] for number in paged], columns)
        except UnpagedError as error:
            if len(paged) > 1:  # of some row groups
                return [self._paged([each], view)[0] for each in wanted]
            self._rows.unpaged[error.reason] += 1
            return found
        for number, arrays in zip(paged, read, strict=True):
            found[number] = arrays
        return found

    def _is_part(self, wanted: Wanted) -> bool:
        group = wanted.row_group
        return self.footer.has_pages[group] and not wanted.rows.covers(self.footer.row_counts[group])

    def _take_of_group(self, row_group: int, numbers: Numbers, view: View, use_threads: bool) -> pa.Table:
        table = self._read_leaves([row_group], view.leaves, use_threads)
        return view.rows(pc.take(table, plain_array(numbers, pa.int64())), len(numbers))

    def _read_leaves(self, row_groups: Sequence[int], leaves: Sequence[int], use_threads: bool) -> pa.Table:
        # Small row groups are decoded before threads have taken over.
        is_large = len(leaves) > 1 and any(self.footer.has_pages[group] for group in row_groups)
        with self.fetched(row_groups, leaves):
            return self.reader.read_row_groups(row_groups, leaves, use_threads and is_large)

    def fetched(self, row_groups: Sequence[int], leaves: Sequence[int]) -> AbstractContextManager[None]:
        """Return a block inside of which column chunks of an object are in memory, if they are not too large."""
        return fetched(self._source, self._chunks(row_groups, leaves))

    def _chunks(self, row_groups: Sequence[int], leaves: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Yield where the column chunks begin and end."""
        for group in row_groups:
            facts = self.footer.metadata.row_group(group)
            for leaf in leaves:
                chunk = facts.column(leaf)
                start, dictionary = chunk.data_page_offset, chunk.dictionary_page_offset
                if dictionary is not None and 0 < dictionary < start:
                    start = dictionary
                yield start, start + chunk.total_compressed_size

    @cached_property
    def reader(self) -> Any:
        """PyArrow's reader of the file, which reads the columns that were asked for as they are."""
        return self.footer.open(self.file.uri, self._source, self._view(self._asked).leaves)


def cut_rows(table: pa.Table, rows: RowRanges) -> pa.Table:
    """Return the rows of some ranges."""
    if not table.num_columns:
        return table.slice(0, rows.num_rows)
    return pa.concat_tables([table.slice(start, stop - start) for start, stop in rows.pairs()] or [table.slice(0, 0)])
