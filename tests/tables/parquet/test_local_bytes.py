"""Pieces of a local file: by its descriptor, and through PyArrow where that is not known."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lakebloom.tables.parquet.pages.chosen import Piece
from lakebloom.tables.parquet.pages.local_bytes import SourceBytes, local_bytes

DATA = bytes(range(256)) * 4


class _WithoutDescriptor:
    """A file as PyArrow 19 has it."""

    def __init__(self, source: pa.NativeFile) -> None:
        self.size, self.read_at = source.size, source.read_at

    def fileno(self) -> int:
        raise AttributeError("'pyarrow.lib.OSFile' object has no attribute 'handle'")


@pytest.mark.parametrize("known", [True, False])
def test_pieces_come_to_their_places(tmp_path: Path, known: bool) -> None:
    path = tmp_path / "f"
    path.write_bytes(DATA)
    with pa.OSFile(str(path)) as source:
        found = local_bytes(source if known else _WithoutDescriptor(source))
        assert known or isinstance(found, SourceBytes)
        assert (found.is_remote, found.size_bytes) == (False, len(DATA))
        target = bytearray(12)
        found.fill(memoryview(target), [Piece(250, 8, 4), Piece(0, 2, 1)])
        assert bytes(target) == bytes([0, 0, 1, 0]) + DATA[250:258]
        with pytest.raises(OSError, match="ends 3 bytes before the end of a page"):
            found.fill(memoryview(target), [Piece(len(DATA) - 5, 8, 0)])
