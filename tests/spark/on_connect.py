"""The life of indexes on Spark Connect, run by test_connect in a process of its own."""

from __future__ import annotations

import json
import os
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakebloom import BloomIndexConfig, Lakebloom, col
from lakebloom.errors import LakebloomError
from lakebloom.lance import open_index
from lakebloom.spark.lance import build_index
from tests.lance.datasets import COLUMNS, FPP, ROWS_PER_ZONE, index_by_lance, write
from tests.spark.on_connect_explain import explained
from tests.spark.on_connect_tables import tables
from tests.spark.support import indexed, kept, keys, snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator


def _catalog_table(spark: Any, lake: Lakebloom, directory: Path) -> Iterator[bool]:
    """Change a table of the catalog, and tell after each change whether lookup and read show what Spark does."""
    spark.sql(
        f"CREATE TABLE parts (k BIGINT, p INT, q STRING) USING parquet PARTITIONED BY (p, q) LOCATION '{directory}/p t'"
    )
    spark.sql("INSERT INTO parts VALUES (1, 1, 'a b/%'), (2, 2, NULL), (3, NULL, 'x')")
    lake.create_index("parts", BloomIndexConfig("parts", ["k"], fpp=1e-6))
    keys(directory / "elsewhere", [4, 5])
    changes = [
        "ALTER TABLE parts DROP PARTITION (p=1, q='a b/%')",
        f"ALTER TABLE parts ADD PARTITION (p=9, q='o\\'clock') LOCATION '{directory}/elsewhere'",
        "ALTER TABLE parts PARTITION (p=2, q=NULL) RENAME TO PARTITION (p=20, q='renamed')",
        "INSERT INTO parts SELECT id, id, 'many' FROM range(10, 50)",  # too many to ask for one by one
    ]
    for change in changes:
        spark.sql(change)
        expected = sorted((tuple(row) for row in spark.table("parts").collect()), key=repr)
        asked = col("k") < 100
        for rows in (lake.lookup("parts", asked).to_pylist(), _alone(lake, asked)):
            yield sorted((tuple(row.values()) for row in rows), key=repr) == expected
        yield sorted((tuple(row) for row in lake.read("parts", asked).collect()), key=repr) == expected


def _alone(lake: Lakebloom, asked: Any) -> list[dict[str, Any]]:
    """Look up without Spark, in what a refresh found."""
    lake.refresh_index("parts")
    return Lakebloom(location=lake.location).lookup("parts", asked).to_pylist()


def main(directory: Path, remote: str) -> dict[str, Any]:
    from pyspark.sql import SparkSession

    os.environ["SPARK_TESTING"] = "1"  # a free port: other tests may have a server of their own
    warnings.simplefilter("ignore")  # Connect warns of settings that the running server does not change
    builder = SparkSession.builder.remote(remote).config("spark.sql.warehouse.dir", str(directory / "warehouse"))
    spark = builder.config("spark.sql.shuffle.partitions", "4").getOrCreate()
    found: dict[str, Any] = {"session": type(spark).__module__, "explained": explained(spark, directory)}
    table = keys(directory / "a b%20/t", range(100), range(100, 200), range(200, 300))
    lake = Lakebloom(spark, directory / "indexes")

    report = lake.create_index(table, BloomIndexConfig("by_path", ["k"], fpp=1e-6, global_filter=True))
    found["path"] = [report.files, report.rows, kept(lake, "by_path", col("k") == 150)]
    keys(table, range(300, 400), first=3)
    found["refresh"] = [lake.refresh_index("by_path").files, lake.refresh_index("by_path").committed]
    found["new"] = kept(lake, "by_path", col("k") == 350)
    (record,) = snapshot(lake, "by_path").commit.global_filters
    found["global"] = [round(record.ndv), len(record.segments)]
    found["lookup"] = lake.lookup("by_path", col("k") == 350).to_pylist()

    source = lake.read("by_path", col("k").isin([150, 350]))
    found["source"] = [sorted(row.k for row in source.collect()), source.schema.simpleString()]
    spark.sql(f"CREATE TEMPORARY VIEW v USING lakebloom OPTIONS (index 'by_path', location '{directory / 'indexes'}')")
    found["view"] = [spark.table("v").where("k = 150").count(), spark.table("v").count()]
    try:
        spark.read.format("lakebloom").option("colums", "k").load("by_path").collect()
    except Exception as error:
        found["misspelt"] = str(error)
    spark.sql(f"CREATE TABLE by_name (k BIGINT, c CHAR(3)) USING parquet LOCATION '{table}'")
    lake.create_index("by_name", BloomIndexConfig("by_name", ["k"], fpp=1e-6))
    lake.create_index(spark.table("by_name"), BloomIndexConfig("by_frame", ["k"], fpp=1e-6))
    found["table"] = [lake.index("by_name").source, len(indexed(lake, "by_name")), len(indexed(lake, "by_frame"))]

    found["catalog"] = list(_catalog_table(spark, lake, directory))

    frame = spark.range(100).selectExpr("id AS k", "id % 2 AS p")
    frame.write.partitionBy("p").orc(str(directory / "orc/x=1"))
    orc = spark.read.orc(str(directory / "orc/x=*"))
    lake.create_index(orc, BloomIndexConfig("by_orc", ["k"], fpp=1e-6))
    source = snapshot(lake, "by_orc").commit.table
    found["orc"] = [lake.index("by_orc").rows, source.partition_columns, source.locations[0].rpartition("/")[2]]

    lake.register_functions()
    found["sql_indexes"] = [
        row["name"] for row in spark.sql("SELECT name FROM lakebloom_indexes() ORDER BY 1").collect()
    ]
    rows = spark.sql("SELECT * FROM lakebloom_candidates('by_path', 'k', '350')").collect()
    found["sql_candidates"] = [[Path(row["path"]).name, row["row_count"]] for row in rows]
    found["sql_history"] = spark.sql("SELECT operation FROM lakebloom_history('by_path')").count()
    found["advise"] = [(advice.column, advice.verdict.value) for advice in lake.advise(table)]

    dataset = index_by_lance(write(directory / "lance", COLUMNS["int32"]))
    built = build_index(spark, dataset, "c", rule="lance", rows_per_zone=ROWS_PER_ZONE, fpp=FPP)
    zones = [open_index(dataset.uri, name).zones for name in ("theirs", built.name)]
    found["lance"] = [built.rows, built.segments, zones[0] == zones[1]]

    orders = spark.range(0, 1000, 7).selectExpr("id AS k")
    passed = orders.where(lake.might_contain("by_path", "k", orders.k)).collect()
    expected = [k for k in range(0, 1000, 7) if k < 400]
    found["join"] = [{row.k for row in passed} >= set(expected), len(passed) < 1.1 * len(expected)]
    try:
        lake.enable()
    except LakebloomError as error:
        found["enable"] = str(error)
    try:
        lake.enable(auto_refresh=True)
    except LakebloomError as error:
        found["auto_refresh"] = str(error)
    lake.sql(f"CREATE OR REPLACE BLOOM INDEX by_path ON '{table}' (k) OPTIONS (global_filter = true)").collect()
    found["replaced"] = [lake.history("by_path")[0].operation, kept(lake, "by_path", col("k") == 350)]

    refused = {
        "filter": spark.read.parquet(str(table)).where("k > 1"),
        "range": spark.range(3),
        "sql": spark.sql("SELECT * FROM by_name"),
        "option": spark.read.option("pathGlobFilter", "*").parquet(str(table)),
        "missing": str(directory / "missing"),
        "format": spark.read.format("binaryFile").load(str(table)),
        "char": "by_name",
    }
    for name, refusal in refused.items():
        try:
            lake.create_index(refusal, BloomIndexConfig("refused", ["c"], fpp=1e-6))
        except LakebloomError as error:
            found[name] = str(error)
    found["indexes"] = [record.name for record in lake.indexes()]
    found["tables"] = tables(spark, directory)
    return found


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), sys.argv[2])))  # noqa: T201
