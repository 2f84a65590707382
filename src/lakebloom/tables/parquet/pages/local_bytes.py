"""Pieces of a local file, read to their places in memory."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakebloom.tables.parquet.pages.chosen import Piece

__all__ = ["LocalBytes"]


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
