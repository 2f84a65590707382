"""One filter inside a file: its place, and how to read it.

    plain        header (Thrift, 15 to 20 bytes)    bitset
    encrypted    header, framed                     bitset, framed          see ``encryption``

The footer has the offset of a filter and, since 2023, its length. Both are checked against the file first: nothing is
read beyond the footer's start, and no more memory is allocated than the file has bytes.

The size in a filter's header is not trusted alone, because a wrong one would make every result wrong. It must agree
with the length in the footer. If there is none, the filter must end where another part of the file begins, as it does
in the files of all writers of that time. The parts of an encrypted filter are authenticated, so its sizes are trusted:
the part behind it may belong to a column whose offsets are encrypted too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from lakebloom.display.tables import Printable
from lakebloom.errors import CorruptFilterError
from lakebloom.parquet.encryption import FRAME_BYTES, Module, frame_size
from lakebloom.sbbf.bytes.header import MAX_HEADER_BYTES, read_header
from lakebloom.sbbf.filter import Sbbf

if TYPE_CHECKING:
    from lakebloom.parquet.metadata import ColumnKey, Metadata
    from lakebloom.parquet.open_file import OpenFile

__all__ = ["EmbeddedFilter"]

_MAGIC_BYTES = 4
_MAX_SEALED_HEADER_BYTES = FRAME_BYTES + 4 * MAX_HEADER_BYTES
"""parquet-java pads headers to 100 bytes before it encrypts them."""


@dataclass(frozen=True)
class EmbeddedFilter(Printable):
    """A filter of a Parquet file. Its bits are read on the first use of `filter`, and kept.

    The file stays open while one of its filters is referenced.
    """

    row_group: int
    column: str
    """The leaf's name in Spark's convention: ``a.b``, ``l.list.element``, with backticks around a part with dots."""
    offset: int
    length: int | None
    """Bytes of header and bitset; None if the footer has no length."""
    _file: OpenFile = field(repr=False, compare=False)
    _metadata: Metadata = field(repr=False, compare=False)
    _key: ColumnKey | None = field(repr=False, compare=False)

    @cached_property
    def filter(self) -> Sbbf:
        """The filter: one read, or two if `length` is None.

        Raises CorruptFilterError, UnsupportedFilterError or EncryptedFileError, and DataFileError or StorageError
        for a file that cannot be read.
        """
        footer = self._metadata.footer.start
        room = footer - self.offset
        if self.offset < _MAGIC_BYTES or room <= 0:
            raise self._corrupt(f"offset {self.offset}, outside of the {footer} bytes before the footer")
        if self.length is not None and not 0 < self.length <= room:
            raise self._corrupt(f"length {self.length} at offset {self.offset}, only {room} bytes before the footer")
        return self._plain(room) if self._key is None else self._sealed(room, self._key)

    def _plain(self, room: int) -> Sbbf:
        start = self._file.read(self.offset, self.length or min(room, MAX_HEADER_BYTES))
        num_bytes, header_bytes = read_header(start)
        announced = header_bytes + num_bytes
        self._require_length(announced, room)
        if self.length is None and self.offset + announced not in self._metadata.boundaries:
            raise self._corrupt(f"no length, and a header that announces {announced} bytes, where no part ends")
        missing = announced - len(start)
        if missing > 0:
            start += self._file.read(self.offset + len(start), missing)
        return Sbbf.from_bytes(memoryview(start)[header_bytes:announced])

    def _sealed(self, room: int, key: ColumnKey) -> Sbbf:
        start = self._file.read(self.offset, self.length or min(room, _MAX_SEALED_HEADER_BYTES))
        header_end = frame_size(start, Module.FILTER_HEADER)
        num_bytes, _ = read_header(key.decrypt(start, Module.FILTER_HEADER))
        self._require_length(header_end + FRAME_BYTES + num_bytes, room)
        missing = header_end + FRAME_BYTES + num_bytes - len(start)
        if missing > 0:
            start += self._file.read(self.offset + len(start), missing)
        bitset = key.decrypt(memoryview(start)[header_end:], Module.FILTER_BITSET)
        if len(bitset) != num_bytes:
            raise self._corrupt(f"a bitset of {len(bitset)} bytes under a header that announces {num_bytes}")
        return Sbbf.from_bytes(bitset)

    def _require_length(self, announced: int, room: int) -> None:
        if self.length is not None and self.length != announced:
            raise self._corrupt(f"length {self.length} in the footer, {announced} in the filter's header")
        if announced > room:
            raise self._corrupt(f"a header that announces {announced} bytes, only {room} bytes before the footer")

    def _corrupt(self, found: str) -> CorruptFilterError:
        return CorruptFilterError(
            f"cannot read the filter of column {self.column} in row group {self.row_group} of {self._file.name}",
            found=found,
            hint="rewrite the file, or do not use this filter",
        )
