"""A query that was planned at one moment and runs at another finds what it would find without indexes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812

from lakebloom import BloomIndexConfig, Lakebloom
from tests.spark.skipping.support import configured, rows, skipping
from tests.spark.support import write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


def planned(frame: DataFrame) -> DataFrame:
    jdf: Any = frame._jdf
    jdf.queryExecution().executedPlan()
    return frame


@pytest.fixture(params=["partitioned", "plain"])
def table(request: pytest.FixtureRequest, spark: SparkSession, lake: Lakebloom, database: str) -> str:
    """A catalog table with an index that has a global filter: the keys 0 to 3, one a file."""
    name = f"{database}.t"
    by = "PARTITIONED BY (p)" if request.param == "partitioned" else ""
    spark.sql(f"CREATE TABLE {name} (k BIGINT, p INT) USING parquet {by}")
    for number in range(4):
        spark.sql(f"INSERT INTO {name} VALUES ({number}, {number})")
    lake.create_index(name, BloomIndexConfig("x", ["k"], fpp=1e-7, global_filter=True))
    return name


def test_rows_inserted_after_planning_are_seen(
    spark: SparkSession, lake: Lakebloom, table: str, tmp_path: Path
) -> None:
    """Also by joins whose other side is filtered, or whose files are left out, and by frames of prune_join."""
    write(tmp_path / "other/0.parquet", {"k": pa.array([2, 3, 7, 8], pa.int64()), "v": pa.array([1, 2, 3, 4])})
    other = spark.read.parquet(str(tmp_path / "other"))
    small = spark.range(2, 8).selectExpr("id AS k")
    settings = {"spark.sql.autoBroadcastJoinThreshold": "-1", "spark.lakebloom.join.minBytes": "0"}
    shapes: list[Callable[[DataFrame], DataFrame]] = [
        lambda t: t.where("k = 7"),
        lambda t: t.where("k IN (2, 7)").groupBy("k").count(),
        lambda t: t.where("k = 7").union(t.where("k = 3")),
        lambda t: t.join(other, "k"),
        lambda t: t.join(other, "k", "left").where("k >= 7"),
        lambda t: other.join(t, "k", "left_semi"),
        lambda t: t.join(spark.sql("SELECT * FROM VALUES (2L), (7L) AS s(k)"), "k"),
    ]
    with configured(spark, settings), skipping(lake):
        before = [planned(shape(spark.table(table))) for shape in shapes]
        old = [rows(shape(spark.table(table))) for shape in shapes]
        by_hand = lake.prune_join(spark.table(table), small, "k")
        spark.sql(f"INSERT INTO {table} VALUES (7, 1), (8, 70)")
        found = [rows(frame) for frame in before]
        joined = rows(by_hand.join(small, "k"))
    expected = [rows(shape(spark.table(table))) for shape in shapes]
    assert found == expected
    assert found != old  # each of them has something to find
    assert joined == rows(spark.table(table).join(small, "k"))


def test_keys_of_a_cache_count_while_it_holds_them(spark: SparkSession, lake: Lakebloom, tmp_path: Path) -> None:
    for number in range(12):
        write(tmp_path / f"t/{number}.parquet", {"k": pa.array([number], pa.int64()), "v": pa.array([1])})
    lake.create_index(tmp_path / "t", BloomIndexConfig("x", ["k"], fpp=1e-7))
    write(tmp_path / "small/0.parquet", {"k": pa.array([2, 3], pa.int64())})
    table = spark.read.parquet(str(tmp_path / "t"))
    dice = F.udf(lambda _: __import__("random").randrange(12), "long").asNondeterministic()
    draw = spark.range(4)
    sides: dict[str, tuple[DataFrame, bool]] = {
        "computed": (spark.range(2, 4).selectExpr("id AS k"), True),
        "files": (spark.read.parquet(str(tmp_path / "small")), True),
        "grouped": (draw.selectExpr("id % 2 AS k").groupBy("k").count(), True),
        "random": (draw.selectExpr("cast(rand() * 12 AS bigint) AS k"), False),
        "a random function": (draw.select(dice("id").alias("k")), False),
        "any rows": (spark.range(12).repartition(3).limit(4).selectExpr("id AS k"), False),
        "a Python list": (spark.createDataFrame([(2,), (3,)], "k bigint"), True),
        "Python's rows": (spark.sparkContext.parallelize([(2,), (3,)]).toDF("k bigint"), False),
    }
    with skipping(lake):
        for name, (frame, leaves_out) in sides.items():
            small = frame.cache()
            small.count()
            query = planned(small.join(table, "k", "left"))
            (scan, *_) = [scan for scan in lake.explain(query).scans if scan.table.endswith("/t")]
            assert (scan.files_kept < 12) == leaves_out, name
            again = small.join(table, "k", "left").collect()
            assert all(row.v == 1 for row in again), name
            small.unpersist(blocking=True)
            if name == "files":  # computed anew, with other keys
                write(tmp_path / "small/0.parquet", {"k": pa.array([9, 8], pa.int64())})
            found = query.collect()
            assert all(row.v == 1 for row in found), name


def test_prune_join_does_not_trust_random_keys(spark: SparkSession, lake: Lakebloom, tmp_path: Path) -> None:
    for number in range(12):
        write(tmp_path / f"t/{number}.parquet", {"k": pa.array([number], pa.int64())})
    lake.create_index(tmp_path / "t", BloomIndexConfig("x", ["k"], fpp=1e-7))
    table = spark.read.parquet(str(tmp_path / "t"))
    pruned = lake.prune_join(table, spark.range(3).selectExpr("cast(rand() * 12 AS bigint) AS k"), "k")
    assert pruned.count() == 12
