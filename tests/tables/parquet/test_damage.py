"""Files that are not what they should be: a typed error, never a crash, never other rows in silence."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakebloom.errors import AccessDeniedError, DataFileError, LakebloomError, NotParquetError
from lakebloom.storage import normalise
from lakebloom.tables.parquet.columns import ColumnSpec, ParquetColumns
from tests.tables.reading import read

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    path = tmp_path / "whole.parquet"
    table = pa.table({"x": [f"value {i}" for i in range(2000)], "n": range(2000)})
    pq.write_table(table, path, row_group_size=1000)
    return path


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1PAR1", b"x" * 100, b"id,name\n1,a\n" * 10])
def test_what_is_no_parquet_file(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(content)
    with pytest.raises(NotParquetError, match=r"a\.parquet is not a Parquet file"):
        read(path, x="string")


def test_a_directory(tmp_path: Path) -> None:
    with pytest.raises(DataFileError):
        read(tmp_path, x="string")


@pytest.mark.usefixtures("unprivileged")
def test_a_forbidden_file(whole: Path) -> None:
    whole.chmod(0)
    with pytest.raises(AccessDeniedError):
        read(whole, x="string")


def test_every_truncation_is_an_error(whole: Path) -> None:
    data = whole.read_bytes()
    for length in range(0, len(data), max(1, len(data) // 60)):
        whole.write_bytes(data[:length])
        with pytest.raises(DataFileError):
            read(whole, x="string")


def test_a_file_that_is_cut_short_while_it_is_read(whole: Path) -> None:
    with ParquetColumns(normalise(whole), [ColumnSpec(("x",), "string")]) as columns:
        list(columns.batches(0))
        os.truncate(whole, 100)
        with pytest.raises(DataFileError):
            list(columns.batches(1))


def test_altered_pages_raise_nothing_but_typed_errors(whole: Path) -> None:
    """Pages carry no checksum here, so altered values may pass; what must not happen is any other exception.

    The footer is left alone: pyarrow's metadata bindings abort the process on size statistics that contradict the
    schema, before anyone could catch an error.
    """
    data = np.frombuffer(whole.read_bytes(), np.uint8)
    footer_bytes = int(data[-8:-4].view("<u4")[0]) + 8
    rng = np.random.default_rng(7)
    refused = 0
    for _ in range(100):
        altered = data.copy()
        altered[rng.integers(0, len(data) - footer_bytes, 3)] = rng.integers(0, 256, 3)
        whole.write_bytes(altered.tobytes())
        try:
            read(whole, x="string")
        except LakebloomError:
            refused += 1
    assert refused
