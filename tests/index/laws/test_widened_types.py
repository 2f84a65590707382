"""Columns whose type is widened: filters of the old type never lose a row, and never cut a value of the new one."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lakebloom import Lakebloom, col
from lakebloom.errors import UnsupportedTypeError
from tests.index.delta_lake import DeltaIndexes
from tests.index.iceberg_lake import IcebergIndexes
from tests.index.logged_lake import NAME, LoggedIndexes
from tests.tables.formats.delta.hand_table import HandTable as DeltaTable
from tests.tables.formats.delta.hand_table import field
from tests.tables.formats.iceberg.hand_table import HandTable as IcebergTable
from tests.tables.formats.iceberg.hand_table import column, with_id

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

ARROW = {
    "short": pa.int16(), "integer": pa.int32(), "int": pa.int32(), "long": pa.int64(), "float": pa.float32(),
    "double": pa.float64(), "date": pa.date32(), "timestamp_ntz": pa.timestamp("us"),
    "decimal(5,2)": pa.decimal128(5, 2), "decimal(10,2)": pa.decimal128(10, 2), "decimal(10,4)": pa.decimal128(10, 4),
    "decimal(12,2)": pa.decimal128(12, 2), "decimal(18,2)": pa.decimal128(18, 2), "decimal(20,0)": pa.decimal128(20, 0),
    "decimal(22,2)": pa.decimal128(22, 2), "decimal(30,2)": pa.decimal128(30, 2),
}  # fmt: skip
TENTH = 0.10000000149011612
"""A tenth as a float stores it, which is another number as a double."""
WIDENED: list[tuple[str, str, list[Any], list[Any]]] = [
    ("float", "double", [0.1, -0.0, math.nan], [0.1, 0.0, 1e300]),
    ("decimal(5,2)", "decimal(10,2)", [Decimal("1.25")], [Decimal("1.25"), Decimal("12345678.25")]),
    ("decimal(18,2)", "decimal(30,2)", [Decimal("1.25")], [Decimal("1.25"), Decimal(9 * 10**20)]),
]
"""Old type, new type, values of a file of each."""
BY_DELTA: list[tuple[str, str, list[Any], list[Any]]] = [
    ("short", "integer", [1, -5], [1, 65_537]),
    ("short", "long", [1], [1, 1 << 40]),
    ("integer", "long", [5], [5, 5 + (1 << 32)]),
    ("integer", "double", [3, 2**31 - 1], [3.0, 3.5]),
    ("integer", "decimal(12,2)", [3], [Decimal("3.00"), Decimal("3.25")]),
    ("long", "decimal(20,0)", [3], [Decimal(3), Decimal(10**19)]),
    ("long", "decimal(22,2)", [3], [Decimal("3.00"), Decimal("3.50")]),
    ("decimal(5,2)", "decimal(10,4)", [Decimal("1.25")], [Decimal("1.2500"), Decimal("1.2501")]),
]


def _delta(
    root: Path, old: str, new: str, before: pa.Table, after: pa.Table
) -> tuple[LoggedIndexes, Callable[[], int]]:
    table = DeltaTable(root / "t", [field("v", old), field("at", "long")], features=("deletionVectors", "typeWidening"))
    table.commit(table.add("old.parquet", before))
    indexes = DeltaIndexes(root, root / "t")

    def widen() -> int:
        changed = field("v", new, **{"delta.typeChanges": [{"fromType": old, "toType": new}]})
        table.commit(table.schema([changed, field("at", "long")]))
        return table.commit(table.add("new.parquet", after))

    return indexes, widen


def _iceberg(
    root: Path, old: str, new: str, before: pa.Table, after: pa.Table
) -> tuple[LoggedIndexes, Callable[[], int]]:
    table = IcebergTable(root / "t", [column(1, "v", _spaced(old)), column(2, "at", "long")])
    table.commit(table.data(_with_ids(before)))
    indexes = IcebergIndexes(root, root / "t")

    def widen() -> int:
        table.schema([column(1, "v", _spaced(new)), column(2, "at", "long")])
        return table.commit(table.data(_with_ids(after)))

    return indexes, widen


def _spaced(kind: str) -> str:
    return kind.replace(",", ", ")


def _with_ids(rows: pa.Table) -> pa.Table:
    return rows.cast(pa.schema([with_id(each.name, each.type, at + 1) for at, each in enumerate(rows.schema)]))


def _rows(kind: str, values: Sequence[Any], start: int) -> pa.Table:
    numbers = pa.array(range(start, start + len(values)), pa.int64())
    return pa.table({"v": pa.array(values, ARROW[kind]), "at": numbers})


def _is_equal(one: Any, other: Any) -> bool:
    """Compare as Spark does: NaN is equal to NaN, and the zeros are equal."""
    return one == other or (one != one and other != other)


def _found(lake: Lakebloom, value: Any) -> list[int]:
    return sorted(lake.lookup(NAME, col("v") == value)["at"].to_pylist())


@pytest.mark.parametrize("granularity", ["file", "row_group"])
@pytest.mark.parametrize(
    ("make", "old", "new", "before", "after"),
    [
        *((_delta, *case) for case in (*WIDENED, *BY_DELTA)),
        *((_iceberg, *case) for case in (*WIDENED, ("int", "long", [5], [5, 5 + (1 << 32)]))),
    ],
)
def test_a_lookup_finds_what_a_scan_finds(
    tmp_path: Path, make: Any, old: str, new: str, before: list[Any], after: list[Any], granularity: Any
) -> None:
    files = _rows(old, before, 0), _rows(new, after, len(before))
    indexes, widen = make(tmp_path, old, new, *files)
    indexes.create("v", granularity=granularity)
    widen()
    whole = files[0]["v"].cast(ARROW[new]).to_pylist() + files[1]["v"].to_pylist()
    lake = indexes.open()
    for refresh in (None, "quick", "full"):
        if refresh is not None:
            indexes.refresh(refresh)
        for value in [*whole, TENTH] if new == "double" else whole:
            assert _found(lake, value) == [at for at, each in enumerate(whole) if _is_equal(each, value)], value
    assert lake.verify_index(NAME).false_negatives == 0


def test_a_date_that_became_a_time_is_refused_and_never_left_out(tmp_path: Path) -> None:
    moment = datetime.datetime(2024, 1, 2, 3)
    files = _rows("date", [moment.date()], 0), _rows("timestamp_ntz", [moment], 1)
    indexes, widen = _delta(tmp_path, "date", "timestamp_ntz", *files)
    indexes.create("v")
    widen()
    for _ in range(2):
        with pytest.raises(UnsupportedTypeError, match="column v of the file cannot be read as timestamp"):
            indexes.open().lookup(NAME, col("v") == moment)
        indexes.refresh()
