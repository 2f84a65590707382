"""Conditions with something between them and the files: seen through where a row comes from one row, or explained."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.sql import Observation, Window
from pyspark.sql import functions as F  # noqa: N812

from lakebloom import Lakebloom
from lakebloom.index.query.scan_reports import Use
from lakebloom.predicate.reasons import Reason
from tests.spark.skipping.letters import BY_LETTER, EVERYTHING, letters, write_letters
from tests.spark.skipping.support import files_read, rows, skipping

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

SEEN_THROUGH: dict[str, Callable[[DataFrame], DataFrame]] = {
    "sample of all": lambda t: t.sample(fraction=1.0, seed=3).where("k = 3"),
    "file name": lambda t: t.withColumn("f", F.input_file_name()).where("k = 3"),
    "in upper case": lambda t: t.withColumn("f", F.upper(F.input_file_name())).where("k = 3 AND f IS NOT NULL"),
    "cube": lambda t: t.cube("k", "n").count().where("k = 3"),
    "rollup": lambda t: t.rollup("k", "n").count().where("k = 3 AND n IS NULL"),
    "hint": lambda t: t.hint("rebalance").where("k = 3"),
    "sorted": lambda t: t.orderBy("n").where("k = 3"),
    "repartitioned": lambda t: t.repartition(2, "n").where("k = 3"),
    "renamed": lambda t: t.withColumnRenamed("k", "n2").where("n2 = 3"),
    "window": lambda t: t.withColumn("r", F.count("*").over(Window.partitionBy("k"))).where("k = 3"),
    "observed below": lambda t: t.where("k = 3").observe(Observation(), F.count(F.lit(1)).alias("rows")),
}
NEEDS_ALL: dict[str, Callable[[DataFrame], DataFrame]] = {
    "limit": lambda t: t.orderBy("k", "n", "v").limit(5).where("k = 3"),
    "sample": lambda t: t.sample(fraction=0.7, seed=3).where("k = 3"),
    "replaced": lambda t: t.sample(True, 1.0, 3).where("k = 3"),
    "sampled afterwards": lambda t: t.where("k IN (1, 3)").sample(fraction=0.5, seed=3),
    "seed": lambda t: t.withColumn("r", F.rand(seed=7)).where("k = 3"),
    "seed afterwards": lambda t: t.where("k IN (1, 3)").withColumn("r", F.rand(seed=7)),
    "window": lambda t: t.withColumn("r", F.count("*").over(Window.partitionBy("n"))).where("k = 3"),
    "aggregate": lambda t: t.groupBy("n").agg(F.max("k").alias("k")).where("k = 3"),
    "observed": lambda t: t.observe(Observation(), F.count(F.lit(1)).alias("rows")).where("k = 3"),
}
UNANSWERED = {
    "upper(s) = 'ONE'": Reason.NOT_SUPPORTED,
    "abs(k) BETWEEN 1 AND 1000": Reason.NOT_SUPPORTED,
    "CAST(k AS STRING) = '1'": Reason.TYPE_MISMATCH,
    "k = 1D": Reason.TYPE_MISMATCH,
    "(k = 3) IS NOT TRUE": Reason.NEGATED,
    "CASE WHEN k = 3 THEN false ELSE true END": Reason.NEGATED,
    "nested <> named_struct('k', 5L, 'deep', named_struct('k', 5L))": Reason.NEGATED,
    "NOT array_contains(array(3), k)": Reason.NEGATED,
    "(k = 3) = (n = 3)": Reason.NOT_SUPPORTED,
    "v = 1": Reason.NO_INDEX,
    "a = named_struct('b', 1L)": Reason.NO_INDEX,
    "array_contains(array(k), 3)": Reason.NOT_SUPPORTED,
}


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lakebloom:
    home = tmp_path_factory.mktemp("above")
    lake = Lakebloom(spark, home / "indexes")
    lake.create_index(write_letters(home / "t"), BY_LETTER)
    return lake


@pytest.fixture(scope="module")
def table(spark: SparkSession, lake: Lakebloom) -> DataFrame:
    return spark.read.parquet(lake.index("by_letter").source).select("k", "n", "s", "v")


@pytest.mark.parametrize("shape", SEEN_THROUGH)
def test_seen_through(lake: Lakebloom, table: DataFrame, shape: str) -> None:
    with skipping(lake):
        frame = SEEN_THROUGH[shape](table)
        found = rows(frame)
        assert letters(files_read(frame)) == "b"
        (scan,) = lake.explain(frame).scans
        assert (scan.use, scan.files_kept) == (Use.FULL, 1)
    assert found == rows(SEEN_THROUGH[shape](table))


@pytest.mark.parametrize("shape", NEEDS_ALL)
def test_what_needs_all_rows(lake: Lakebloom, table: DataFrame, shape: str) -> None:
    with skipping(lake):
        frame = NEEDS_ALL[shape](table)
        found = rows(frame)
        assert letters(files_read(frame)) == EVERYTHING
        (scan,) = lake.explain(frame).scans
        assert scan.reasons == (Reason.NEEDS_ALL_ROWS,)
    assert found == rows(NEEDS_ALL[shape](table))


def test_observations_count_what_they_count_without_an_index(lake: Lakebloom, table: DataFrame) -> None:
    seen = []
    for enabled in (True, False):
        observation = Observation()
        query = table.observe(observation, F.count(F.lit(1)).alias("rows")).where("k = 3")
        if enabled:
            with skipping(lake):
                query.collect()
        else:
            query.collect()
        seen.append(observation.get)
    assert seen[0] == seen[1] == {"rows": 10}


def test_every_shape_that_is_not_answered_has_a_reason(spark: SparkSession, lake: Lakebloom) -> None:
    table = spark.read.parquet(lake.index("by_letter").source)
    with skipping(lake):
        for condition, reason in UNANSWERED.items():
            (scan,) = lake.explain(table.where(condition)).scans
            assert scan.use is Use.UNUSED, condition
            assert {part.reason for part in scan.parts} == {reason}, condition
            assert scan.reasons == (Reason.NO_USABLE_PREDICATE,), condition
