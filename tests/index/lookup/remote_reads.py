"""Lookups in an object store: a builder for tables there, and a count of the round trips to files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lakebloom.tables.parquet import footer, remote_file
from lakebloom.tables.parquet.remote_file import RemoteFile
from lakebloom.tuning import TAIL_BYTES

if TYPE_CHECKING:
    import pytest


class RemoteReads:
    """Counts from when it is made. Pieces that lie in the tail of a file, which is read first, cost nothing."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, tail_bytes: int = TAIL_BYTES) -> None:
        self.steps: list[str] = []
        """Round trips, one after the other."""
        self.sizes: list[int] = []
        """Bytes of each request."""
        fill, get_tail, get_range = RemoteFile.fill, RemoteFile._get_tail, RemoteFile._range

        def counted_fill(file: RemoteFile, target: memoryview, pieces: Any) -> None:
            if any(piece.offset < file._tail_start for piece in pieces):
                self.steps.append("pieces")
            fill(file, target, pieces)

        def counted_tail(file: RemoteFile) -> Any:
            self.steps.append("tail")
            self.sizes.append(tail_bytes)
            return get_tail(file)

        def counted_range(file: RemoteFile, start: int, end: int) -> memoryview:
            self.sizes.append(end - start if start < file._tail_start else 0)
            return get_range(file, start, end)

        monkeypatch.setattr(RemoteFile, "fill", counted_fill)
        monkeypatch.setattr(RemoteFile, "_get_tail", counted_tail)
        monkeypatch.setattr(RemoteFile, "_range", counted_range)
        for module in (remote_file, footer):
            monkeypatch.setattr(module, "TAIL_BYTES", tail_bytes)

    def clear(self) -> None:
        """Count from here on."""
        self.steps.clear()
        self.sizes.clear()
