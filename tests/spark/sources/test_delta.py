"""Delta tables in a Spark session that has no connector for them: built, refreshed and read from their logs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from lakebloom import BloomIndexConfig, Lakebloom, col
from lakebloom.spark.jvm import java_class
from tests.index.delta_lake import Column, Model
from tests.index.logged_lake import ordered
from tests.spark.needs import needs_data_source
from tests.tables.formats.delta.judge import judged_rows

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
BY_K = BloomIndexConfig("by_k", ["k"], fpp=1e-6)


def written(table: Path) -> DeltaTable:
    for number in range(4):
        rows = {"k": range(10 * number, 10 * number + 10), "v": [number] * 10, "p": ["a b", None] * 5}
        write_deltalake(str(table), pa.table(rows), partition_by=["p"], mode="append")
    delta = DeltaTable(str(table))
    delta.delete("k = 2")
    delta.update(predicate="k = 33", updates={"v": "v + 1"})
    return DeltaTable(str(table))


def test_a_delta_table_by_its_path(spark: SparkSession, lake: Lakebloom, tmp_path: Path) -> None:
    table = tmp_path / "t"
    written(table)
    for number, source in enumerate([str(table), table, f"file://{table}", f"delta.`{table}`", f"DELTA.`{table}`"]):
        config = BloomIndexConfig(f"by_k{number}", ["k"])
        assert lake.price_index(source, config).files == len(DeltaTable(str(table)).file_uris())
        assert {row.column for row in lake.advise(source)} == {"k", "v", "p"}
        lake.create_index(source, config)
        for key in (2, 5, 33):
            found = lake.lookup(config.name, col("k") == key).to_pylist()
            assert ordered(found) == ordered(judged_rows(table, f"select * from t where k = {key}"))
    write_deltalake(str(table), pa.table({"k": [5], "v": [9], "p": ["new"]}), mode="append")
    assert lake.lookup("by_k0", col("k") == 5).num_rows == 2
    assert lake.refresh_index("by_k0").files == 1
    assert lake.lookup("by_k0", col("k") == 5, unindexed="error").num_rows == 2
    assert lake.verify_index("by_k0").false_negatives == 0
    (status,) = lake.status("by_k0")
    assert status.coverage == 1.0


@pytest.mark.usefixtures("in_tasks")
def test_a_job_of_spark_builds_the_same(lake: Lakebloom, tmp_path: Path) -> None:
    table = tmp_path / "t"
    written(table)
    lake.create_index(table, BY_K)
    assert lake.lookup("by_k", col("k") == 33).to_pylist() == judged_rows(table, "select * from t where k = 33")


@needs_data_source
def test_the_data_source_serves_versions_with_deletes_and_mapping(
    spark: SparkSession, lake: Lakebloom, tmp_path: Path
) -> None:
    model = Model(tmp_path / "t")
    for number in range(4):
        model.append([{"k": 10 * number + key, "s": f"s{key}"} for key in range(10)], None if number % 2 else "a b")
    model.delete(model.files[0], {0, 3}, inline=True)
    model.delete(model.files[1], {1}, inline=False)
    lake.create_index(tmp_path / "t", BY_K)
    model.columns[1] = Column("s", "col-9", 9, "string")
    model.columns[0].name = "key"
    model.alter()
    newest = len(model.versions) - 1
    for version in (None, newest, 5, 4, 2):
        number = newest if version is None else version
        rows, name = model.rows(number), "key" if number == newest else "k"
        frame = lake.read("by_k", version=version)
        assert ordered([row.asDict() for row in frame.collect()]) == ordered(rows)
        for key in (3, 4, 11, 25):
            found = lake.read("by_k", col(name) == key, version=version).collect()
            assert ordered([row.asDict() for row in found]) == ordered([row for row in rows if row[name] == key])
    reader = spark.read.format("lakebloom").option("location", lake.location)
    assert reader.option("version", "4").option("where", "k = 3").load("by_k").count() == 1
    assert reader.option("version", "5").option("where", "k = 3").load("by_k").count() == 0


def test_the_rule_leaves_files_of_a_delta_table_alone(spark: SparkSession, lake: Lakebloom, tmp_path: Path) -> None:
    """Read as plain Parquet, the directory is what Spark finds there, with an index or without."""
    table = tmp_path / "t"
    written(table)
    lake.create_index(table, BY_K)
    expected = spark.read.parquet(str(table)).where("k = 2").count()
    lake.enable()
    try:
        frame = spark.read.parquet(str(table)).where("k = 2")
        assert frame.count() == expected == 1
        (scan,) = lake.explain(frame).scans
        assert scan.files_skipped == 0
        assert scan.reasons
    finally:
        lake.disable()


def as_delta(spark: SparkSession, name: str) -> None:
    """Give a table of the catalog the provider of Delta, which no CREATE TABLE can name without Delta's jar."""
    session: Any = spark
    catalog = session._jsparkSession.sessionState().catalog()
    table = catalog.getTableMetadata(session._jvm.org.apache.spark.sql.catalyst.TableIdentifier(name))
    copies = java_class(spark, "Copies")
    (method,) = [each for each in copies.getDeclaredMethods() if each.getName() == "with"]
    method.setAccessible(True)
    given = session._jvm.java.util.ArrayList()
    for each in (table, table.provider(), session._jvm.scala.Some("delta")):
        given.add(each)
    given.add(session.sparkContext._gateway.new_array(session._jvm.java.lang.Object, 0))
    catalog.alterTable(method.invoke(None, given.toArray()))


def test_a_table_of_the_catalog_whose_provider_is_delta(spark: SparkSession, tmp_path: Path) -> None:
    place = tmp_path / "a table"
    write_deltalake(str(place), pa.table({"k": pa.array([1, 2], pa.int64())}))
    write_deltalake(str(place), pa.table({"k": pa.array([3], pa.int64())}), mode="append")
    spark.sql(f"CREATE TABLE delta_named (k BIGINT) USING parquet LOCATION '{place}'")
    try:
        as_delta(spark, "delta_named")
        with Lakebloom(spark, str(tmp_path / "indexes")) as lake:
            lake.create_index("default.delta_named", BloomIndexConfig("i", ["k"]))
            table = lake.catalog.index("i").log.newest().table
            assert table.snapshot is not None
            assert table.locations == (f"file://{place}",)
            assert lake.lookup("i", "k = 3").num_rows == 1
            DeltaTable(str(place)).delete("k = 3")
            assert lake.lookup("i", "k = 3").num_rows == 0
            assert lake.refresh_index("i").committed
    finally:
        session: Any = spark  # not by SQL, which looks for the provider
        named = session._jvm.org.apache.spark.sql.catalyst.TableIdentifier("delta_named")
        session._jsparkSession.sessionState().catalog().dropTable(named, True, False)


def test_the_statements_of_an_erasure_are_sql(spark: SparkSession, tmp_path: Path) -> None:
    """Spark parses those that are its own; VACUUM and REORG are Delta's."""
    write_deltalake(str(tmp_path / "t"), pa.table({"k": ["a", "it's", "b\\c", "d"]}))
    with Lakebloom(spark, str(tmp_path / "indexes")) as lake:
        lake.create_index(str(tmp_path / "t"), BloomIndexConfig("i", ["k"]))
        few = lake.erasure_plan("i", ["a", "d"]).steps[0].statement
        plan = lake.erasure_plan("i", ["a", "it's", "b\\c"]).write_keys(tmp_path / "keys.parquet")
        view, merge = plan.steps[0].statement.splitlines()
    session: Any = spark
    parser = session._jsparkSession.sessionState().sqlParser()
    assert "DeleteFromTable" in parser.parsePlan(few.rstrip(";")).getClass().getName()
    assert "MergeIntoTable" in parser.parsePlan(merge.rstrip(";")).getClass().getName()
    spark.sql(view.rstrip(";"))
    assert sorted(row.key for row in spark.table("erased_keys").collect()) == ["a", "b\\c", "it's"]
    spark.catalog.dropTempView("erased_keys")
