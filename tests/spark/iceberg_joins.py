"""Joins with Iceberg tables: files without a key of the other side, global filters. Part of ``on_iceberg_catalog``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lakebloom import BloomIndexConfig
from lakebloom.errors import LakebloomError

if TYPE_CHECKING:
    from tests.spark.iceberg_catalog import Catalog

__all__ = ["filters", "joins"]

SHUFFLED = {
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.lakebloom.join.minBytes": "0",
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "-1",
}


def joins(catalog: Catalog) -> None:
    """Files that hold no key of a small side are skipped."""
    table = catalog.create("joined")
    spark, cases = catalog.spark, catalog.cases
    first = catalog.snapshots("joined")[-1]
    spark.createDataFrame([(25,), (1,), (None,)], "k INT").createOrReplaceTempView("keys")
    spark.createDataFrame([("s11",), (None,)], "s STRING").createOrReplaceTempView("texts")
    cases.sql("keys", f"SELECT * FROM {table} JOIN keys USING (k)")
    cases.sql("keys and a condition", f"SELECT * FROM {table} t JOIN keys USING (k) WHERE t.k = 25")
    cases.sql("keys of a struct", f"SELECT * FROM {table} t JOIN keys ON t.n.a = keys.k")
    cases.sql("values", f"SELECT * FROM {table} JOIN (VALUES (25L), (77L)) AS v(k) USING (k)")
    cases.sql("in", f"SELECT * FROM {table} WHERE k IN (SELECT k FROM keys)")
    cases.sql("one value", f"SELECT * FROM {table} WHERE k = (SELECT max(k) FROM keys)")
    cases.sql("right", f"SELECT * FROM keys LEFT JOIN {table} USING (k)")
    cases.sql("anti", f"SELECT * FROM keys LEFT ANTI JOIN {table} USING (k)")
    cases.sql("all rows", f"SELECT * FROM {table} LEFT JOIN keys USING (k)")
    cases.sql("full", f"SELECT * FROM {table} FULL JOIN keys USING (k)")
    cases.sql("null-safe", f"SELECT * FROM {table} t JOIN texts ON t.s <=> texts.s")
    cases.sql("nulls", f"SELECT * FROM {table} t JOIN texts ON t.s = texts.s")
    cases.sql("no index", f"SELECT * FROM {table} t JOIN keys ON t.p = keys.k")
    cases.sql("computed", f"SELECT * FROM {table} t JOIN keys ON t.k + 1 = keys.k")
    cases.sql("limited", f"SELECT * FROM (SELECT * FROM {table} ORDER BY k LIMIT 20) t JOIN keys USING (k)")
    cases.sql("grouped", f"SELECT * FROM (SELECT k, count(*) FROM {table} GROUP BY k) JOIN keys USING (k)")
    cases.sql("twice", f"SELECT * FROM {table} a JOIN {table} b USING (k) JOIN keys USING (k)")
    cases.sql("table", f"SELECT * FROM {table} t JOIN {table} u USING (k) WHERE u.p = 1")
    spark.range(25, 26).selectExpr("CAST(id AS INT) AS k").write.mode("overwrite").parquet(f"{catalog.home}/keys")
    cached = spark.read.parquet(f"{catalog.home}/keys").cache()
    cached.count()
    cases.same("cached", lambda: spark.table(table).join(cached, "k"))
    cached.unpersist()
    _pruned(catalog, table)
    _zeros(catalog)
    stream = spark.readStream.table(table).where("k = 1")
    started = stream.writeStream.format("memory").queryName("streamed").trigger(availableNow=True).start()
    started.awaitTermination()
    cases.note("stream", same=spark.table("streamed").count() == spark.table(table).where("k = 1").count())
    spark.sql(f"DELETE FROM {table} WHERE k = 25")
    catalog.append("joined", 20)
    cases.sql("deleted and new", f"SELECT * FROM {table} JOIN keys USING (k)")
    cases.sql("then", f"SELECT * FROM {table} VERSION AS OF {first} JOIN keys USING (k)")
    spark.sql(f"ALTER TABLE {table} RENAME COLUMN k TO key")
    cases.sql("renamed", f"SELECT * FROM {table} t JOIN keys ON t.key = keys.k")
    spark.sql(f"ALTER TABLE {table} ADD COLUMN k INT")
    cases.sql("another", f"SELECT * FROM {table} t JOIN keys ON t.k <=> keys.k")
    for statement in (
        f"MERGE INTO {table} t USING keys ON t.key = keys.k WHEN MATCHED THEN UPDATE SET s = 'm' "
        "WHEN NOT MATCHED THEN INSERT (key, s) VALUES (keys.k, 'n')",
        f"DELETE FROM {table} WHERE key IN (SELECT k FROM keys)",
    ):
        spark.sql(statement)
        cases.sql(statement[:6], f"SELECT * FROM {table} t JOIN keys ON t.key = keys.k")


def _pruned(catalog: Catalog, table: str) -> None:
    """prune_join makes the keys a condition, by which the rule skips files."""
    spark, lake, cases = catalog.spark, catalog.lake, catalog.cases
    keys = spark.table(table).where("k IN (1, 25)").select("k")
    cases.same("prune_join", lambda: lake.prune_join(spark.table(table), keys, "k").join(keys, "k"))
    cases.same("prune_join above", lambda: lake.prune_join(spark.table(table).where("p = 1"), keys, "k"))
    try:
        lake.prune_join(spark.table(f"{table}.snapshots").selectExpr("1 AS k"), keys, "k")
    except LakebloomError as error:
        cases.note("prune_join of metadata", same=error.code == "UNSUPPORTED_SOURCE")


def _zeros(catalog: Catalog) -> None:
    """A join matches both zeros and every NaN; Iceberg tells zeros apart when it skips files."""
    spark, lake, table = catalog.spark, catalog.lake, "ice.db.zeros"
    values = ("-0.0D", "0.0D", "double('NaN')", "1.5D")
    spark.sql(f"CREATE TABLE {table} (f FLOAT, d DOUBLE) USING iceberg")
    for value in (*values, "CAST(NULL AS DOUBLE)"):
        spark.sql(f"INSERT INTO {table} SELECT CAST({value} AS FLOAT), {value}")
    catalog.index("zeros", "f", "d")
    for column, kind in (("f", "FLOAT"), ("d", "DOUBLE"), ("f", "DOUBLE")):
        for value in values:
            # Two keys: of one alone Spark makes a condition, by which Iceberg itself loses the other zero.
            keys = spark.sql(f"SELECT CAST(v AS {kind}) AS {column} FROM VALUES ({value}), (77D) AS t(v)")
            pruned, whole = lake.prune_join(spark.table(table), keys, column), spark.table(table)
            ours, theirs = (sorted(map(str, each.join(keys, column).collect())) for each in (pruned, whole))
            catalog.cases.note(f"prune_join of {column} by {kind} {value}", same=ours == theirs, rows=len(ours))


def filters(catalog: Catalog) -> None:
    """The other side of a shuffled join is filtered, if the index knows every file that is read."""
    table = catalog.create("filtered", index=False)
    spark, lake, cases = catalog.spark, catalog.lake, catalog.cases
    lake.create_index(table, BloomIndexConfig("filtered", ["k", "s"], global_filter=True))
    lake.enable()
    first = catalog.snapshots("filtered")[-1]
    other = spark.range(0, 4000, 1, 2).selectExpr("CAST(id AS INT) AS k", "concat('s', id) AS s", "id AS v")
    other.write.mode("overwrite").parquet(f"{catalog.home}/other")
    spark.read.parquet(f"{catalog.home}/other").createOrReplaceTempView("other")
    for key, value in SHUFFLED.items():
        spark.conf.set(key, value)
    cases.sql("inner", f"SELECT * FROM other JOIN {table} USING (k)")
    cases.sql("text", f"SELECT * FROM other o JOIN {table} t USING (s)")
    cases.sql("left", f"SELECT * FROM other LEFT JOIN {table} USING (k)")
    cases.sql("semi", f"SELECT * FROM other LEFT SEMI JOIN {table} USING (k)")
    cases.sql("anti", f"SELECT count(*) FROM other LEFT ANTI JOIN {table} USING (k)")
    cases.sql("condition", f"SELECT * FROM other JOIN {table} t USING (k) WHERE t.k IN (1, 25)")
    spark.sql(f"DELETE FROM {table} WHERE k = 25")
    cases.sql("deleted", f"SELECT * FROM other JOIN {table} USING (k)")
    planned = _planned(catalog, f"SELECT * FROM other JOIN {table} USING (k)")
    spark.sql(f"INSERT INTO {table} VALUES (3999, 's3999', 1, 1, NULL, 1)")
    cases.note("planned before", same=len({len(each.collect()) for each in planned}) == 1)
    cases.sql("new file", f"SELECT * FROM other JOIN {table} USING (k)")
    cases.sql("new file not read", f"SELECT * FROM other o JOIN {table} t USING (k) WHERE t.k < 100")
    cases.sql("then", f"SELECT * FROM other JOIN {table} VERSION AS OF {first} USING (k)")
    lake.refresh_index("filtered")
    lake.enable()
    cases.sql("refreshed", f"SELECT * FROM other JOIN {table} USING (k)")
    spark.sql(f"ALTER TABLE {table} RENAME COLUMN k TO key")
    cases.sql("renamed", f"SELECT * FROM other o JOIN {table} t ON o.k = t.key")
    spark.sql(f"ALTER TABLE {table} DROP COLUMN s")
    spark.sql(f"ALTER TABLE {table} ADD COLUMN s STRING")
    cases.sql("another", f"SELECT * FROM other o JOIN {table} t USING (s)")
    spark.sql("CALL ice.system.rewrite_data_files(table => 'db.filtered', options => map('rewrite-all', 'true'))")
    cases.sql("rewritten", f"SELECT * FROM other o JOIN {table} t ON o.k = t.key")
    lake.refresh_index("filtered", "full", allow_shrink=True)
    lake.enable()
    cases.sql("rewritten and refreshed", f"SELECT * FROM other o JOIN {table} t ON o.k = t.key")
    # Iceberg cannot travel to a column that was renamed since, so the key is another one.
    cases.sql("old files", f"SELECT o.k, t.p FROM other o JOIN {table} VERSION AS OF {first} t ON o.s = t.s")
    spark.sql(f"ALTER TABLE {table} ALTER COLUMN key TYPE BIGINT")
    cases.sql("widened", f"SELECT * FROM other o JOIN {table} t ON CAST(o.k AS BIGINT) = t.key")
    for key in SHUFFLED:
        spark.conf.unset(key)


def _planned(catalog: Catalog, query: str) -> list[Any]:
    """The query, planned with indexes and without."""
    found: list[Any] = []
    for switch in (catalog.lake.enable, catalog.lake.disable):
        switch()
        found.append(catalog.spark.sql(query))
        found[-1]._jdf.queryExecution().executedPlan()
    catalog.lake.enable()
    return found
