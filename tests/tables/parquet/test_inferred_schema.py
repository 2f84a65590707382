"""The schema of a directory of Parquet files is the one that Spark infers."""

from __future__ import annotations

import datetime
import decimal
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakebloom.index.build.parquet_directory import parquet_source
from lakebloom.tables.schema import TableSchema
from tests.spark.needs import HAS_COLLATIONS

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

DAY, MOMENT = datetime.date(2024, 5, 6), datetime.datetime(2024, 5, 6, 7, 8, 9)
COLUMNS = {
    "b": pa.array([True]),
    "i8": pa.array([1], pa.int8()),
    "i16": pa.array([1], pa.int16()),
    "i32": pa.array([1], pa.int32()),
    "i64": pa.array([1], pa.int64()),
    "u8": pa.array([1], pa.uint8()),
    "u16": pa.array([1], pa.uint16()),
    "u32": pa.array([1], pa.uint32()),
    "u64": pa.array([1], pa.uint64()),
    "f": pa.array([1.0], pa.float32()),
    "d": pa.array([1.0]),
    "day": pa.array([DAY]),
    "utc": pa.array([MOMENT], pa.timestamp("us", "UTC")),
    "ntz": pa.array([MOMENT], pa.timestamp("ms")),
    "dec": pa.array([decimal.Decimal("1.25")], pa.decimal128(30, 2)),
    "s": pa.array(["a"]),
    "large": pa.array(["a"], pa.large_string()),
    "dict": pa.array(["a"]).dictionary_encode(),
    "bin": pa.array([b"a"]),
    "fixed": pa.array([b"abcd"], pa.binary(4)),
    "nested": pa.array([{"a": 1, "s": {"deep": "x"}}]),
    "list": pa.array([[1]]),
    "map": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())),
}


def spark_types(schema_json: str) -> list[tuple[tuple[str, ...], str]]:
    return list(TableSchema.parse(schema_json).types.items())


def inferred(path: Path) -> list[tuple[tuple[str, ...], str]]:
    return list(parquet_source(path, {}).schema.types.items())


@pytest.mark.spark
def test_of_files_by_arrow(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(pa.table(COLUMNS), tmp_path / "a.parquet")
    assert inferred(tmp_path) == spark_types(spark.read.parquet(str(tmp_path)).schema.json())


@pytest.mark.spark
def test_of_old_timestamps(spark: SparkSession, tmp_path: Path) -> None:
    old = pa.table({"t": COLUMNS["utc"], "n": COLUMNS["ntz"], "i": COLUMNS["i64"]})
    pq.write_table(old, tmp_path / "a.parquet", use_deprecated_int96_timestamps=True)
    assert inferred(tmp_path) == spark_types(spark.read.parquet(str(tmp_path)).schema.json())


@pytest.mark.spark
def test_of_files_by_spark_with_partitions(spark: SparkSession, tmp_path: Path) -> None:
    text = "'x' COLLATE UTF8_LCASE" if HAS_COLLATIONS else "'x'"
    frame = spark.sql(f"SELECT 1 AS k, {text} AS c, CAST('y' AS CHAR(3)) AS p, named_struct('l', 2L) AS s")
    frame.write.partitionBy("p").parquet(str(tmp_path / "t"))
    record = parquet_source(tmp_path / "t", {})
    assert list(record.schema.types.items()) == spark_types(spark.read.parquet(str(tmp_path / "t")).schema.json())
    assert record.partition_columns == ("p",)
