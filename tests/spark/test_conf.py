"""Where indexes are kept unless someone says otherwise: never among the tables of a database."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lakebloom import Lakebloom
from lakebloom.spark.conf import beside
from lakebloom.storage import normalise

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

WAREHOUSES = [
    ("/data/warehouse", "/data/warehouse-lakebloom"),
    ("/data/warehouse//", "/data/warehouse-lakebloom"),
    ("spark-warehouse", "spark-warehouse-lakebloom"),
    ("file:/data/warehouse", "file:/data/warehouse-lakebloom"),
    ("file:///data/a b/warehouse/", "file:///data/a b/warehouse-lakebloom"),
    ("hdfs://name:8020/user/hive/warehouse", "hdfs://name:8020/user/hive/warehouse-lakebloom"),
    ("hdfs:///warehouse", "hdfs:///warehouse-lakebloom"),
    ("s3a://bucket/warehouse/", "s3a://bucket/warehouse-lakebloom"),
    ("abfss://c@account.dfs.core.windows.net/w", "abfss://c@account.dfs.core.windows.net/w-lakebloom"),
    ("s3://bucket", "s3://bucket/_lakebloom"),
    ("s3://bucket/", "s3://bucket/_lakebloom"),
    ("file:/", "file:/_lakebloom"),
    ("file:///", "file:///_lakebloom"),
    ("hdfs://name/", "hdfs://name/_lakebloom"),
    ("/", "/_lakebloom"),
]


@pytest.mark.parametrize(("warehouse", "place"), WAREHOUSES)
def test_the_place_beside_a_warehouse(warehouse: str, place: str) -> None:
    assert beside(warehouse) == place


@pytest.mark.spark
def test_no_table_meets_the_default_location(spark: SparkSession, database: str, tmp_path: Path) -> None:
    warehouse = normalise(spark.conf.get("spark.sql.warehouse.dir"))
    location = Lakebloom(spark).location
    assert not f"{location}/".startswith(f"{warehouse}/")
    tables = [f"{database}.lakebloom", f"{database}._lakebloom", "`default`.lakebloom"]
    for name in tables:
        spark.sql(f"CREATE TABLE {name} (k BIGINT) USING parquet")
    try:
        for name in tables:
            described = spark.sql(f"DESCRIBE TABLE EXTENDED {name}").where("col_name = 'Location'").first()
            place = normalise(described.data_type)
            assert not f"{location}/".startswith(f"{place}/")
            assert not f"{place}/".startswith(f"{location}/")
    finally:
        spark.sql("DROP TABLE `default`.lakebloom")
