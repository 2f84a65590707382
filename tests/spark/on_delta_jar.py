"""What ``test_delta_jar.py`` runs in a session with Delta's jar: queries with and without indexes, and their counts."""

from __future__ import annotations

import json
import sys
from typing import Any

from pyspark.sql import SparkSession

from lakebloom import BloomIndexConfig, Lakebloom


def main(jar: str, home: str) -> None:
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.jars", jar)
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
        .config("spark.sql.warehouse.dir", f"{home}/warehouse")
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    # Every file has small and large keys, so that Delta's own statistics skip none.
    for part in range(4):
        frame = spark.range(part * 10, part * 10 + 10, 1, 1).selectExpr("id * 17 % 40 AS k", "concat('s', id) AS s")
        frame.write.format("delta").mode("append").save(f"{home}/t")
    table = f"delta.`{home}/t`"
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    spark.sql(f"CREATE TABLE named USING delta LOCATION '{home}/t'")
    lake = Lakebloom(spark, f"{home}/indexes")
    lake.create_index("named", BloomIndexConfig("by_k", ["k"]))
    lake.enable()
    found: dict[str, Any] = {}

    def rows(name: str, query: str) -> None:
        skipped = spark.sql(query)
        listed = sorted(map(str, skipped.collect()))
        last = lake.last_query()
        lake.disable()
        plain = sorted(map(str, spark.sql(query).collect()))
        lake.enable()
        scans = [] if last is None else [(scan.files, scan.files_kept) for scan in last.scans]
        found[name] = {"same": listed == plain, "rows": len(listed), "scans": scans}

    for number, source in enumerate((spark.table("named"), spark.read.format("delta").load(f"{home}/t"))):
        lake.create_index(source, BloomIndexConfig(f"by_frame{number}", ["k"]))
        count = lake.lookup(f"by_frame{number}", "k = 25").num_rows
        found[f"frame {number}"] = {"same": count == 1, "rows": count, "scans": []}
        lake.delete_index(f"by_frame{number}")
    rows("present", f"SELECT * FROM {table} WHERE k = 25")
    rows("absent", f"SELECT * FROM {table} WHERE k = 77")
    rows("by name", "SELECT * FROM named WHERE k IN (1, 39)")
    spark.sql(f"DELETE FROM {table} WHERE k = 25")
    rows("deleted", f"SELECT * FROM {table} WHERE k IN (24, 25)")
    rows("before", f"SELECT * FROM {table} VERSION AS OF 3 WHERE k = 25")
    spark.sql(f"UPDATE {table} SET s = 'new' WHERE k = 7")
    spark.sql(
        f"MERGE INTO {table} AS t USING (SELECT 8L AS k) AS u ON t.k = u.k WHEN MATCHED THEN UPDATE SET s = 'merged'"
    )
    rows("updated", f"SELECT * FROM {table} WHERE k IN (7, 8)")
    spark.sql(f"OPTIMIZE {table}")
    rows("optimized", f"SELECT * FROM {table} WHERE k = 12")
    lake.close()
    spark.stop()
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
