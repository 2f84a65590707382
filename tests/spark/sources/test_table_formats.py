"""Files of Delta Lake, Iceberg and Hudi tables are never taken for plain files; a Delta table as such is indexed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from lakebloom import BloomIndexConfig, Lakebloom, col
from lakebloom.errors import UnsupportedSourceError
from tests.spark.needs import readers
from tests.spark.support import keys, write

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
BY_K = BloomIndexConfig("by_k", ["k"], fpp=1e-6)
MARKERS = {
    "Delta Lake": "_delta_log/00000000000000000000.json",
    "Iceberg": "metadata/v1.metadata.json",
    "Hudi": ".hoodie/hoodie.properties",
}


def test_parts_of_a_delta_table(spark: SparkSession, lake: Lakebloom, database: str, tmp_path: Path) -> None:
    """Its directory holds deleted rows, and old versions of updated ones."""
    lakehouse = tmp_path / "lakehouse"
    table = lakehouse / "t"
    write_deltalake(str(table), pa.table({"k": [1, 2, 3], "v": [0, 0, 0], "p": [0, 0, 1]}), partition_by=["p"])
    delta = DeltaTable(str(table))
    delta.delete("k = 2")
    delta.update(predicate="k = 3", updates={"v": "v + 1"})
    file = next((table / "p=0").glob("*.parquet"))
    spark.sql(f"CREATE TABLE {database}.as_parquet (k BIGINT) USING parquet LOCATION '{table}'")
    spark.sql(f"CREATE TABLE {database}.one_partition (k BIGINT) USING parquet LOCATION '{table / 'p=1'}'")
    spark.read.parquet(str(table)).createOrReplaceTempView("v")
    named = {
        "a DataFrame": spark.read.parquet(str(table)),
        "a DataFrame of a part": spark.read.parquet(str(table / "p=0")),
        "a DataFrame of a file": spark.read.parquet(str(file)),
        "a partition": str(table / "p=0"),
        "a file": str(file),
        "a glob of files": f"{table}/*/*.parquet",
        "a glob of tables": f"{lakehouse}/*",
        "a parent": str(lakehouse),
        "parquet.path": f"parquet.`{table}`",
        "a table": f"{database}.as_parquet",
        "a table over a partition": f"{database}.one_partition",
        "a view": "v",
    }
    for name, source in named.items():
        for ask in (lake.advise, lambda source: lake.price_index(source, BY_K), lambda s: lake.create_index(s, BY_K)):
            with pytest.raises(UnsupportedSourceError, match="is a table of Delta Lake, ") as raised:
                ask(source)
            assert "_delta_log" in str(raised.value.found) or "delta" in name.lower()
    assert not list(lake.indexes())


@pytest.mark.parametrize("owner", MARKERS)
def test_a_directory_that_becomes_a_table(lake: Lakebloom, tmp_path: Path, owner: str) -> None:
    """An index that was built before then answers no more, except where Spark itself reads plain files."""
    table = keys(tmp_path / "t", range(10), range(10, 20))
    lake.create_index(table, BY_K)
    plain = Lakebloom(location=tmp_path / "indexes")
    asks = {
        "lookup": lambda some: some.lookup("by_k", col("k") == 3),
        "skip": lambda some: some.lookup("by_k", col("k") == 3, unindexed="skip"),
        "candidates": lambda some: some.candidates("by_k", col("k") == 3),
        "verify": lambda some: some.verify_index("by_k"),
    }
    for ask in asks.values():
        for some in (lake, plain):
            ask(some)
    assert all(read("by_k", col("k") == 3).count() == 1 for read in readers(lake))
    marker = table / MARKERS[owner]
    marker.parent.mkdir()
    marker.write_text("{}")
    for ask in asks.values():
        for some in (lake, plain, Lakebloom(location=tmp_path / "indexes")):
            with pytest.raises(UnsupportedSourceError, match=owner):
                ask(some)
    for mode in ("quick", "full"):
        with pytest.raises(UnsupportedSourceError, match=owner):
            lake.refresh_index("by_k", mode)
    for read in readers(lake):
        with pytest.raises(Exception, match=f"a table of {owner}"):
            read("by_k", col("k") == 3).collect()
    marker.unlink()
    marker.parent.rmdir()
    assert plain.lookup("by_k", col("k") == 3).num_rows == 1
    assert all(read("by_k", col("k") == 3).count() == 1 for read in readers(lake))


def test_real_conversion_and_what_files_as_a_table_mean(spark: SparkSession, lake: Lakebloom, tmp_path: Path) -> None:
    table = keys(tmp_path / "t", range(10), range(10, 20))
    lake.create_index(f"parquet.`{table}`", BY_K)
    lake.enable()
    try:
        from deltalake import convert_to_deltalake

        convert_to_deltalake(str(table))
        DeltaTable(str(table)).delete("k = 3")
        with pytest.raises(UnsupportedSourceError, match="Delta Lake"):
            lake.lookup("by_k", col("k") == 3)
        frame = spark.read.parquet(str(table)).where("k = 3")
        rows = frame.count()
    finally:
        lake.disable()
    assert rows == spark.read.parquet(str(table)).where("k = 3").count()
    write(tmp_path / "orc_like/a.parquet", {"k": [1]})
    with pytest.raises(UnsupportedSourceError, match="Hudi"):
        lake.create_index(f"hudi.`{tmp_path / 'orc_like'}`", BloomIndexConfig("other", ["k"]))


def test_tables_that_only_spark_reaches(spark: SparkSession, tmp_path: Path) -> None:
    from lakebloom.spark.sources.listing import list_with_spark

    for owner, marker in MARKERS.items():
        table = keys(tmp_path / owner / "t", range(10))
        (table / marker).parent.mkdir()
        (table / marker).write_text("{}")
        for location in (table, table / "0.parquet", table.parent, f"{table}/*.parquet"):
            with pytest.raises(UnsupportedSourceError, match=f"t is a table of {owner}"):
                list_with_spark(spark, f"file://{location}")
