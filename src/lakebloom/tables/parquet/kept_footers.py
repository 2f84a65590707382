"""Footers that were read before, and what is known of their files: parsing one takes longer than reading a row."""

from __future__ import annotations

import itertools
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lakebloom.locks import new_lock
from lakebloom.tables.listing.settled import is_settled
from lakebloom.tables.parquet.open import row_group_reader
from lakebloom.tables.parquet.pages.file_pages import FilePages
from lakebloom.tables.parquet.stored_columns import StoredColumns
from lakebloom.tuning import KEPT_FOOTER_BYTES, PAGED_BYTES, PAGED_ROWS

if TYPE_CHECKING:
    from collections.abc import Collection

    import pyarrow as pa

    from lakebloom.tables.file_identity import TableFile
    from lakebloom.tables.parquet.footer import ArrowFooter
    from lakebloom.tables.parquet.remote_file import ObjectVersion
    from lakebloom.tables.parquet.views import View

__all__ = ["KeptFooter", "KeptFooters"]

_PARSED = 10
"""A parsed footer takes about so many times its stored bytes. What is known of pages is counted like them."""


class KeptFooter:
    """What is known of a file, in the forms in which it is needed again and again."""

    def __init__(self, footer: ArrowFooter, *, case_sensitive: bool, name_mapping: str | None = None) -> None:
        self.footer = footer
        self.metadata = metadata = footer.metadata
        self.stored = StoredColumns(footer, case_sensitive=case_sensitive, name_mapping=name_mapping)
        self.pages = FilePages(footer, footer.arrow_schema)
        groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
        self.row_counts: list[int] = [group.num_rows for group in groups]
        self.row_starts = [0, *itertools.accumulate(self.row_counts)]
        self.has_pages = [group.num_rows >= PAGED_ROWS or group.total_byte_size >= PAGED_BYTES for group in groups]
        """Whether each row group is so large that pages of it are read faster than all of it."""
        self.version: ObjectVersion | None = None
        """That of an object: of another version nothing is read with this footer."""
        self.views: dict[tuple[str, ...], View] = {}

    @property
    def size_bytes(self) -> int:
        """What it counts in memory: the footer as it is stored, and where pages are."""
        return int(self.metadata.serialized_size) + self.pages.size_bytes // _PARSED

    @cached_property
    def repeating(self) -> frozenset[int]:
        """The top-level columns of bytes that are stored with a dictionary, in the first row group that has rows."""
        first = next((number for number, count in enumerate(self.row_counts) if count), None)
        if first is None:
            return frozenset()
        stored = self.footer.stored_with_dictionary(first)
        return frozenset(stored).intersection(self.stored.plain_leaves)

    def open(self, uri: str, source: pa.NativeFile, plain: Collection[int] = ()) -> Any:
        """Open the file so that repeating columns are read as such, but for some leaves.

        Most of what is decoded is not taken, and numbers are decoded faster than what they stand for.
        """
        return row_group_reader(uri, source, self.footer, self.repeating.difference(plain))


class KeptFooters:
    """Footers of some files. The ones that were kept first give way."""

    def __init__(self) -> None:
        self._known: dict[TableFile, KeptFooter] = {}
        self._counted: dict[TableFile, int] = {}
        self._bytes = 0
        self._lock = new_lock()

    def get(self, file: TableFile) -> KeptFooter | None:
        """Return what is known of a file."""
        return self._known.get(file)

    def remove(self, file: TableFile) -> bool:
        """Forget a file. Tells whether it was known."""
        with self._lock:
            self._bytes -= self._counted.pop(file, 0)
            return self._known.pop(file, None) is not None

    def add(self, file: TableFile, footer: KeptFooter) -> None:
        """Keep what is known of a file, or count again what is kept of it."""
        if footer.pages.size_bytes > KEPT_FOOTER_BYTES:
            footer.pages.forget()
        size_bytes = footer.size_bytes
        if self._counted.get(file) == size_bytes:
            return
        with self._lock:
            known = self._known.get(file)
            if known is None and not is_settled(file):
                return
            if known is None or known is footer:
                self._known[file] = footer
                self._bytes += size_bytes - self._counted.get(file, 0)
                self._counted[file] = size_bytes
            while self._bytes > KEPT_FOOTER_BYTES and len(self._known) > 1:
                oldest = next(iter(self._known))
                del self._known[oldest]
                self._bytes -= self._counted.pop(oldest)
