"""Files that Spark wrote, of every type that can have an index."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lakebloom import hash_values
from lakebloom.tables.columns import parse_name
from lakebloom.tables.parquet.columns import ColumnSpec
from tests.tables.reading import read_columns, spark_hashes

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

ROWS = 3000
COLUMNS = {
    "string": "IF(id % 7 = 0, NULL, CONCAT('k', id * 7919))",
    "few_strings": "IF(id % 7 = 0, NULL, CONCAT('é', id % 10))",
    "binary": "UNHEX(SHA2(CAST(id AS STRING), 256))",
    "smallint": "CAST(id - 1500 AS SMALLINT)",
    "int": "CAST(id * 700001 % 2000000000 - 1000000000 AS INT)",
    "bigint": "id * 1000000007 * IF(id % 2 = 0, 1, -1)",
    "float": "CASE id % 5 WHEN 0 THEN CAST('NaN' AS FLOAT) WHEN 1 THEN CAST('-0.0' AS FLOAT) WHEN 2 THEN 0F "
    "ELSE CAST(id / 7 AS FLOAT) END",
    "double": "CASE id % 5 WHEN 0 THEN DOUBLE('NaN') WHEN 1 THEN DOUBLE('-0.0') WHEN 2 THEN 0D ELSE id / 7 END",
    "date": "DATE_ADD(DATE'1970-01-01', CAST(id * 60 - 90000 AS INT))",
    "timestamp": "TIMESTAMP_MICROS(id * 86400000123 - 100000000000000)",
    "timestamp_ntz": "CAST(TIMESTAMP_MICROS(id * 86400000123 - 100000000000000) AS TIMESTAMP_NTZ)",
    "struct": "IF(id % 3 = 0, NULL, NAMED_STRUCT('Leaf', IF(id % 5 = 0, NULL, CONCAT('v', id)), 'deep', "
    "IF(id % 4 = 0, NULL, NAMED_STRUCT('x.y', id))))",
    "decimal_9": "CAST(id - 1500.25 AS DECIMAL(9,2))",
    "decimal_18": "CAST(id * 1000003.125 AS DECIMAL(18,3))",
    "decimal_38": "CAST(id AS DECIMAL(38,6)) * -100000000000000000000",
}
HASHED = {
    "`string`": "string",
    "few_strings": "string",
    "`binary`": "binary",
    "`smallint`": "smallint",
    "`int`": "int",
    "`bigint`": "bigint",
    "`float`": "float",
    "`double`": "double",
    "`date`": "date",
    "`timestamp`": "timestamp",
    "`timestamp_ntz`": "timestamp_ntz",
    "struct.leaf": "string",
    "struct.deep.`x.y`": "bigint",
}
DECIMALS = {"decimal_9": "decimal(9,2)", "decimal_18": "decimal(18,3)", "decimal_38": "decimal(38,6)"}
WRITERS = {
    "default": {},
    "microseconds, no dictionaries": {
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.parquet.writeLegacyFormat": "true",
        "parquet.enable.dictionary": "false",
        "spark.sql.parquet.compression.codec": "zstd",
    },
    "milliseconds, second version": {
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MILLIS",
        "parquet.writer.version": "PARQUET_2_0",
        "parquet.block.size": "65536",
    },
}


@pytest.mark.spark
@pytest.mark.parametrize("name", WRITERS)
def test_hashes_are_those_of_spark(name: str, spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    frame = spark.range(0, ROWS, 1, 1).selectExpr(*(f"{sql} AS `{column}`" for column, sql in COLUMNS.items()))
    session = {key: value for key, value in WRITERS[name].items() if key.startswith("spark.")}
    writer = {key: value for key, value in WRITERS[name].items() if not key.startswith("spark.")}
    for key, value in session.items():
        spark.conf.set(key, value)
    try:
        frame.write.options(**writer).parquet(str(table))
    finally:
        for key in session:
            spark.conf.unset(key)
    (path,) = table.glob("*.parquet")
    written = spark.read.parquet(str(path))
    specs = [ColumnSpec(parse_name(column), kind) for column, kind in (HASHED | DECIMALS).items()]
    ours = dict(zip(HASHED | DECIMALS, read_columns(path, specs), strict=True))
    for column, theirs in zip(HASHED, spark_hashes(written, *HASHED), strict=True):
        assert hash_values(ours[column]).tolist() == theirs, column
    rows = written.select(*DECIMALS).collect()
    assert [ours[column].to_pylist() for column in DECIMALS] == [list(column) for column in zip(*rows, strict=True)]
