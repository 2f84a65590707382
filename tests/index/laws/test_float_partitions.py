"""Partitions of floating-point columns: NaN and the infinities are values like others, and equal themselves."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyiceberg.transforms import IdentityTransform

from lakebloom import Lakebloom, col
from lakebloom.errors import ValueConversionError
from lakebloom.tables.constants import constant_array
from lakebloom.tables.formats.iceberg.table import Source
from tests.index.delta_lake import DeltaIndexes
from tests.index.iceberg_lake import IcebergIndexes
from tests.index.logged_lake import NAME, ordered
from tests.tables.formats.delta import hand_table as delta
from tests.tables.formats.delta.judge import judged_rows as rows_by_deltalake
from tests.tables.formats.iceberg import hand_table as iceberg
from tests.tables.formats.iceberg.judge import judged_rows as rows_by_pyiceberg
from tests.tables.formats.iceberg.sql_catalog import local_catalog

if TYPE_CHECKING:
    from pathlib import Path

NUMBERS = [math.nan, math.inf, -math.inf, 1.5, -0.0, 2.0**70, None]
KINDS = {"double": pa.float64(), "float": pa.float32()}


def rows_of(kind: str) -> pa.Table:
    """A row for each number."""
    return pa.table({"k": pa.array(range(len(NUMBERS)), pa.int64()), "v": pa.array(NUMBERS, KINDS[kind])})


def is_larger(one: float, other: float) -> bool:
    """As Spark compares: NaN is larger than all others."""
    return not math.isnan(other) and (math.isnan(one) or one > other)


def assert_found(lake: Lakebloom, judged: list[dict[str, Any]]) -> None:
    """Ask for every key and every number, and compare with the rows that the table's own reader gives."""

    def found(predicate: Any) -> list[str]:
        return ordered(lake.lookup(NAME, predicate).to_pylist())

    for row in judged:
        assert found(col("k") == row["k"]) == ordered([row])
        number = row["v"]
        if number is None:
            assert found(col("v").is_null()) == ordered([row])
            continue
        equal = [each for each in judged if each["v"] == number or repr(each["v"]) == repr(number)]
        assert found(col("v") == number) == ordered(equal)
        assert found((col("k") == row["k"]) & (col("v") == number)) == ordered([row])
        larger = [each for each in judged if each["v"] is not None and is_larger(each["v"], number)]
        assert found(col("v") > number) == ordered(larger)


@pytest.mark.parametrize("kind", KINDS)
def test_a_delta_table_by_deltalake(tmp_path: Path, kind: str) -> None:
    write_deltalake(tmp_path / "t", rows_of(kind), partition_by=["v"])
    indexes = DeltaIndexes(tmp_path, tmp_path / "t")
    indexes.create("k")
    judged = rows_by_deltalake(tmp_path / "t")
    assert ordered(judged) == ordered(rows_of(kind).to_pylist())
    assert_found(indexes.open(), judged)


@pytest.mark.parametrize(("text", "number"), [("NaN", math.nan), ("Infinity", math.inf), ("-Infinity", -math.inf)])
def test_a_delta_table_as_spark_writes_it(tmp_path: Path, text: str, number: float) -> None:
    table = delta.HandTable(
        tmp_path / "t", [delta.field("k", "long"), delta.field("v", "double")], partitions=["v"], features=[]
    )
    rows = pa.table({"k": pa.array([1], pa.int64())})
    table.commit(table.add("a.parquet", rows, {"v": text}), table.add("b.parquet", rows, {"v": "1.0E10"}))
    indexes = DeltaIndexes(tmp_path, tmp_path / "t")
    indexes.create("k")
    assert ordered(rows_by_deltalake(tmp_path / "t")) == ordered([{"k": 1, "v": number}, {"k": 1, "v": 1e10}])
    lake = indexes.open()
    assert ordered(lake.lookup(NAME, col("v") == number).to_pylist()) == ordered([{"k": 1, "v": number}])
    assert ordered(lake.lookup(NAME, col("k") == 1).to_pylist()) == ordered(rows_by_deltalake(tmp_path / "t"))


@pytest.mark.parametrize("kind", KINDS)
def test_an_iceberg_table_by_pyiceberg(tmp_path: Path, kind: str) -> None:
    table = local_catalog(tmp_path).create_table("db.t", rows_of(kind).schema)
    with table.update_spec() as update:
        update.add_field("v", IdentityTransform())
    rows = rows_of(kind).slice(1)  # pyiceberg does not write partitions of NaN
    table.append(rows)
    indexes = IcebergIndexes(tmp_path, tmp_path / "none", Source(directory=table.location()))
    indexes.create("k")
    judged = rows_by_pyiceberg(table.metadata_location)
    assert ordered(judged) == ordered(rows.to_pylist())
    assert_found(indexes.open(), judged)


@pytest.mark.parametrize("has_column", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_an_iceberg_table_with_equality_deletes(tmp_path: Path, kind: str, has_column: bool) -> None:
    """A file that was migrated does not have the column of its partition."""
    spec = {"name": "v", "transform": "identity", "source-id": 2, "field-id": 1000, "result": kind}
    fields = [iceberg.column(1, "k", "long"), iceberg.column(2, "v", kind)]
    table = iceberg.HandTable(tmp_path / "t", fields, spec=[spec])
    schema = pa.schema([iceberg.with_id("k", pa.int64(), 1), iceberg.with_id("v", KINDS[kind], 2)])
    rows = rows_of(kind).cast(schema)
    for place, number in enumerate(NUMBERS):
        row = rows.slice(place, 1)
        table.commit(table.data(row if has_column else row.select(["k"]), 0, (number,)))
    indexes = IcebergIndexes(tmp_path, tmp_path / "t")
    indexes.create("k")
    judged = rows_by_pyiceberg(table.metadata_file)
    assert ordered(judged) == ordered(rows.to_pylist())
    assert_found(indexes.open(), judged)
    deleted = pa.schema([schema.field("v")])
    for number in (math.nan, math.inf):
        table.commit(table.equality(pa.table([pa.array([number], KINDS[kind])], schema=deleted), [2], 0, (number,)))
    gone = [repr(math.nan), repr(math.inf)]
    assert_found(indexes.open(), [row for row in judged if repr(row["v"]) not in gone])
    for number in range(2):
        assert indexes.open().lookup(NAME, col("k") == number).num_rows == 0


@pytest.mark.parametrize("text", ['"nan"', '"inf"', '"1.5"', "true", '["NaN"]'])
def test_other_texts_are_no_numbers(text: str) -> None:
    with pytest.raises(ValueConversionError, match="no double"):
        constant_array("v", pa.float64(), text)
