"""Plans over Iceberg tables: joins, caches, run-time filters, settings. Part of ``on_iceberg_catalog``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.spark.iceberg_cases import splits_read

if TYPE_CHECKING:
    from tests.spark.iceberg_catalog import Catalog

__all__ = ["plans"]


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
