"""What ``test_iceberg_catalog.py`` runs on Spark 3.5 with Iceberg's connector, its catalog and its SQL."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from tests.spark.iceberg_catalog import COW, MOR, Catalog
from tests.spark.iceberg_connector import catalog_session
from tests.spark.iceberg_joins import filters, joins
from tests.spark.iceberg_oddities import oddities
from tests.spark.iceberg_plans import plans
from tests.spark.iceberg_sources import sources
from tests.spark.iceberg_unknown import let_names_change, unknown

if TYPE_CHECKING:
    from collections.abc import Callable


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
    when = catalog.spark.sql(f"SELECT committed_at FROM {table}.snapshots WHERE snapshot_id = {first}").collect()[0][0]
    at_ms = round(when.timestamp() * 1000)
    for name, place in (
        ("newest", table), ("then", f"{table} VERSION AS OF {first}"), ("tag", f"{table} VERSION AS OF 'old'"),
        ("at", f"{table} TIMESTAMP AS OF '{when}'"),
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
    timed = catalog.spark.read.option("as-of-timestamp", at_ms)
    catalog.cases.same("as-of-timestamp", lambda: timed.table(table).where("k = 25"))
    place = f"{catalog.home}/ware house/db/versions"
    catalog.cases.same("by path", lambda: catalog.spark.read.format("iceberg").load(place).where("k = 25"))
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
    ask("wide", "key = 5000000000", "d = 123456789012.25", "f = 1.1", "f = 1.25", "n.a IS NULL", "n IS NULL")
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


PARTS: dict[str, Callable[[Catalog], None]] = {
    each.__name__: each
    for each in (
        conditions,
        writes,
        versions,
        columns,
        partitions,
        maintenance,
        old_format,
        plans,
        oddities,
        joins,
        filters,
        sources,
        unknown,
    )
}


def main(home: str, *parts: str) -> None:
    """Run some parts, or all, each in a home of its own."""
    let_names_change()
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
