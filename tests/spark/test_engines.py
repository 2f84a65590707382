"""Candidates for other engines: DuckDB and Polars read the same rows as Spark, with the same partition columns."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING

import duckdb
import polars as pl

from lakebloom import BloomIndexConfig, Lakebloom, col

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

TEXTS = [
    "plain", "a/b", "100%", "%2F", "x=y", "it's", 'say "hi"', "sp ace", "a+b", "ü*?[1]{2}", "a:b", "#1", "back\\slash",
    "^", "007", "1e5", "2024-01-01", "true", "null", "NULL", "", None,
]  # fmt: skip


def test_partition_columns(spark: SparkSession, tmp_path: Path) -> None:
    rows = [
        (k, text, datetime.date(2024, 2, 28) + datetime.timedelta(k % 4) if k % 5 else None, f"{k:03}", k % 3 - 1)
        for k, text in enumerate(TEXTS)
    ]
    frame = spark.createDataFrame(rows, "k bigint, text string, day date, zeros string, n int")
    frame.coalesce(1).write.partitionBy("day", "text", "zeros", "n").parquet(str(tmp_path / "t"))
    table = spark.read.schema(frame.schema).parquet(str(tmp_path / "t"))
    Lakebloom(spark, tmp_path / "indexes").create_index(table, BloomIndexConfig("i", ["k"], fpp=1e-6))
    columns = ["k", "text", "day", "zeros", "n"]
    expected = sorted(tuple(row) for row in table.select(*columns).collect())
    assert [row[1] for row in expected] == [text or None for text in TEXTS]

    lake = Lakebloom(location=tmp_path / "indexes")
    kinds = {path[0]: kind for path, kind in lake.columns("i")}
    assert (kinds["day"], kinds["zeros"], kinds["n"]) == ("date", "string", "int")
    for wanted in (list(range(len(TEXTS))), [0], [8, 21], [5]):
        predicate = col("k").isin(wanted)
        paths = lake.candidates("i", predicate)["path"].to_pylist()
        assert len(paths) == len(wanted)
        right = [expected[k] for k in wanted]
        query = """
            SELECT k, text, day, zeros, n FROM read_parquet($paths, hive_partitioning = true,
            hive_types = {'day': DATE, 'text': VARCHAR, 'zeros': VARCHAR, 'n': INTEGER}) ORDER BY k"""
        assert duckdb.sql(query, params={"paths": paths}).fetchall() == right
        types = {"day": pl.Date, "text": pl.String, "zeros": pl.String, "n": pl.Int32}
        scanned = pl.scan_parquet(paths, hive_partitioning=True, hive_schema=types).select(columns).sort("k").collect()
        assert scanned.rows() == right
        assert [tuple(row.values()) for row in lake.lookup("i", predicate, columns).sort_by("k").to_pylist()] == right
