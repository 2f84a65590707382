"""Indexes in SQL: the same answers as the API's."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING

import pytest

from lakebloom import BloomIndexConfig, Lakebloom, col
from lakebloom.errors import ColumnNotFoundError, UnsupportedSessionError, ValueConversionError
from lakebloom.spark.table_functions import equal_to
from lakebloom.tables.schema import TableSchema
from lakebloom.tables.spark_schema import Field, StructType
from tests.spark.support import keys

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture
def indexed(lake: Lakebloom, tmp_path: Path) -> Lakebloom:
    table = keys(tmp_path / "t", range(100), range(100, 200), [*range(200, 300), None])
    lake.create_index(table, BloomIndexConfig("by_k", ["k"], fpp=1e-6))
    lake.register_functions()
    return lake


def names(frame: DataFrame) -> list[str]:
    return sorted(row["path"].rpartition("/")[2] for row in frame.collect())


def test_indexes(spark: SparkSession, indexed: Lakebloom) -> None:
    (row,) = spark.sql("SELECT * FROM lakebloom_indexes()").collect()
    record = indexed.index("by_k")
    assert (row.name, row.state, row.version, row.columns) == ("by_k", "active", 1, ["k"])
    shared = ("source", "format", "files", "units", "rows", "segments", "size_bytes", "source_bytes", "fpp")
    assert {name: row[name] for name in shared} == {name: getattr(record, name) for name in shared}
    seconds = spark.sql("SELECT unix_millis(changed) AS ms FROM lakebloom_indexes()").first()
    assert seconds is not None
    assert seconds.ms == record.timestamp_ms


def test_history_joins_like_any_table(spark: SparkSession, indexed: Lakebloom) -> None:
    indexed.optimize_index("by_k")
    found = spark.sql(
        "SELECT h.version, h.operation, h.summary['files_added'] AS added "
        "FROM lakebloom_indexes() i, LATERAL lakebloom_history(i.name) h ORDER BY version"
    ).collect()
    versions = [(record.version, record.operation) for record in reversed(indexed.history("by_k"))]
    assert [(row.version, row.operation) for row in found] == versions
    assert found[0].added == 3


@pytest.mark.parametrize(
    ("value", "expected"), [("'150'", ["1.parquet"]), ("150", ["1.parquet"]), ("NULL", ["2.parquet"]), ("'1000'", [])]
)
def test_candidates(spark: SparkSession, indexed: Lakebloom, value: str, expected: list[str]) -> None:
    frame = spark.sql(f"SELECT * FROM lakebloom_candidates('by_k', 'K', {value})")
    assert names(frame) == expected
    for row in frame.collect():
        assert (row.row_start, row.row_groups) == (0, [0])


def test_errors_name_the_cause(spark: SparkSession, indexed: Lakebloom) -> None:
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException, match=r"\[INDEX_NOT_FOUND\] there is no index named 'nope'"):
        spark.sql("SELECT * FROM lakebloom_history('nope')").collect()
    with pytest.raises(PySparkException, match=r"\[UNKNOWN_COLUMN\] the table has no column kk"):
        spark.sql("SELECT * FROM lakebloom_candidates('by_k', 'kk', '1')").collect()


def test_values_are_read_as_the_column_s_type() -> None:
    kinds = [("d", "date"), ("s", "string"), ("n", "decimal(10,2)"), ("X", "integer"), ("x", "integer")]
    struct = StructType(tuple(Field(*kind) for kind in kinds))
    columns = TableSchema(struct)
    assert equal_to(columns, "d", "2024-02-29") == (col("d") == datetime.date(2024, 2, 29))
    assert equal_to(columns, "d", datetime.date(2024, 2, 29)) == (col("d") == datetime.date(2024, 2, 29))
    assert equal_to(columns, "S", "NULL") == (col("s") == "NULL")
    assert equal_to(columns, "s", None) == col("s").is_null()
    assert equal_to(TableSchema(struct, case_sensitive=True), "x", 5) == (col("x") == 5)
    with pytest.raises(ColumnNotFoundError):
        equal_to(columns, "nope", 5)
    with pytest.raises(ValueConversionError):
        equal_to(columns, "n", "1e60")


def test_a_session_is_needed(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedSessionError):
        Lakebloom(location=tmp_path).register_functions()
