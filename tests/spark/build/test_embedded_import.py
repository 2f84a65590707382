"""Filters that Spark wrote into its files, as those of an index."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakebloom import BloomIndexConfig, col

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from lakebloom import Lakebloom

COLUMNS = ["k", "i", "h", "s", "b", "day", "t", "ntz", "dec", "wide", "st.leaf"]


def test_filters_of_spark(spark: SparkSession, lake: Lakebloom, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    frame = spark.range(0, 3000, 1, 3).selectExpr(
        "id * 7 AS k", "CAST(id AS INT) AS i", "CAST(id AS SMALLINT) AS h", "CAST(id AS STRING) AS s",
        "CAST(CAST(id AS STRING) AS BINARY) AS b", "date_add(DATE'1500-01-01', CAST(id AS INT)) AS day",
        "timestamp_micros(id * 1000000007) AS t", "CAST(timestamp_micros(id * 1000000007) AS TIMESTAMP_NTZ) AS ntz",
        "CAST(id / 8 AS DECIMAL(12,3)) AS dec", "CAST(id / 8 AS DECIMAL(30,3)) AS wide", "id / 8D AS d",
        "IF(id % 3 = 0, NULL, named_struct('leaf', CAST(id AS STRING))) AS st",
    )  # fmt: skip
    # Dictionaries keep parquet-java from writing filters.
    written = frame.write.option("parquet.bloom.filter.enabled", "true").option("parquet.enable.dictionary", "false")
    written = written.option("parquet.bloom.filter.expected.ndv#k", 1000).option("parquet.bloom.filter.max.bytes", 4096)
    spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    try:
        written.parquet(path)
    finally:
        spark.conf.unset("spark.sql.parquet.outputTimestampType")

    config = BloomIndexConfig("taken", [*COLUMNS, "d"], granularity="row_group", fpp=0.01)
    report = lake.create_index(path, config, from_embedded=True)
    assert (report.units, report.filters_imported) == (3, 3 * len(COLUMNS))
    assert [(why.column, why.files) for why in report.read_anyway] == [("d", 3)]
    verified = lake.verify_index("taken")
    assert verified.ok
    assert verified.values_checked == 12 * 3000 - 1000
    assert lake.candidates("taken", col("k") == 7).num_rows == 1
    assert lake.lookup("taken", col("st.leaf") == "1501", ["k"])["k"].to_pylist() == [1501 * 7]
    assert lake.candidates("taken", col("st.leaf").is_not_null()).num_rows == 3

    frame.limit(10).write.mode("append").parquet(path)
    assert [why.files for why in lake.refresh_index("taken", from_embedded=True).read_anyway] == [1] * 12
