"""Columns that need no conversion: checked once for each file, and only where there was something to check."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakebloom.errors import UnsupportedTypeError
from lakebloom.tables.parquet.footer import read_arrow_footer
from lakebloom.tables.parquet.stored_columns import StoredColumns


def test_texts_are_checked_before_they_are_passed_on(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"n": pa.array([1], pa.int32()), "t": ["a"]}), path)
    with pa.OSFile(str(path)) as source:
        stored = StoredColumns(read_arrow_footer("f", source), case_sensitive=False)
    texts, nothing = pa.chunked_array([["a", None]]), pa.chunked_array([], pa.string())
    for _ in range(2):
        assert stored.read_as(nothing, "n", pa.string()).equals(nothing)
        with pytest.raises(UnsupportedTypeError, match="column n of the file cannot be read as string"):
            stored.read_as(texts, "n", pa.string())  # the file has numbers there
        assert stored.read_as(texts, "t", pa.string()).equals(texts)
    assert stored.read_as(texts, "t", pa.string()) is texts
    assert stored.read_as(texts, "t", pa.binary()).type == pa.binary()
