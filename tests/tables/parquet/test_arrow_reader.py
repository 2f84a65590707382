"""PyArrow's reader without ``pyarrow.parquet``: what it reads is what ``pyarrow.parquet`` reads."""

from __future__ import annotations

import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakebloom.tables.parquet.arrow_reader import open_footer, open_reader

TABLE = pa.table(
    {
        "number": pa.array([1, None, 3], pa.int32()),
        "text": pa.array(["a", "b", None]),
        "nested": pa.array([{"x": 1, "y": ["p"]}, None, {"x": 2, "y": []}]),
        "time": pa.array([datetime.datetime(2500, 1, 1), None, datetime.datetime(1970, 1, 1)], pa.timestamp("us")),
        "id": pa.array([b"0123456789abcdef", None, b"fedcba9876543210"], pa.binary(16)).cast(pa.uuid()),
        "document": pa.array(['{"a": 1}', None, "{}"]).cast(pa.json_()),
    }
)


def footer_of(path: Path) -> bytes:
    data = path.read_bytes()
    return data[-8 - int.from_bytes(data[-8:-4], "little") : -8]


@pytest.mark.parametrize("options", [{}, {"store_schema": False}, {"use_deprecated_int96_timestamps": True}])
def test_types_and_values_are_those_of_pyarrow_parquet(tmp_path: Path, options: dict[str, bool]) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(TABLE, path, **options)
    expected = pq.ParquetFile(path, coerce_int96_timestamp_unit="us")
    parsed = open_footer(footer_of(path))
    assert parsed.schema_arrow == expected.schema_arrow
    assert parsed.metadata.equals(expected.metadata)
    reader = open_reader(pa.OSFile(str(path)), parsed.metadata)
    assert reader.read_row_groups([0]).equals(expected.read())
    leaves = [0, 2, 3]  # the second leaf of the struct is the fourth of the file
    assert reader.read_row_groups([0], leaves).equals(expected.read(columns=["number", "nested"]))


def test_leaves_are_read_as_dictionaries(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(TABLE, path)
    reader = open_reader(pa.OSFile(str(path)), open_footer(footer_of(path)).metadata, dictionaries={1})
    found = reader.read_row_groups([0], [1])["text"]
    assert pa.types.is_dictionary(found.type)
    assert found.to_pylist() == ["a", "b", None]


@pytest.mark.parametrize("footer", [b"", b"no footer", b"\x15\x04"])
def test_what_is_no_footer_is_an_error_of_arrow(footer: bytes) -> None:
    with pytest.raises((pa.ArrowException, OSError)):
        open_footer(footer)
