"""Skipping from end to end: what queries return, what their plans say, what scans count. `make compat` runs it too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from lakebloom import BloomIndexConfig
from tests.spark.support import fresh_name, write

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from lakebloom import Lakebloom

pytestmark = pytest.mark.spark
INDEX, FILES, ROWS = "by_key", 20, 50
EXACT = 1e-7


@pytest.fixture
def enable(lake: Lakebloom) -> Iterator[Callable[..., None]]:
    """Creates an index of these columns and turns skipping on, until the test ends."""

    def create_and_enable(source: object, *columns: str) -> None:
        lake.create_index(source, BloomIndexConfig(INDEX, list(columns), fpp=EXACT))
        lake.enable()

    yield create_and_enable
    lake.disable()


def keys_of(number: int) -> list[str]:
    return [f"key-{number:02d}-{row:02d}" for row in range(ROWS)]


def columns(number: int) -> dict[str, Any]:
    return {"key": keys_of(number), "amount": list(range(number * ROWS, (number + 1) * ROWS))}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Twenty files, of which each has keys of its own."""
    for number in range(FILES):
        write(tmp_path / "t" / f"{number}.parquet", columns(number))
    return tmp_path / "t"


def scan(df: DataFrame) -> Any:
    """The only scan of files in the plan that ran."""
    plan: Any = df._jdf.queryExecution().executedPlan()
    plan = plan.executedPlan() if "AdaptiveSparkPlan" in plan.nodeName() else plan
    leaves = plan.collectLeaves()
    scans = [leaves.apply(i) for i in range(leaves.size()) if "FileSourceScan" in leaves.apply(i).getClass().getName()]
    assert len(scans) == 1, plan.toString()
    return scans[0]


def files_read(df: DataFrame) -> int:
    """What the scan counted."""
    return int(scan(df).metrics().apply("numFiles").value())


def test_a_result_a_plan_and_metrics(spark: SparkSession, enable: Callable[..., None], table: Path) -> None:
    enable(table, "key", "amount")
    frame = spark.read.parquet(str(table))
    for condition, found, kept in (
        ("key = 'key-07-03'", [353], 1),
        ("amount = 353", [353], 1),
        ("'key-07-03' <=> key", [353], 1),
        ("key = 'absent'", [], 0),
        ("key IN ('key-07-03', 'key-08-04', 'absent')", [353, 404], 2),
        (f"amount IN ({', '.join(map(str, range(20, 80)))})", list(range(20, 80)), 2),
        ("key IS NULL", [], 0),
        ("key = 'key-07-03' OR amount = 5", [5, 353], 2),
        ("key = 'key-07-03' AND amount = 5", [], 0),
        ("NOT (key <> 'key-07-03')", [353], 1),
        ("key > 'key-19-48'", [999], 1),
        ("abs(amount) > 998", [999], FILES),
    ):
        query = frame.where(condition).select("amount")
        assert sorted(row.amount for row in query.collect()) == found, condition
        assert files_read(query) == kept, condition
        if kept < FILES:
            assert f"{INDEX}: {kept} of {FILES} files, " in query._jdf.queryExecution().toString()


def test_a_catalog_table_with_statistics(
    spark: SparkSession, enable: Callable[..., None], table: Path, request: pytest.FixtureRequest
) -> None:
    name = fresh_name()
    spark.sql(f"CREATE TABLE {name} USING parquet LOCATION '{table}'")
    request.addfinalizer(lambda: spark.sql(f"DROP TABLE {name}"))
    spark.sql(f"ANALYZE TABLE {name} COMPUTE STATISTICS FOR ALL COLUMNS")
    enable(name, "key")
    query = spark.sql(f"SELECT amount FROM {name} WHERE key = 'key-11-00'")
    assert [row.amount for row in query.collect()] == [550]
    assert files_read(query) == 1
    relation = query._jdf.queryExecution().optimizedPlan().collectLeaves().apply(0)
    assert int(relation.stats().sizeInBytes()) <= (table / "11.parquet").stat().st_size


@pytest.mark.parametrize("catalog", [False, True])
def test_a_partitioned_table(
    spark: SparkSession, enable: Callable[..., None], tmp_path: Path, request: pytest.FixtureRequest, catalog: bool
) -> None:
    for number in range(FILES):
        write(tmp_path / "t" / f"day={number % 2}" / f"{number}.parquet", columns(number))
    source = str(tmp_path / "t")
    if catalog:
        source = fresh_name()
        spark.sql(
            f"CREATE TABLE {source} (key STRING, amount BIGINT, day INT) USING parquet PARTITIONED BY (day) "
            f"LOCATION '{tmp_path / 't'}'"
        )
        request.addfinalizer(lambda: spark.sql(f"DROP TABLE {source}"))
        spark.sql(f"MSCK REPAIR TABLE {source}")
    enable(source, "key")
    frame = spark.table(source) if catalog else spark.read.parquet(source)
    for condition, found, kept in (
        ("key = 'key-07-03'", [(353, 1)], 1),
        ("key = 'key-07-03' AND day = 1", [(353, 1)], 1),
        ("key = 'key-07-03' AND day = 0", [], 0),
        ("key IN ('key-06-00', 'key-07-00')", [(300, 0), (350, 1)], 2),
    ):
        query = frame.where(condition)
        assert sorted((row.amount, row.day) for row in query.collect()) == found, condition
        assert files_read(query) == kept, condition


def test_in_a_subquery(spark: SparkSession, enable: Callable[..., None], table: Path) -> None:
    enable(table, "key")
    spark.read.parquet(str(table)).createOrReplaceTempView("smoke")
    query = spark.sql("SELECT (SELECT max(amount) FROM smoke WHERE key = 'key-19-49') AS most, 1 AS one")
    assert [tuple(row) for row in query.collect()] == [(999, 1)]
    assert f"{INDEX}: 1 of {FILES} files, " in query._jdf.queryExecution().toString()


def test_disabled_again(spark: SparkSession, lake: Lakebloom, enable: Callable[..., None], table: Path) -> None:
    enable(table, "key")
    frame = spark.read.parquet(str(table)).where("key = 'key-07-03'")
    assert frame.count() == 1
    lake.disable()
    query = frame.select("amount")
    assert [row.amount for row in query.collect()] == [353]
    assert files_read(query) == FILES
