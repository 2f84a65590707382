"""Partition values of a Delta table, which its log has as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from lakebloom.errors import ValueConversionError
from tests.index.delta_lake import DeltaIndexes
from tests.index.logged_lake import NAME
from tests.tables.formats.delta.hand_table import HandTable, field
from tests.tables.formats.delta.judge import judged_rows

if TYPE_CHECKING:
    from pathlib import Path


def indexed(root: Path, kind: str, value: str) -> DeltaIndexes:
    features = ("deletionVectors", *(["timestampNtz"] if kind == "timestamp_ntz" else []))
    table = HandTable(root / "t", [field("k", "long"), field("p", kind)], partitions=["p"], features=features)
    table.commit(table.add("a.parquet", pa.table({"k": pa.array([1], pa.int64())}), {"p": value}))
    indexes = DeltaIndexes(root, root / "t")
    indexes.create("k")
    return indexes


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("boolean", "true"), ("byte", "-5"), ("short", "300"), ("integer", "-7"), ("long", str(1 << 40)),
        ("float", "1.5"), ("double", "1E10"), ("decimal(10,2)", "-3.00"), ("date", "0001-01-01"), ("string", "%20 ü"),
        ("binary", "abc"), ("timestamp_ntz", "2024-05-06 01:02:03.123456"), ("timestamp", "2024-05-06T01:02:03Z"),
        ("timestamp", "2024-05-06T01:02:03.123456Z"),
    ],
)  # fmt: skip
def test_values_are_those_that_deltalake_reads(tmp_path: Path, kind: str, value: str) -> None:
    assert indexed(tmp_path, kind, value).open().lookup(NAME, "k = 1").to_pylist() == judged_rows(tmp_path / "t")


@pytest.mark.parametrize("value", ["2024-05-06 01:02:03", "2024-05-06 01:02:03.123456"])
def test_a_time_without_a_zone_is_refused(tmp_path: Path, value: str) -> None:
    """The log does not say of which zone it is; deltalake takes it for UTC."""
    lake = indexed(tmp_path, "timestamp", value).open()
    with pytest.raises(
        ValueConversionError, match=r"^\S+ the log has no timestamp.* for the partition column p of .*/a"
    ):
        lake.lookup(NAME, "k = 1")
    assert lake.lookup(NAME, "k = 1", columns=["k"]).to_pylist() == [{"k": 1}]
