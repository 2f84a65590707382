"""Tables of the session's catalogs and DataFrames of Iceberg's connector as sources. Part of ``on_iceberg_catalog``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lakebloom import BloomIndexConfig, Lakebloom, col
from lakebloom.errors import LakebloomError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.spark.iceberg_catalog import Catalog

__all__ = ["sources"]

COLUMNS = "k INT, s STRING"
TABLES = {"ice": "a table", "hive": "a_table"}


def sources(catalog: Catalog) -> None:
    """Index a table by all that means it, and look up in it while others write."""
    spark, lake = catalog.spark, catalog.lake
    for owner, name in TABLES.items():
        table = f"{owner}.db.`{name}`"
        spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {owner}.db")
        spark.sql(f"CREATE TABLE {table} ({COLUMNS}) USING iceberg TBLPROPERTIES ('format-version'='2')")
        for start in (0, 10, 20):
            _append(catalog, table, start)
        spark.sql(f"USE {owner}")
        given: dict[str, Any] = {
            "name": table,
            "short name": f"db.`{name}`",
            "table": spark.table(table),
            "format": spark.read.format("iceberg").load(table),
            "alias": spark.table(table).alias("x").select("*"),
            "view": _view(catalog, table),
        }
        if owner == "ice":
            given["path"] = spark.read.format("iceberg").load(f"{catalog.home}/ware house/db/a table")
        for way, source in given.items():
            lake.create_index(source, BloomIndexConfig(f"{owner} {way}".replace(" ", "_"), ["k"]))
            record = lake.catalog.index(f"{owner}_{way}".replace(" ", "_")).log.newest().table
            catalog.cases.note(
                f"{owner} {way}",
                same=_rows(lake, f"{owner} {way}", 11) == [(11, "s11")],
                owner=None if record.catalog is None else list(record.catalog.name),
                place=record.locations[0].removeprefix(f"file://{catalog.home}/"),
            )
        spark.sql("USE spark_catalog")
        _refused(catalog, owner, table)
        _written_beside(catalog, owner, table)
    _statements(catalog)


def _append(catalog: Catalog, table: str, start: int) -> None:
    """Append a file of ten rows. Every file has small and large keys, so that bounds skip none."""
    made = catalog.spark.range(start, start + 10, 1, 1).selectExpr("CAST(id % 10 * 10 + id / 10 AS INT) AS k")
    made.selectExpr("k", "concat('s', k) AS s").writeTo(table).append()


def _view(catalog: Catalog, table: str) -> str:
    catalog.spark.table(table).createOrReplaceTempView("seen")
    return "seen"


def _rows(lake: Lakebloom, way: str, key: int, version: int | None = None) -> list[tuple[int, str]]:
    found = lake.lookup(way.replace(" ", "_"), col("k") == key, version=version)
    return sorted((row["k"], row["s"]) for row in found.to_pylist())


def _error(call: Callable[[], object]) -> str:
    try:
        call()
    except LakebloomError as error:
        return str(error)
    return "no error"


def _refused(catalog: Catalog, owner: str, table: str) -> None:
    """Part of a table, and what is made of it."""
    spark, lake = catalog.spark, catalog.lake
    catalog.spark.sql(f"ALTER TABLE {table} CREATE TAG old")
    first = spark.sql(f"SELECT min(snapshot_id) FROM {table}.snapshots").collect()[0][0]
    for name, source in {
        "filter": spark.table(table).where("k = 1"),
        "projection": spark.table(table).select("k"),
        "renamed": spark.table(table).withColumnRenamed("k", "key"),
        "snapshot": spark.sql(f"SELECT * FROM {table} VERSION AS OF {first}"),
        "tag": spark.sql(f"SELECT * FROM {table} VERSION AS OF 'old'"),
        "option": spark.read.option("snapshot-id", first).table(table),
        "option of a format": spark.read.format("iceberg").option("snapshot-id", first).load(table),
        "time": spark.read.option("as-of-timestamp", "4102444800000").table(table),
        "appended": spark.read.format("iceberg").option("start-snapshot-id", first).load(table),
        "metadata": f"{table}.snapshots",
        "no table": f"{owner}.db.nothing",
    }.items():
        error = _error(lambda source=source: lake.create_index(source, BloomIndexConfig("never", ["k"])))  # type: ignore[misc]
        catalog.cases.note(f"{owner} not {name}", same=True, error=error)


def _written_beside(catalog: Catalog, owner: str, table: str) -> None:
    """A lookup sees what others committed, though the connector's cache does not; one without a session says so."""
    spark, lake, way = catalog.spark, catalog.lake, f"{owner} name"
    ids = [row[0] for row in spark.sql(f"SELECT snapshot_id FROM {table}.snapshots ORDER BY committed_at").collect()]
    spark.table(table).count()
    beside = _beside(catalog, owner)
    beside.manageSnapshots().rollbackTo(ids[0]).commit()
    cached = spark.table(table).count()
    facts: dict[str, Any] = {"rolled back": _rows(lake, way, 11), "then": _rows(lake, way, 11, ids[1])}
    beside.manageSnapshots().setCurrentSnapshot(ids[-1]).commit()
    facts["back again"] = _rows(lake, way, 11)
    spark.sql(f"REFRESH TABLE {table}")
    spark.sql(f"ALTER TABLE {table} RENAME COLUMN s TO text")
    spark.sql(f"INSERT INTO {table} VALUES (99, 'late')")
    facts["new"] = [row["text"] for row in lake.lookup(way.replace(" ", "_"), "k = 99").to_pylist()]
    facts["refreshed"] = lake.refresh_index(way.replace(" ", "_")).files
    with Lakebloom(location=lake.location) as alone:
        facts["without a session"] = _error(lambda: alone.lookup(way.replace(" ", "_"), col("k") == 99))
        facts["status"] = alone.status(way.replace(" ", "_"))[0].problem
    expected = {"rolled back": [], "then": [(11, "s11")], "back again": [(11, "s11")], "new": ["late"], "refreshed": 1}
    catalog.cases.note(
        f"{owner} beside", same=all(facts[key] == value for key, value in expected.items()), cached=cached, **facts
    )
    catalog.cases.sql(f"{owner} query", f"SELECT * FROM {table} WHERE k = 11")
    spark.sql(f"DROP TABLE {table}")
    catalog.cases.note(f"{owner} dropped", same=True, error=_error(lambda: _rows(lake, way, 11)))


def _beside(catalog: Catalog, owner: str) -> Any:
    """The table as another process has it: opened by the catalog itself, and not by the connector's cache."""
    java: Any = catalog.spark
    found = java._jsparkSession.sessionState().catalogManager().catalog(owner).icebergCatalog()
    field = found.getClass().getDeclaredField("catalog")
    field.setAccessible(True)
    identifier = java._jvm.org.apache.iceberg.catalog.TableIdentifier.parse(f"db.{TABLES[owner]}")
    return field.get(found).loadTable(identifier)


def _statements(catalog: Catalog) -> None:
    """SQL about indexes takes the same names."""
    spark, lake = catalog.spark, catalog.lake
    spark.sql(f"CREATE TABLE hive.db.t ({COLUMNS}) USING iceberg")
    _append(catalog, "hive.db.t", 0)
    lake.sql("CREATE BLOOM INDEX by_sql ON hive.db.t (k)")
    lake.sql("REFRESH BLOOM INDEX by_sql FULL")
    catalog.cases.note("statement", same=_rows(lake, "by_sql", 50) == [(50, "s50")])
    catalog.cases.note("advice", same=[row.column for row in lake.advise("hive.db.t")] == ["k", "s"])
    catalog.cases.note("erasure", same=True, table=lake.erasure_plan("by_sql", [5]).table)
