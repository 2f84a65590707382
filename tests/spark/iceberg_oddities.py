"""Values, paths and files of Iceberg tables that are not as usual. Part of ``on_iceberg_catalog``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from lakebloom import BloomIndexConfig, Lakebloom

if TYPE_CHECKING:
    from tests.spark.iceberg_catalog import Catalog

__all__ = ["oddities"]


def oddities(catalog: Catalog) -> None:
    """Values, paths and files that are not as usual."""
    spark, lake, cases = catalog.spark, catalog.lake, catalog.cases
    _values(catalog)
    table = "ice.db.paths"
    spark.sql(f"CREATE TABLE {table} (k INT, s STRING) USING iceberg PARTITIONED BY (s)")
    for number, text in enumerate(("a b", "100%", "x/y", "ü#?", "%20", "")):
        rows = spark.range(10).selectExpr(f"CAST(id * 10 + {number} AS INT) AS k", f"'{text}' AS s")
        rows.writeTo(table).append()
    catalog.index("paths", "k")
    for number in range(6):
        cases.sql(f"paths {number}", f"SELECT * FROM {table} WHERE k = {20 + number}")
    _other_formats(catalog)
    _taken_over(catalog)
    first, second = catalog.create("two"), Lakebloom(spark, f"{catalog.home}/others")
    second.create_index(f"{catalog.home}/ware house/db/two", BloomIndexConfig("by_d", ["d"]))
    second.enable()
    cases.sql("two lakes", f"SELECT * FROM {first} WHERE k IN (1, 25) AND d IN (0.5, 6.25)")
    other = spark.newSession()
    with Lakebloom(other, f"{catalog.home}/indexes") as third:
        third.enable()
        rows = other.sql(f"SELECT * FROM {first} WHERE k = 25").collect()
        last = third.last_query()
        cases.note("another session", same=len(rows) == 1, rows=None if last is None else last.scans[0].files_kept)
    second.close()
    lake.enable()


def _values(catalog: Catalog) -> None:
    """Times, binary values, NaN and zeros."""
    spark, table = catalog.spark, "ice.db.values"
    spark.sql(f"CREATE TABLE {table} (t TIMESTAMP, n TIMESTAMP_NTZ, d DATE, b BINARY, f DOUBLE) USING iceberg")
    for part in range(4):
        time = f"TIMESTAMP '2024-01-01 00:00:00Z' + make_dt_interval(0, id * 4 + {part})"
        number = f"id * 4 + {part}"
        odd_number = f"CASE {number} WHEN 13 THEN double('NaN') WHEN 18 THEN -0.0D ELSE {number} + 0.5D END"
        columns = (
            f"{time} AS t", f"CAST({time} AS TIMESTAMP_NTZ) AS n", f"DATE '1600-01-01' + CAST({number} AS INT) AS d",
            f"CAST(CAST({number} AS STRING) AS BINARY) AS b", f"{odd_number} AS f",
        )  # fmt: skip
        spark.range(0, 10, 1, 1).selectExpr(*columns).writeTo(table).append()
    catalog.index("values", "t", "n", "d", "b", "f")
    for zone in ("UTC", "America/New_York"):
        spark.conf.set("spark.sql.session.timeZone", zone)
        for condition in (
            "t = TIMESTAMP '2024-01-01 07:00:00Z'", "n = TIMESTAMP_NTZ '2024-01-01 07:00:00'", "d = DATE '1600-01-08'",
            "t = TIMESTAMP '2024-01-01 02:00:00'", "b = X'37'", "f = double('NaN')", "f = 0.0D", "f = -0.0D",
            "f = 7.5D", "n = TIMESTAMP '2024-01-01 07:00:00'",
        ):  # fmt: skip
            catalog.cases.sql(f"{zone} {condition}", f"SELECT * FROM {table} WHERE {condition}")
    spark.conf.unset("spark.sql.session.timeZone")


def _other_formats(catalog: Catalog) -> None:
    """Files of ORC and Avro beside Parquet are read."""
    table = catalog.create("mixed")
    for number, kind in enumerate(("orc", "avro")):
        catalog.spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('write.format.default'='{kind}')")
        catalog.append("mixed", number * 10)
    catalog.lake.refresh_index("mixed")
    for condition in ("k = 25", "k = 1", "k IS NULL"):
        catalog.cases.sql(f"mixed {condition}", f"SELECT * FROM {table} WHERE {condition}")


def _taken_over(catalog: Catalog) -> None:
    """Take files over that have no ids; one is replaced by another of the same size, and taken over again."""
    spark, table, place = catalog.spark, "ice.db.taken", Path(catalog.home) / "taken"
    place.mkdir()
    spark.sql(f"CREATE TABLE {table} (k BIGINT, s STRING) USING iceberg")
    for number in range(4):
        _write(place / f"{number}.parquet", number)
    spark.sql(f"CALL ice.system.add_files(table => 'db.taken', source_table => '`parquet`.`{place}`')")
    catalog.index("taken", "k", "s")
    catalog.cases.sql("taken over", f"SELECT * FROM {table} WHERE k = 12")
    spark.sql(f"DELETE FROM {table} WHERE k IS NOT NULL")
    before = (place / "1.parquet").stat().st_size
    _write(place / "1.parquet", 7)
    assert (place / "1.parquet").stat().st_size == before
    spark.sql(f"CALL ice.system.add_files(table => 'db.taken', source_table => '`parquet`.`{place}`')")
    for key in (12, 72, 22):
        catalog.cases.sql(f"taken over again {key}", f"SELECT * FROM {table} WHERE k = {key}")


def _write(file: Path, number: int) -> None:
    numbers = [*range(number * 10, number * 10 + 10), 0, 99]
    pq.write_table(pa.table({"k": numbers, "s": [f"s{key:03}" for key in numbers]}), file)
