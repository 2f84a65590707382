"""What Spark pushes down to the data source: used where one query is the only one, and refused where it is not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from lakebloom import BloomIndexConfig, Lakebloom
from tests.spark.data_source.test_source import has_push_down, rows, through
from tests.spark.support import keys

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture
def pushing(spark: SparkSession) -> Iterator[None]:
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    yield
    spark.conf.unset("spark.sql.python.filterPushdown.enabled")


@has_push_down
@pytest.mark.usefixtures("pushing")
def test_a_querys_own_conditions_skip_where_it_is_the_only_one(
    spark: SparkSession, source: Lakebloom, tmp_path: Path
) -> None:
    table = tmp_path / "t"
    for part in range(3):
        lossy = "(NULL, CAST(X'FF61' AS STRING), NULL, DATE'1582-10-10')"
        values = f"({part}, 's{part}', {part}.5F, DATE'2024-01-0{part + 1}'), {lossy}"
        frame = spark.sql(f"SELECT * FROM VALUES {values} AS t (k, s, f, day)")
        frame.coalesce(1).write.mode("append").parquet(str(table))
    source.create_index(str(table), BloomIndexConfig("pushed", ["k", "s", "f", "day"], fpp=1e-6))
    plain = spark.read.parquet(str(table))
    skipping = {"k = 1 AND s = 's1'": 1, "k IN (0, 2, 7)": 2, "f = 1.5": 1, "day = DATE'2024-01-02'": 1, "k <=> 9": 0}
    # Java has no 10th of October 1582, and no string of these bytes.
    kept = {"day = DATE'1582-10-10'": 3, "s = CAST(X'FF61' AS STRING)": 3, "s >= CAST(X'FF61' AS STRING)": 3}
    skipping |= {"k > 1": 1, "k <= 1": 2, "k BETWEEN 5 AND 9": 0, "f < 1.5": 1, "day >= DATE'2024-01-02'": 2}
    # X'FF61' is the largest string of each file.
    skipping |= {"s LIKE 's1%'": 2, "s LIKE 's3%'": 3, "s < 's1'": 1, "startswith(s, 'a')": 0}
    for condition, files in {**skipping, **kept, "k <> 1": 3, "k = 1 OR k = 2": 3, "k IS NULL": 3}.items():
        found = through(spark, "pushed", readOnce="true", partitionBytes="1").where(condition)
        assert found.rdd.getNumPartitions() == max(files, 1), condition
        assert rows(_shown(found), "row") == rows(_shown(plain.where(condition)), "row"), condition


def _shown(frame: DataFrame) -> DataFrame:
    return frame.selectExpr("struct(k, hex(s), f, day) AS row")  # Python has no string of these bytes either


@has_push_down
@pytest.mark.usefixtures("pushing")
def test_spark_gives_what_one_query_planned_to_another(spark: SparkSession, source: Lakebloom, tmp_path: Path) -> None:
    """Why ``readOnce`` is not the default. Where this fails, Spark has mended it."""
    source.create_index(keys(tmp_path / "t", range(10), range(10, 20)), BloomIndexConfig("flaw", ["k"], fpp=1e-6))
    for read_once, rows_left in {"true": 10, "false": 20}.items():
        frame = through(spark, "flaw", readOnce=read_once)
        assert frame.where("k = 15").count() == 1
        assert frame.count() == rows_left


@has_push_down
def test_push_down_must_be_allowed(spark: SparkSession, source: Lakebloom, tmp_path: Path) -> None:
    from pyspark.errors import AnalysisException

    source.create_index(keys(tmp_path / "t", range(10)), BloomIndexConfig("refused", ["k"], fpp=1e-6))
    assert through(spark, "refused").where("k = 5").count() == 1
    with pytest.raises(AnalysisException, match=r"spark\.sql\.python\.filterPushdown\.enabled"):
        through(spark, "refused", readOnce="true").where("k = 5").count()
