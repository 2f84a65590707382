"""Pieces of a local file, read to their places in memory."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from lakebloom.tables.parquet.pages.chosen import Piece
    from lakebloom.tables.parquet.pages.loading import PageBytes

__all__ = ["LocalBytes", "SourceBytes", "local_bytes"]


def local_bytes(source: pa.NativeFile) -> PageBytes:
    """Return what reads pieces of an open file."""
    try:
        return LocalBytes(source.fileno())
    except AttributeError:  # PyArrow 19 does not know the descriptor of its own file
        return SourceBytes(source)


class LocalBytes:
    """An open file, by its descriptor, which stays the caller's."""

    is_remote = False

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.size_bytes = os.fstat(descriptor).st_size

    def fill(self, target: memoryview, pieces: Sequence[Piece]) -> None:
        """See PageBytes."""
        for offset, length, position in pieces:
            done = 0
            while done < length:
                part = target[position + done : position + length]
                count = os.preadv(self._descriptor, [part], offset + done)
                if count == 0:
                    raise OSError(f"the file ends {length - done} bytes before the end of a page")
                done += count


class SourceBytes:
    """An open file that is read through PyArrow, with one more copy."""

    is_remote = False

    def __init__(self, source: pa.NativeFile) -> None:
        self._source = source
        self.size_bytes = source.size()

    def fill(self, target: memoryview, pieces: Sequence[Piece]) -> None:
        """See PageBytes."""
        for offset, length, position in pieces:
            data = self._source.read_at(length, offset)
            if len(data) < length:
                raise OSError(f"the file ends {length - len(data)} bytes before the end of a page")
            target[position : position + length] = data
