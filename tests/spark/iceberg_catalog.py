"""Tables in a catalog of Iceberg's connector, on Spark 3.5, with indexes on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakebloom import BloomIndexConfig, Lakebloom
from tests.spark.iceberg_cases import Cases

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["COW", "MOR", "Catalog"]

MOR = "'write.delete.mode'='merge-on-read', 'write.update.mode'='merge-on-read', 'write.merge.mode'='merge-on-read'"
COW = "'write.delete.mode'='copy-on-write', 'write.update.mode'='copy-on-write', 'write.merge.mode'='copy-on-write'"


class Catalog:
    """Tables of a catalog with indexes on them. Every file has small and large keys, so that bounds skip none."""

    def __init__(self, spark: SparkSession, home: str) -> None:
        self.spark, self.home = spark, home
        self.lake = Lakebloom(spark, f"{home}/indexes")
        self.cases = Cases(spark, self.lake)

    def create(self, name: str, more: str = "", properties: str = MOR, files: int = 4, *, index: bool = True) -> str:
        """Create a table of some files with ten rows each, and index it."""
        table = f"ice.db.{name}"
        columns = "k INT, s STRING, d DECIMAL(9, 2), f FLOAT, n STRUCT<a: INT, b: STRING>, p INT"
        self.spark.sql(f"CREATE TABLE {table} ({columns}) USING iceberg {more} TBLPROPERTIES ({properties})")
        for part in range(files):
            self.append(name, part * 10)
        if index:
            self.index(name, "k", "s", "d", "f", "n.a")
        return table

    def append(self, name: str, start: int) -> None:
        """Append a file of ten rows."""
        rows = (
            "CAST(id * 17 % 41 AS INT) AS k", "IF(id % 7 = 0, NULL, concat('s', id)) AS s",
            "CAST(id * 17 % 41 / 4 AS DECIMAL(9, 2)) AS d", "CAST(id * 17 % 41 / 8 AS FLOAT) AS f",
            "named_struct('a', CAST(id * 17 % 41 AS INT), 'b', 'x') AS n", "CAST(id % 3 AS INT) AS p",
        )  # fmt: skip
        self.spark.range(start, start + 10, 1, 1).selectExpr(*rows).writeTo(f"ice.db.{name}").append()

    def index(self, name: str, *columns: str) -> None:
        """Index a table by its path."""
        self.lake.create_index(f"{self.home}/ware house/db/{name}", BloomIndexConfig(name, list(columns)))
        self.lake.enable()

    def snapshots(self, name: str) -> list[int]:
        """Return the ids of all snapshots, the oldest first."""
        found = self.spark.sql(f"SELECT snapshot_id FROM ice.db.{name}.snapshots ORDER BY committed_at").collect()
        return [row[0] for row in found]
