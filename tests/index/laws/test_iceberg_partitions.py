"""Deletes reach the files of their partition, whatever types the manifests of different writers declare for it."""

from __future__ import annotations

import math
import uuid
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pytest

from lakebloom.errors import DataFileError
from tests.index.iceberg_lake import IcebergIndexes
from tests.index.logged_lake import NAME
from tests.tables.formats.iceberg.hand_table import Entry, HandTable, column, with_id
from tests.tables.formats.iceberg.judge import judged_rows

if TYPE_CHECKING:
    from pathlib import Path

KEY = pa.schema([with_id("k", pa.int32(), 1)])
WORDS = b"0123456789abcdef"


class Case(NamedTuple):
    kind: str
    stored: pa.DataType
    transform: str
    declared: tuple[str, str]
    """By the manifest of the data file, and by that of the deletes."""
    held: tuple[Any, Any]
    value: Any


CASES = {
    "day of a date": Case("date", pa.date32(), "day", ("date", "int"), (19782, 19782), 19782),
    "day of a date, the other way": Case("date", pa.date32(), "day", ("int", "date"), (19782, 19782), 19782),
    "day of a time": Case("timestamptz", pa.timestamp("us", "UTC"), "day", ("date", "int"), (1, 1), 86_400_000_001),
    "bucket": Case("long", pa.int64(), "bucket[8]", ("int", "long"), (5, 5), 77),
    "month": Case("date", pa.date32(), "month", ("int", "long"), (649, 649), 19782),
    "date": Case("date", pa.date32(), "identity", ("date", "int"), (19782, 19782), 19782),
    "time zone": Case("timestamptz", pa.timestamp("us", "UTC"), "identity", ("timestamptz", "timestamp"), (7, 7), 7),
    "time as a number": Case("timestamp", pa.timestamp("us"), "identity", ("timestamp", "long"), (7, 7), 7),
    "promoted": Case("long", pa.int64(), "identity", ("int", "long"), (7, 7), 7),
    "promoted float": Case("double", pa.float64(), "identity", ("float", "double"), (0.5, 0.5), 0.5),
    "uuid": Case("uuid", pa.binary(16), "identity", ("uuid", "fixed[16]"), (uuid.UUID(bytes=WORDS), WORDS), WORDS),
    "decimal": Case(
        "decimal(20, 2)", pa.decimal128(20, 2), "identity",
        ("decimal(9, 2)", "decimal(20, 2)"), (Decimal("1.50"), Decimal("1.50")), Decimal("1.50"),
    ),
    "decimal as bytes": Case(
        "decimal(9, 2)", pa.decimal128(9, 2), "truncate[10]",
        ("decimal(9, 2)", "fixed[4]"), (Decimal("-1.50"), b"\xff\xff\xff\x6a"), Decimal("-1.45"),
    ),
    "not a number": Case("double", pa.float64(), "identity", ("double", "double"), (math.nan, math.nan), math.nan),
}  # fmt: skip


class Written(NamedTuple):
    table: HandTable
    indexes: IcebergIndexes
    data: Entry

    def declare(self, kind: str) -> None:
        self.table.specs[0][0]["result"] = kind

    def keys(self, where: str = "k is not null") -> list[int]:
        return sorted(self.indexes.open().lookup(NAME, where, columns=["k"])["k"].to_pylist())


def written(root: Path, case: Case) -> Written:
    spec = {"name": "part", "transform": case.transform, "source-id": 2, "field-id": 1000, "result": case.declared[0]}
    table = HandTable(root / "t", [column(1, "k", "int"), column(2, "v", case.kind)], spec=[spec])
    schema = pa.schema([*KEY, with_id("v", case.stored, 2)])
    rows = pa.table([pa.array([1, 7], pa.int32()), pa.array([case.value] * 2, case.stored)], schema=schema)
    data = table.data(rows, 0, (case.held[0],))
    table.commit(data)
    indexes = IcebergIndexes(root, root / "t")
    indexes.create("k")
    return Written(table, indexes, data)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_equality_deletes_of_another_writer_apply(tmp_path: Path, case: Case) -> None:
    given = written(tmp_path, case)
    assert given.keys() == [1, 7]
    given.declare(case.declared[1])
    given.table.commit(given.table.equality(pa.table([[7]], schema=KEY), [1], 0, (case.held[1],)))
    assert given.keys() == [1]
    assert given.keys("k = 7") == []


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_position_deletes_of_another_writer_apply(tmp_path: Path, case: Case) -> None:
    given = written(tmp_path, case)
    given.declare(case.declared[1])
    like = given.data
    like.partition = (case.held[1],)
    given.table.commit(given.table.positions({like.path: [1]}, like))
    assert given.keys() == [1]
    assert given.keys("k = 7") == []


def test_pyiceberg_applies_position_deletes_of_another_writer(tmp_path: Path) -> None:
    given = written(tmp_path, CASES["day of a date"])
    given.declare("int")
    given.table.commit(given.table.positions({given.data.path: [1]}, given.data))
    judged = judged_rows(given.table.metadata_file)
    assert given.indexes.open().lookup(NAME, "k is not null").to_pylist() == judged
    assert [row["k"] for row in judged] == [1]


@pytest.mark.parametrize(
    ("kind", "stored", "values"),
    [
        ("double", pa.float64(), [0.0, -0.0, math.inf, -math.inf, math.nan, None]),
        ("date", pa.date32(), [0, 1, 2**31 - 1, -(2**31), None]),
        ("string", pa.string(), ["", "NaN", "null", None]),
    ],
)
def test_other_partitions_are_left_alone(tmp_path: Path, kind: str, stored: pa.DataType, values: list[Any]) -> None:
    spec = {"name": "v", "transform": "identity", "source-id": 2, "field-id": 1000, "result": kind}
    table = HandTable(tmp_path / "t", [column(1, "k", "int"), column(2, "v", kind)], spec=[spec])
    schema = pa.schema([*KEY, with_id("v", stored, 2)])
    for number, value in enumerate(values):
        rows = pa.table([pa.array([number], pa.int32()), pa.array([value], stored)], schema=schema)
        table.commit(table.data(rows, 0, (value,)))
    indexes = IcebergIndexes(tmp_path, tmp_path / "t")
    indexes.create("k")
    every = pa.table([pa.array(range(len(values)), pa.int32())], schema=KEY)
    for number, value in enumerate(values):
        table.commit(table.equality(every, [1], 0, (value,)))
        found = indexes.open().lookup(NAME, "k is not null", columns=["k"])["k"].to_pylist()
        assert sorted(found) == list(range(number + 1, len(values)))


@pytest.mark.parametrize(("declared", "held"), [("timestamp", 5), ("string", "x"), ("double", 1.5)])
def test_a_partition_that_does_not_fit_its_spec_is_an_error(tmp_path: Path, declared: str, held: Any) -> None:
    """Compared with others it would be another partition, and deleted rows would come back."""
    given = written(tmp_path, CASES["date"])
    given.declare(declared)
    given.table.commit(given.table.equality(pa.table([[7]], schema=KEY), [1], 0, (held,)))
    with pytest.raises(DataFileError, match="does not fit the table's partition spec"):
        given.keys()
