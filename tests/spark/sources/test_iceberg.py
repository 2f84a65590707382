"""Iceberg tables in a Spark session that has no connector for them: built, refreshed and read from their metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

pytest.importorskip("pyiceberg", reason="needs pyiceberg")

from pyiceberg.catalog.sql import SqlCatalog

from lakebloom import BloomIndexConfig, Lakebloom, col
from lakebloom.errors import NotFoundError, UnsupportedSourceError
from lakebloom.spark.sources.resolve import reopened, resolve
from lakebloom.tables.formats.iceberg.catalogs import forget_catalogs
from tests.index.iceberg_lake import Column, Model
from tests.index.logged_lake import ordered
from tests.spark.needs import needs_data_source

if TYPE_CHECKING:
    from pathlib import Path

    from pyiceberg.table import Table
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
BY_K = BloomIndexConfig("by_k", ["k"], fpp=1e-6)


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Table:
    """A table that pyiceberg wrote, in a catalog that is configured in the environment."""
    settings = {"uri": f"sqlite:///{tmp_path}/c.db", "warehouse": f"file://{tmp_path}/w"}
    for key, value in (*settings.items(), ("type", "sql")):
        monkeypatch.setenv(f"PYICEBERG_CATALOG__LAKE__{key.upper()}", value)
    forget_catalogs()
    catalog = SqlCatalog("lake", **settings)
    catalog.create_namespace("db")
    schema = pa.schema([("k", pa.int64()), ("v", pa.int64()), ("p", pa.string())])
    found = catalog.create_table("db.t", schema)
    with found.update_spec() as spec:
        spec.add_identity("p")
    for number in range(4):
        values = [range(10 * number, 10 * number + 10), [number] * 10, ["a b", None] * 5]
        found.append(pa.table(values, schema=schema))
    found.delete("k == 2")
    return found


def test_an_iceberg_table_by_path_metadata_and_name(
    spark: SparkSession, lake: Lakebloom, tmp_path: Path, table: Table
) -> None:
    path = tmp_path / "w/db/t"
    metadata = table.metadata_location
    for number, source in enumerate([str(path), path, f"iceberg.`{path}`", metadata, "lake.db.t"]):
        config = BloomIndexConfig(f"by_k{number}", ["k"])
        assert lake.price_index(source, config).files == len(list(table.scan().plan_files()))
        assert {row.column for row in lake.advise(source)} == {"k", "v", "p"}
        lake.create_index(source, config)
        record = lake.catalog.index(config.name).log.newest().table
        assert resolve(spark, reopened(spark, record)) == record
        for key in (2, 5, 33):
            found = lake.lookup(config.name, col("k") == key).to_pylist()
            assert ordered(found) == ordered(table.scan(f"k == {key}").to_arrow().to_pylist())
    table.append(pa.table([[5], [9], ["new"]], schema=table.schema().as_arrow()))
    for name in ("by_k0", "by_k2", "by_k4"):
        assert lake.lookup(name, col("k") == 5).num_rows == 2
        assert lake.refresh_index(name).files == 1
        assert lake.lookup(name, col("k") == 5, unindexed="error").num_rows == 2
        assert lake.verify_index(name).false_negatives == 0
        (status,) = lake.status(name)
        assert status.coverage == 1.0
    assert lake.lookup("by_k3", col("k") == 5).num_rows == 1  # one metadata file is one version
    with pytest.raises(NotFoundError, match=r"no Iceberg table db\.no"):
        lake.create_index("lake.db.no", BY_K)


@pytest.mark.usefixtures("in_tasks")
def test_a_job_of_spark_builds_the_same(lake: Lakebloom, table: Table) -> None:
    lake.create_index("lake.db.t", BY_K)
    assert lake.lookup("by_k", col("k") == 33).to_pylist() == table.scan("k == 33").to_arrow().to_pylist()


def test_parts_of_an_iceberg_table_are_refused(
    spark: SparkSession, lake: Lakebloom, tmp_path: Path, table: Table
) -> None:
    path = tmp_path / "w/db/t"
    file = next(path.rglob("*.parquet"))
    for source in (str(path / "data"), str(file), str(tmp_path / "w"), f"{path}/data/*", f"parquet.`{path}`"):
        with pytest.raises(UnsupportedSourceError, match=r"is a table of Iceberg, .*by its path"):
            lake.create_index(source, BY_K)


@needs_data_source
@pytest.mark.parametrize("version", [2, 3])
def test_the_data_source_serves_snapshots_with_deletes_and_mapping(
    spark: SparkSession, lake: Lakebloom, tmp_path: Path, version: int
) -> None:
    model = Model(tmp_path / "t", version=version)
    for number in range(4):
        rows = [{1: 10 * number + key, 2: f"s{key}", 3: None if number % 2 else "a b"} for key in range(10)]
        model.append(rows, with_partition=number > 1)
    first = model.hand.current
    if version == 3:
        model.delete_vector(model.files[0], {0, 3})
    else:
        model.delete_positions([(model.files[0], {0, 3})], alone=False)
    model.delete_equal([1], [(11,), (25,)], None)
    second = model.hand.current
    lake.create_index(tmp_path / "t", BY_K)
    model.columns[1] = Column(9, "s", "string", "new" if version == 3 else None)
    model.columns[0].name = "key"
    model.alter()
    for snapshot in (None, second, first):
        rows, name = model.rows(snapshot), "key" if snapshot is None else "k"
        frame = lake.read("by_k", version=snapshot)
        assert ordered([row.asDict() for row in frame.collect()]) == ordered(rows)
        for key in (3, 4, 11, 25):
            found = lake.read("by_k", col(name) == key, version=snapshot).collect()
            assert ordered([row.asDict() for row in found]) == ordered([row for row in rows if row[name] == key])
    reader = spark.read.format("lakebloom").option("location", lake.location)
    assert reader.option("version", str(first)).option("where", "k = 3").load("by_k").count() == 1
    assert reader.option("version", str(second)).option("where", "k = 3").load("by_k").count() == 0


def test_the_rule_leaves_files_of_an_iceberg_table_alone(
    spark: SparkSession, lake: Lakebloom, tmp_path: Path, table: Table
) -> None:
    """Read as plain Parquet, the directory is what Spark finds there, with an index or without."""
    path = str(tmp_path / "w/db/t/data")
    lake.create_index("lake.db.t", BY_K)
    expected = spark.read.parquet(path).where("k = 2").count()
    lake.enable()
    try:
        frame = spark.read.parquet(path).where("k = 2")
        assert frame.count() == expected
        (scan,) = lake.explain(frame).scans
        assert scan.files_skipped == 0
    finally:
        lake.disable()
