"""Units smaller than a file, several columns, nested leaves, and files older than their table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from lakebloom import BloomIndexConfig, Lakebloom, col
from tests.spark.support import kept, unit_filters, write

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("in_tasks")]


@pytest.mark.parametrize(
    ("granularity", "expected"),
    [
        ("file", [(0, 100, [0, 1, 2, 3])]),
        ("row_group", [(60, 30, [2])]),
        (40, [(40, 40, [1, 2])]),
        (7, [(63, 7, [2])]),
    ],
)
def test_granularity(lake: Lakebloom, tmp_path: Path, granularity: str | int, expected: list[tuple]) -> None:
    write(tmp_path / "t/0.parquet", {"k": pa.array(range(100))}, row_group_size=30)
    write(tmp_path / "t/1.parquet", {"k": pa.array(range(100, 150))}, row_group_size=30)
    lake.create_index(tmp_path / "t", BloomIndexConfig("x", ["k"], granularity=granularity, fpp=1e-6))
    found = lake.candidates("x", col("k") == 65)
    assert found["path"].to_pylist() == [str(tmp_path / "t/0.parquet")]
    assert [tuple(row.values())[1:] for row in found.to_pylist()] == expected
    assert lake.lookup("x", col("k") == 65).num_rows == 1
    assert sum(unit.row_count for unit in unit_filters(lake, "x")) == 150


def test_several_columns_and_leaves(spark: SparkSession, lake: Lakebloom, tmp_path: Path) -> None:
    columns = ["id", "IF(id < 50, NULL, named_struct('b', named_struct('c', id * 10), 'q', -id)) AS a", "id AS `a.b`"]
    for first in (0, 50):
        frame = spark.range(first, first + 50, 1, 1).selectExpr(*columns)
        frame.write.mode("append").parquet(str(tmp_path / "t"))
    lake.create_index(tmp_path / "t", BloomIndexConfig("x", ["id", "a.b.c", "`a.b`", "a.q"], fpp=1e-6))
    second = kept(lake, "x", col("id") == 70)
    assert len(second) == 1
    for predicate in (col("a.b.c") == 700, col("a.q") == -70, col("`a.b`") == 70, col("a.b.c").isin([700, 1])):
        assert kept(lake, "x", predicate) == second
    for predicate in (col("a.b.c") == 70, col("`a.b`") == 700, (col("id") == 70) & (col("a.q") == -3)):
        assert kept(lake, "x", predicate) == []
    assert len(kept(lake, "x", col("a.b.c").is_null())) == 1


def test_columns_that_old_files_lack(spark: SparkSession, lake: Lakebloom, tmp_path: Path) -> None:
    write(tmp_path / "t/0.parquet", {"k": pa.array([1, 2], pa.int32())})
    write(tmp_path / "t/1.parquet", {"k": pa.array([3, 1 << 40]), "s": pa.array([{"v": "a"}, None])})
    frame = spark.read.schema("k BIGINT, s STRUCT<v: STRING>").parquet(str(tmp_path / "t"))
    lake.create_index(frame, BloomIndexConfig("x", ["k", "s.v"], fpp=1e-6))
    assert kept(lake, "x", col("k") == 2) == ["0.parquet"]
    assert kept(lake, "x", col("k") == 1 << 40) == ["1.parquet"]
    assert kept(lake, "x", col("s.v") == "a") == ["1.parquet"]
    assert kept(lake, "x", col("s.v").is_null()) == ["0.parquet", "1.parquet"]
    assert lake.lookup("x", col("k") == 2).to_pylist() == [{"k": 2, "s": None}]


def test_merged_schemas(spark: SparkSession, lake: Lakebloom, tmp_path: Path) -> None:
    write(tmp_path / "t/0.parquet", {"k": pa.array([1, 2])})
    write(tmp_path / "t/1.parquet", {"k": pa.array([3]), "late": pa.array(["x"])})
    frame = spark.read.option("mergeSchema", "true").parquet(str(tmp_path / "t"))
    lake.create_index(frame, BloomIndexConfig("x", ["late"], fpp=1e-6))
    assert kept(lake, "x", col("late") == "x") == ["1.parquet"]
    write(tmp_path / "t/2.parquet", {"k": pa.array([4]), "late": pa.array(["y"])})
    assert lake.refresh_index("x").files == 1
    assert kept(lake, "x", col("late") == "y") == ["2.parquet"]


def test_a_widened_table(spark: SparkSession, lake: Lakebloom, tmp_path: Path, database: str) -> None:
    write(tmp_path / "t/0.parquet", {"k": pa.array([1, 2], pa.int32())})
    write(tmp_path / "t/1.parquet", {"k": pa.array([2, 3], pa.int64())})
    spark.sql(f"CREATE TABLE {database}.t (k BIGINT) USING parquet LOCATION '{tmp_path}/t'")
    lake.create_index(f"{database}.t", BloomIndexConfig("x", ["k"], fpp=1e-6))
    assert kept(lake, "x", col("k") == 2) == ["0.parquet", "1.parquet"]
    assert kept(lake, "x", col("k") == 1) == ["0.parquet"]
