"""What ``test_iceberg_catalog.py`` runs on Spark 3.5 with Iceberg's connector, its catalog and its SQL."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakebloom import BloomIndexConfig, Lakebloom
from lakebloom.errors import LakebloomError
from tests.spark.iceberg_cases import Cases, splits_read
from tests.spark.iceberg_connector import catalog_session

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

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


def conditions(catalog: Catalog) -> None:
    """All that filters answer, on a table without deletes."""
    table = catalog.create("conditions")
    for condition in (
        "k = 25", "k = 24", "k = 77", "k IN (1, 39)", "k <=> 25", "s = 's11'", "s IS NULL", "k = 25 AND p = 1",
        "k = 25 OR s = 's3'",
        "d = 2.25", "f = 1.25", "n.a = 25", "k = 25 AND upper(s) = 'S11'", "NOT k = 25", "k > 38", "s LIKE 's1%'",
        "k = CAST(25 AS BIGINT)", "k = 25 AND rand() < 2",
    ):  # fmt: skip
        catalog.cases.sql(condition, f"SELECT * FROM {table} WHERE {condition}")
    catalog.cases.sql("one column", f"SELECT p FROM {table} WHERE k = 25")
    catalog.cases.sql("no column", f"SELECT count(*) FROM {table} WHERE k = 25")
    catalog.cases.sql("metadata columns", f"SELECT k, _file, _pos, _partition, _spec_id FROM {table} WHERE k = 25")
    catalog.cases.sql("file name", f"SELECT input_file_name(), k FROM {table} WHERE k = 25")
    catalog.cases.sql("all", f"SELECT * FROM {table}")
    catalog.cases.sql("count", f"SELECT count(*), max(k) FROM {table}")
    catalog.cases.sql("limit", f"SELECT * FROM {table} WHERE k = 25 LIMIT 1")
    catalog.cases.sql("grouping sets", f"SELECT p, k, count(*) FROM {table} WHERE k = 25 GROUP BY CUBE (p, k)")


def writes(catalog: Catalog) -> None:
    """Writes with indexes do what writes without do; what they leave is read right."""
    for mode, properties in (("mor", MOR), ("cow", COW), ("vectors", f"'format-version'='3', {MOR}")):
        with_, without = (catalog.create(f"{mode}_{each}", properties=properties) for each in ("with", "without"))
        statements = (
            "DELETE FROM {} WHERE k = 25",
            "DELETE FROM {} WHERE k IN (SELECT k FROM {} WHERE k = 1)",
            "UPDATE {} SET s = 'new' WHERE k = 7",
            "UPDATE {} SET k = 25 WHERE k = 8",
            "MERGE INTO {} AS t USING (SELECT 9 AS k) AS u ON t.k = u.k WHEN MATCHED THEN UPDATE SET s = 'merged'",
            "MERGE INTO {} AS t USING (SELECT k, s FROM {} WHERE k = 10) AS u ON t.k = u.k WHEN MATCHED THEN DELETE",
            "MERGE INTO {} AS t USING (SELECT 99 AS k) AS u ON t.k = u.k AND t.k = 99 "
            "WHEN NOT MATCHED THEN INSERT (k, s, d, f, n, p) VALUES (99, 'z', 1, 1, NULL, 1)",
            "INSERT INTO {} SELECT k, s, d, f, n, 7 FROM {} WHERE k = 12",
            "INSERT OVERWRITE {} SELECT * FROM {} WHERE k <> 13",
        )
        for number, statement in enumerate(statements):
            catalog.lake.enable()
            catalog.spark.sql(statement.replace("{}", with_))
            last = catalog.lake.last_query()
            scans = [] if last is None else [[scan.files, scan.files_kept] for scan in last.scans]
            catalog.lake.disable()
            catalog.spark.sql(statement.replace("{}", without))
            ours, theirs = (sorted(map(str, catalog.spark.table(each).collect())) for each in (with_, without))
            catalog.cases.note(f"{mode} write {number}", same=ours == theirs, rows=len(ours), read=scans)
            for condition in ("k IN (7, 25)", "k = 1", "s = 'new'", "k IN (9, 10, 12, 99)"):
                catalog.cases.sql(f"{mode} {number} {condition}", f"SELECT * FROM {with_} WHERE {condition}")
            if number in (1, 5):
                catalog.lake.refresh_index(f"{mode}_with")


def versions(catalog: Catalog) -> None:
    """Snapshots, branches and tags: the index is as of one of them."""
    table = catalog.create("versions")
    first = catalog.snapshots("versions")[-1]
    catalog.spark.sql(f"ALTER TABLE {table} CREATE TAG old")
    catalog.spark.sql(f"ALTER TABLE {table} CREATE BRANCH side")
    catalog.spark.sql(f"DELETE FROM {table} WHERE k = 25")
    catalog.append("versions", 0)
    catalog.spark.sql(f"INSERT INTO {table}.branch_side SELECT k, 'side', d, f, n, p FROM {table} WHERE k = 1")
    for name, place in (
        ("newest", table), ("then", f"{table} VERSION AS OF {first}"), ("tag", f"{table} VERSION AS OF 'old'"),
        ("branch", f"{table} VERSION AS OF 'side'"), ("branch by name", f"{table}.branch_side"),
    ):  # fmt: skip
        for condition in ("k = 25", "k = 1", "s = 'side'"):
            catalog.cases.sql(f"{name} {condition}", f"SELECT * FROM {place} WHERE {condition}")
    both = f"SELECT * FROM {table} VERSION AS OF {first} WHERE k = 25 UNION ALL SELECT * FROM {table} WHERE k = 25"
    catalog.cases.sql("both", both)
    catalog.cases.sql(
        "joined",
        f"SELECT * FROM {table} VERSION AS OF {first} AS a JOIN {table} AS b ON a.p = b.p WHERE a.k = 25 AND b.k = 1",
    )
    catalog.cases.same("option", lambda: catalog.spark.read.option("snapshot-id", first).table(table).where("k = 25"))
    ids = catalog.snapshots("versions")
    catalog.cases.same(
        "incremental",
        lambda: catalog.spark.read.format("iceberg").option("start-snapshot-id", ids[0])
        .option("end-snapshot-id", ids[3]).load(table).where("k = 25"),
    )  # fmt: skip
    for part in ("files", "snapshots", "history", "manifests", "entries", "partitions", "all_data_files"):
        catalog.cases.sql(f"metadata {part}", f"SELECT count(*) FROM {table}.{part}")
    catalog.cases.sql("metadata files where", f"SELECT * FROM {table}.files WHERE record_count = 10")
    changed = catalog.create("changed", properties=COW)  # changelogs know no delete files
    catalog.spark.sql(f"DELETE FROM {changed} WHERE k = 25")
    catalog.spark.sql("CALL ice.system.create_changelog_view(table => 'db.changed', changelog_view => 'changes')")
    catalog.cases.sql("changelog", "SELECT * FROM changes WHERE k = 25")


def columns(catalog: Catalog) -> None:
    """Columns are their ids: whatever they are called, and whatever type they got."""
    table = catalog.create("columns")
    before = catalog.snapshots("columns")[-1]

    def ask(step: str, *conditions: str) -> None:
        for condition in conditions:
            catalog.cases.sql(f"{step}: {condition}", f"SELECT * FROM {table} WHERE {condition}")
        # Iceberg cannot travel to a column that was renamed since.
        catalog.cases.sql(f"{step}: then", f"SELECT * FROM {table} VERSION AS OF {before} WHERE d = 2.25")

    catalog.spark.sql(f"ALTER TABLE {table} RENAME COLUMN k TO key")
    ask("renamed", "key = 25", "key = 77", "key IS NULL")
    catalog.spark.sql(f"ALTER TABLE {table} ADD COLUMN k INT")
    ask("added", "k = 25", "k IS NULL", "key = 25 AND k IS NULL", "key = 25")
    catalog.spark.sql(f"INSERT INTO {table} VALUES (500, 'x', 1, 1, NULL, 1, 25)")
    ask("filled", "k = 25", "key = 25", "key = 500", "k IS NOT NULL")
    catalog.spark.sql(f"ALTER TABLE {table} ALTER COLUMN key TYPE BIGINT")
    catalog.spark.sql(f"ALTER TABLE {table} ALTER COLUMN d TYPE DECIMAL(18, 2)")
    catalog.spark.sql(f"ALTER TABLE {table} ALTER COLUMN f TYPE DOUBLE")
    catalog.spark.sql(f"ALTER TABLE {table} ALTER COLUMN n.a TYPE BIGINT")
    ask("widened", "key = 25", "key = 5000000000", "d = 2.25", "f = 1.25", "f = 1.1", "n.a = 25", "n.a = 5000000000")
    catalog.spark.sql(f"INSERT INTO {table} VALUES (5000000000, 'x', 123456789012.25, 1.1D, NULL, 1, 25)")
    ask("wide", "key = 5000000000", "d = 123456789012.25", "f = 1.1", "f = 1.25")
    catalog.lake.refresh_index("columns")
    catalog.lake.enable()
    ask("refreshed", "key = 5000000000", "key = 25", "d = 123456789012.25", "f = 1.1", "f = 1.25", "k = 25")
    catalog.spark.sql(f"ALTER TABLE {table} DROP COLUMN s")
    catalog.spark.sql(f"ALTER TABLE {table} ADD COLUMN s STRING")
    ask("again", "s = 's11'", "s IS NULL", "s = 'x'")
    catalog.spark.sql(f"ALTER TABLE {table} RENAME COLUMN n.a TO c")
    ask("leaf", "n.c = 25", "n.c = 77")
    catalog.spark.conf.set("spark.sql.caseSensitive", "true")
    ask("case", "key = 25", "n.c = 25")
    catalog.spark.conf.unset("spark.sql.caseSensitive")


def partitions(catalog: Catalog) -> None:
    """Partitions of any transform, and a spec that changes."""
    for number, spec in enumerate(("bucket(4, k)", "p", "truncate(2, s)", "p, bucket(2, k)")):
        name = f"partitioned{number}"
        table = catalog.create(name, f"PARTITIONED BY ({spec})", index=False)
        catalog.index(name, "k", "s")
        for condition in ("k = 25", "k = 25 AND p = 1", "p = 1 AND s = 's11'", "s IS NULL AND k = 7", "k = 77"):
            catalog.cases.sql(f"{spec}: {condition}", f"SELECT * FROM {table} WHERE {condition}")
    table = catalog.create("evolved", "PARTITIONED BY (p)")
    catalog.spark.sql(f"ALTER TABLE {table} ADD PARTITION FIELD bucket(4, k)")
    catalog.append("evolved", 40)
    catalog.spark.sql(f"ALTER TABLE {table} DROP PARTITION FIELD p")
    catalog.spark.sql(f"ALTER TABLE {table} ADD PARTITION FIELD k")
    catalog.append("evolved", 60)
    for condition in ("k = 25", "k = 25 AND p = 1", "s = 's11'", "k IN (7, 8)"):
        catalog.cases.sql(f"evolved: {condition}", f"SELECT * FROM {table} WHERE {condition}")


def maintenance(catalog: Catalog) -> None:
    """Procedures change the files; the index knows some of them."""
    table = catalog.create("kept", files=6)
    first = catalog.snapshots("kept")[-1]

    def ask(step: str) -> None:
        for condition in ("k = 25", "k IN (1, 2)", "k = 77", "s = 's11'"):
            catalog.cases.sql(f"{step}: {condition}", f"SELECT * FROM {table} WHERE {condition}")

    catalog.spark.sql(f"DELETE FROM {table} WHERE k = 25")
    ask("deleted")
    catalog.spark.sql(f"CALL ice.system.rollback_to_snapshot('db.kept', {first})")
    ask("rolled back")
    catalog.spark.sql(f"DELETE FROM {table} WHERE k = 25")
    catalog.spark.sql("CALL ice.system.rewrite_data_files(table => 'db.kept', options => map('rewrite-all', 'true'))")
    ask("rewritten")
    catalog.append("kept", 0)
    catalog.lake.refresh_index("kept")
    catalog.lake.enable()
    catalog.append("kept", 10)
    ask("refreshed")
    catalog.spark.sql("CALL ice.system.rewrite_manifests('db.kept')")
    catalog.spark.sql(
        "CALL ice.system.expire_snapshots(table => 'db.kept', older_than => TIMESTAMP '2100-01-01', retain_last => 1)"
    )
    ask("expired")
    catalog.spark.sql(f"DROP TABLE {table}")
    catalog.create("kept", index=False)
    ask("created again")


def old_format(catalog: Catalog) -> None:
    """Tables of version 1 have no numbers of commits."""
    catalog.create("v1", properties="'format-version'='1'")
    catalog.cases.sql("v1", "SELECT * FROM ice.db.v1 WHERE k = 25")
    catalog.spark.sql("ALTER TABLE ice.db.v1 SET TBLPROPERTIES ('format-version'='2')")
    catalog.append("v1", 40)
    catalog.cases.sql("upgraded", "SELECT * FROM ice.db.v1 WHERE k = 25")
    catalog.lake.refresh_index("v1")
    catalog.lake.enable()
    catalog.cases.sql("upgraded and refreshed", "SELECT * FROM ice.db.v1 WHERE k = 25")
    catalog.spark.sql("CALL ice.system.rewrite_manifests('db.v1')")
    catalog.cases.sql("merged manifests", "SELECT * FROM ice.db.v1 WHERE k = 25")


def plans(catalog: Catalog) -> None:
    """One scan is never changed for another query; other rules of Spark and Iceberg go on."""
    table = catalog.create("plans")
    other = catalog.create("other", "PARTITIONED BY (p)")
    spark, cases = catalog.spark, catalog.cases
    cases.sql("self-join", f"SELECT * FROM {table} a JOIN {table} b ON a.p = b.p WHERE a.k = 25 AND b.k = 1")
    cases.sql("same twice", f"SELECT * FROM {table} WHERE k = 25 UNION ALL SELECT * FROM {table} WHERE k = 25")
    cases.sql("others", f"SELECT * FROM {table} WHERE k <=> 25 UNION ALL SELECT * FROM {table} WHERE k <=> 1")
    cases.sql("with all", f"SELECT * FROM {table} WHERE k = 25 UNION ALL SELECT * FROM {table}")
    cases.sql("subquery", f"SELECT * FROM {table} WHERE p = (SELECT max(p) FROM {table} WHERE k = 25)")
    cases.sql("in", f"SELECT * FROM {table} WHERE k = 1 OR p IN (SELECT p FROM {table} WHERE k = 25)")
    cases.sql("cte", f"WITH t AS (SELECT * FROM {table} WHERE k = 25) SELECT * FROM t a JOIN t b ON a.p = b.p")
    cases.sql("window", f"SELECT *, row_number() OVER (PARTITION BY p ORDER BY k) FROM {table} WHERE k IN (1, 25)")
    cases.sql(
        "two scalars", f"SELECT (SELECT sum(p) FROM {table} WHERE k = 25), (SELECT sum(k) FROM {table} WHERE k = 1)"
    )
    for adaptive in ("true", "false"):
        spark.conf.set("spark.sql.adaptive.enabled", adaptive)
        cases.sql(
            f"pruned at run time, adaptive {adaptive}",
            f"SELECT * FROM {other} a JOIN {table} b ON a.p = b.p WHERE b.k = 25 AND a.k IN (1, 25, 30)",
        )
    spark.conf.unset("spark.sql.adaptive.enabled")
    for grouped in ("true", "false"):
        for key, value in {
            "spark.sql.iceberg.planning.preserve-data-grouping": grouped,
            "spark.sql.sources.v2.bucketing.enabled": "true",
            "spark.sql.sources.v2.bucketing.pushPartValues.enabled": grouped,
            "spark.sql.requireAllClusterKeysForCoPartition": "false",
            "spark.sql.autoBroadcastJoinThreshold": "-1",
        }.items():
            spark.conf.set(key, value)
        for name, where in {"one": "a.k = 25", "both": "a.k IN (1, 25) AND b.k = 8", "none": "a.k = 77"}.items():
            query = f"SELECT * FROM {other} a JOIN {other} b ON a.p = b.p WHERE {where}"
            cases.sql(f"by partitions {grouped} {name}", query)
            cases.sql(f"outer {grouped} {name}", query.replace("JOIN", "FULL OUTER JOIN").replace("WHERE", "AND"))
        cases.sql(f"grouped {grouped}", f"SELECT p, count(*) FROM {other} WHERE k IN (1, 25) GROUP BY p")
    for key in (
        "spark.sql.iceberg.planning.preserve-data-grouping", "spark.sql.sources.v2.bucketing.enabled",
        "spark.sql.sources.v2.bucketing.pushPartValues.enabled", "spark.sql.requireAllClusterKeysForCoPartition",
        "spark.sql.autoBroadcastJoinThreshold",
    ):  # fmt: skip
        spark.conf.unset(key)
    for key, value in {
        "spark.sql.iceberg.vectorization.enabled": "false", "spark.sql.iceberg.aggregate-push-down.enabled": "false",
        "spark.sql.iceberg.distribution-mode": "none", "spark.sql.iceberg.data-planning-mode": "distributed",
        "spark.sql.iceberg.locality.enabled": "true", "spark.sql.iceberg.executor-cache.enabled": "false",
    }.items():  # fmt: skip
        spark.conf.set(key, value)
        cases.sql(f"{key}={value}", f"SELECT * FROM {table} WHERE k = 25")
        spark.conf.unset(key)
    _again(catalog, table)
    _cached(catalog, table)


def _again(catalog: Catalog, table: str) -> None:
    """Collect frames twice, with a commit in between, with and without indexes."""
    spark, lake = catalog.spark, catalog.lake

    def twice(is_enabled: bool, name: str) -> list[list[str]]:
        catalog.create(name)
        (lake.enable if is_enabled else lake.disable)()
        base = spark.table(f"ice.db.{name}")
        chosen = base.where("k = 25")
        found = [chosen, base.where("k = 1"), base]
        texts = [sorted(map(str, frame.collect())) for frame in found]
        spark.sql(f"INSERT INTO ice.db.{name} SELECT k, 'more', d, f, n, p FROM ice.db.{name} WHERE k IN (1, 25)")
        texts += [sorted(map(str, frame.collect())) for frame in found]
        texts += [sorted(map(str, base.where(where).collect())) for where in ("k = 25", "k = 1", "k > 0")]
        return [[text.replace("twice_with", "twice_without") for text in each] for each in texts]

    ours, theirs = twice(True, "twice_with"), twice(False, "twice_without")
    catalog.cases.note("collected twice", same=ours == theirs, rows=[len(each) for each in ours])
    lake.enable()
    base = spark.table(table)
    chosen = base.where("k = 25")
    chosen.collect()
    whole = base.collect()
    catalog.cases.note("shared frame", same=len(whole) == 40, rows=len(whole), splits=splits_read(chosen))


def _cached(catalog: Catalog, table: str) -> None:
    """Cache a table, and a part of it."""
    spark, cases = catalog.spark, catalog.cases
    spark.sql(f"CACHE TABLE {table}")
    cases.sql("cached", f"SELECT * FROM {table} WHERE k = 25")
    spark.sql(f"UNCACHE TABLE {table}")
    part = spark.table(table).where("k = 25").cache()
    part.count()
    cases.sql("part cached", f"SELECT * FROM {table} WHERE k = 25")
    cases.sql("beside the cache", f"SELECT * FROM {table} WHERE k = 1")
    cases.sql("all beside the cache", f"SELECT * FROM {table}")
    part.unpersist()


def oddities(catalog: Catalog) -> None:
    """Values, paths and files that are not as usual."""
    spark, lake, cases = catalog.spark, catalog.lake, catalog.cases
    _values(catalog)
    table = "ice.db.paths"
    spark.sql(f"CREATE TABLE {table} (k INT, s STRING) USING iceberg PARTITIONED BY (s)")
    for number, text in enumerate(("a b", "100%", "x/y", "ü#?", "%20", "")):
        spark.range(10).selectExpr(f"CAST(id * 10 + {number} AS INT)", f"'{text}'").writeTo(table).append()
    catalog.index("paths", "k")
    for number in range(6):
        cases.sql(f"paths {number}", f"SELECT * FROM {table} WHERE k = {20 + number}")
    _other_formats(catalog)
    _taken_over(catalog)
    first, second = catalog.create("two"), Lakebloom(spark, f"{catalog.home}/others")
    second.create_index(f"{catalog.home}/ware house/db/two", BloomIndexConfig("by_s", ["s"]))
    second.enable()
    cases.sql("two lakes", f"SELECT * FROM {first} WHERE k IN (17, 25) AND s IN ('s1', 's5', 's7')")
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
        columns = (
            time, f"CAST({time} AS TIMESTAMP_NTZ)", f"DATE '1500-01-01' + CAST(id * 4 + {part} AS INT)",
            f"CAST(CAST(id * 4 + {part} AS STRING) AS BINARY)",
            f"CASE WHEN id = 3 AND {part} = 1 THEN double('NaN') WHEN id = 4 AND {part} = 2 THEN -0.0D ELSE id * 4 + {part} + 0.5D END",
        )  # fmt: skip
        spark.range(0, 10, 1, 1).selectExpr(*columns).writeTo(table).append()
    catalog.index("values", "t", "n", "d", "b", "f")
    for zone in ("UTC", "America/New_York"):
        spark.conf.set("spark.sql.session.timeZone", zone)
        for condition in (
            "t = TIMESTAMP '2024-01-01 07:00:00Z'", "n = TIMESTAMP_NTZ '2024-01-01 07:00:00'", "d = DATE '1500-01-08'",
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


def joins(catalog: Catalog) -> None:
    """Joins leave all files of an Iceberg table, and say nothing wrong."""
    table = catalog.create("joined")
    spark, lake = catalog.spark, catalog.lake
    keys = spark.createDataFrame([(25,), (1,)], "k INT")
    catalog.cases.same("keys", lambda: spark.table(table).join(keys, "k"))
    catalog.cases.same("keys and a condition", lambda: spark.table(table).where("k = 25").join(keys, "k"))
    try:
        lake.prune_join(spark.table(table), keys, "k")
    except LakebloomError as error:
        catalog.cases.note("prune_join", same=error.code == "UNSUPPORTED_SOURCE", rows=str(error))
    stream = spark.readStream.table(table).where("k = 25")
    started = stream.writeStream.format("memory").queryName("streamed").trigger(availableNow=True).start()
    started.awaitTermination()
    streamed = spark.table("streamed").count()
    catalog.cases.note("stream", same=streamed == spark.table(table).where("k = 25").count(), rows=streamed)


PARTS: dict[str, Callable[[Catalog], None]] = {
    each.__name__: each
    for each in (conditions, writes, versions, columns, partitions, maintenance, old_format, plans, oddities, joins)
}


def main(home: str, *parts: str) -> None:
    """Run some parts, or all, each in a home of its own."""
    spark = catalog_session(f"{home}/ware house")
    found: dict[str, Any] = {}
    catalog = Catalog(spark, home)
    for name in parts or PARTS:
        catalog.cases.found = {}
        PARTS[name](catalog)
        found[name] = catalog.cases.found
    catalog.lake.close()
    spark.stop()
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
