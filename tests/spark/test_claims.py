"""explain, last_query and the scan's own metrics agree for every query that ran, or say that they do not know."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lakebloom import BloomIndexConfig, Lakebloom
from lakebloom.index.query.scan_reports import Use
from lakebloom.predicate.reasons import Reason
from tests.spark.skipping.support import configured, skipping
from tests.spark.support import write

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from lakebloom.index.query.query_reports import LastQuery

pytestmark = pytest.mark.spark
FILES = 6


@pytest.fixture
def tables(lake: Lakebloom, tmp_path: Path) -> Path:
    """The tables a, with the keys 0 to 5, and b, with 3 to 8; a is indexed by k, and half of it by v."""
    for number in range(FILES):
        keys = pa.array([number], pa.int64())
        write(tmp_path / f"a/p={number % 2}/{number}.parquet", {"k": keys, "v": pa.array([f"s{number}"])})
        write(tmp_path / f"b/{number}.parquet", {"k": pa.array([number + 3], pa.int64()), "w": keys})
    lake.create_index(tmp_path / "a", BloomIndexConfig("ak", ["k"], fpp=1e-7))
    return tmp_path


SHAPES: dict[str, Any] = {
    "a filter": lambda a, b: a.where("k = 3"),
    "nothing matches": lambda a, b: a.where("k = 77"),
    "of no use": lambda a, b: a.where("k <> 3"),
    "no condition": lambda a, b: a,
    "no files": lambda a, b: a.sparkSession.range(3),
    "a partition": lambda a, b: a.where("p = 1 AND k IN (1, 2)"),
    "a limit": lambda a, b: a.where("k IN (1, 2)").limit(1),
    "no rows wanted": lambda a, b: a.where("k = 3").limit(0),
    "sorted": lambda a, b: a.where("k IN (1, 2)").orderBy("k"),
    "grouped": lambda a, b: a.where("k IN (1, 2)").groupBy("p").count(),
    "a union": lambda a, b: a.where("k = 1").select("k").union(a.where("k IN (2, 3)").select("k")),
    "a shuffle used twice": lambda a, b: a.where("k = 1").groupBy("k").count().join(
        a.where("k = 1").groupBy("k").count().withColumnRenamed("count", "n"), "k"
    ),
    "a join": lambda a, b: a.join(b, "k").where("k IN (3, 4)"),
    "an empty join": lambda a, b: a.join(b, "k").where("k = 2"),
    "an empty anti join": lambda a, b: a.where("k = 4").join(b, "k", "left_anti"),
    "a subquery": lambda a, b: a.sparkSession.sql(
        "SELECT * FROM a WHERE k = 1 AND (SELECT max(k) FROM b WHERE k > 4) > 3"
    ),
    "exists": lambda a, b: a.sparkSession.sql(
        "SELECT * FROM a WHERE k IN (3, 4) AND EXISTS (SELECT 1 FROM b WHERE b.k = a.k)"
    ),
    "partitions at run time": lambda a, b: a.sparkSession.sql(
        "SELECT * FROM a WHERE k IN (1, 2) AND p = (SELECT max(w) % 2 FROM b WHERE k > 100000 OR w < 2)"
    ),
    "a window": lambda a, b: a.where("k IN (1, 2)").selectExpr("row_number() OVER (ORDER BY k) AS n"),
}  # fmt: skip


@pytest.fixture
def views(spark: SparkSession, tables: Path) -> Iterator[tuple[DataFrame, DataFrame]]:
    a, b = (spark.read.parquet(str(tables / name)) for name in "ab")
    a.createOrReplaceTempView("a")
    b.createOrReplaceTempView("b")
    yield a, b
    for name in "ab":
        spark.catalog.dropTempView(name)


def metered(plan: Any) -> Iterator[int]:
    """Yield what each scan of a plan counted, as Spark has it."""
    kind = plan.getClass().getSimpleName()
    if kind == "FileSourceScanExec":
        yield int(plan.metrics().apply("numFiles").value())
    elif kind == "AdaptiveSparkPlanExec":
        yield from metered(plan.executedPlan())
    elif kind.endswith("QueryStageExec"):
        yield from metered(plan.plan())
    if kind != "ReusedExchangeExec":
        for below in (plan.children(), plan.subqueries()):
            for i in range(below.size()):
                yield from metered(below.apply(i))


def counted(frame: DataFrame) -> Counter[int]:
    jdf: Any = frame._jdf
    return Counter(metered(jdf.queryExecution().executedPlan()))


def last(lake: Lakebloom) -> LastQuery:
    found = lake.last_query()
    assert found is not None
    return found


def told(lake: Lakebloom) -> Counter[int | None]:
    return Counter(scan.files_read for scan in last(lake).scans)


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_the_claims_agree(
    spark: SparkSession, lake: Lakebloom, views: tuple[DataFrame, DataFrame], adaptive: str
) -> None:
    settings = {"spark.sql.autoBroadcastJoinThreshold": "-1", "spark.sql.adaptive.enabled": adaptive}
    with configured(spark, settings), skipping(lake):
        for name, shape in SHAPES.items():
            frame = shape(*views)
            claims = lake.explain(frame).scans
            frame.collect()
            judge, facts = counted(frame), told(lake)
            assert judge <= facts, name  # a scan that is gone from the final plan is counted, too
            for scan in last(lake).scans:
                (same, *_) = [claim for claim in claims if claim.table == scan.table]
                assert scan.files == same.files or scan.files is None, name
            kept = Counter(claim.files_kept for claim in claims)
            if any(claim.at_run_time for claim in claims):
                assert sum(facts) <= sum(kept), name
            elif "twice" not in name:
                # What ran is what the plan reads; a side that turns out to be needless may not run at all.
                assert facts <= kept, name
                assert facts == kept or "empty" in name, name
            assert lake.explain(frame).scans == claims, name
            frame.collect()  # the scan does not list again, and counts nothing
            again = told(lake)
            assert again == facts or None in again or again <= facts, name


def test_the_plan_is_explained_and_not_the_index(
    spark: SparkSession, lake: Lakebloom, tables: Path, views: tuple[DataFrame, DataFrame]
) -> None:
    a, _ = views
    write(tables / "a/p=0/new.parquet", {"k": pa.array([3], pa.int64()), "v": pa.array(["s3"])})
    a = spark.read.parquet(str(tables / "a"))
    with skipping(lake):
        frame, useless = a.where("k = 3"), a.where("v = 's3'")
        claims, reasons = lake.explain(frame), lake.explain(useless).scans[0].reasons
        assert (claims.scans[0].use, claims.scans[0].files_kept) == (Use.PARTIAL, 2)
        assert reasons == (Reason.NO_USABLE_PREDICATE,)
        lake.refresh_index("ak")
        assert lake.explain(frame) == claims
        lake.delete_index("ak")
        assert lake.explain(frame) == claims
        lake.restore_index("ak")
        lake.create_index(tables / "a", BloomIndexConfig("av", ["v"], fpp=1e-7))
        assert lake.explain(useless).scans[0].files_kept == FILES + 1
        assert Reason.PLANNED_BEFORE in lake.explain(useless).scans[0].reasons
        assert Reason.DISABLED not in lake.explain(useless).scans[0].reasons
        assert lake.explain(a.where("v = 's3'")).scans[0].use is Use.FULL
    assert lake.explain(frame) == claims  # as it would run


def test_a_cache_is_read_by_the_query_that_fills_it(
    spark: SparkSession, lake: Lakebloom, views: tuple[DataFrame, DataFrame]
) -> None:
    a, _ = views
    before = a.where("p = 0").cache()
    before.count()
    try:
        with skipping(lake):
            cached = a.where("k IN (1, 2)").cache()
            before.where("k = 2").collect()
            assert told(lake) in (Counter(), Counter([None]))
            assert lake.explain(cached).scans[0].at_run_time
            cached.count()
            assert told(lake) == Counter([2])
            cached.where("k = 2").collect()
            assert told(lake) == Counter()
            assert not lake.explain(cached).scans[0].at_run_time
            assert "no files read" in str(last(lake))
            cached.unpersist()
    finally:
        before.unpersist()


def test_commands_and_failures(spark: SparkSession, lake: Lakebloom, tables: Path, database: str) -> None:
    a = spark.read.parquet(str(tables / "a"))
    with skipping(lake):
        a.where("k = 1").collect()
        spark.sql(f"CREATE TABLE {database}.n (k BIGINT) USING parquet")
        assert told(lake) == Counter([1])  # a command that reads no files is no query
        a.where("k IN (1, 2)").select("k").write.insertInto(f"{database}.n")
        assert told(lake) == Counter([2])
        spark.range(3).collect()
        assert told(lake) == Counter()
        with pytest.raises(Exception, match="DIVIDE"), configured(spark, {"spark.sql.ansi.enabled": "true"}):
            a.where("k = 1").selectExpr("k div (k - 1)").collect()
        assert last(lake).failed
        assert set(told(lake)) <= {None}


def test_two_lakes(spark: SparkSession, lake: Lakebloom, tables: Path) -> None:
    other = Lakebloom(spark, tables / "other")
    other.create_index(tables / "a", BloomIndexConfig("av", ["v"], fpp=1e-7))
    a = spark.read.parquet(str(tables / "a"))
    with skipping(other):
        frame = a.where("k = 1 AND v IN ('s1', 's2')")
        frame.collect()
        assert told(other) == Counter([2])
        (scan,) = lake.explain(frame).scans
        assert (scan.use, scan.reasons, scan.files_kept) == (Use.UNUSED, (Reason.DISABLED,), 2)
        assert other.explain(frame).scans[0].files_kept == 2
        with skipping(lake):
            frame = a.where("k = 1 AND v IN ('s1', 's2')")
            frame.collect()
            for one in (lake, other):
                assert told(one) == Counter([1])
                (scan,) = one.explain(frame).scans
                assert scan.files_kept == 1
                assert scan.use is not Use.UNUSED
            empty = a.where("k = 1").join(a.where("k = 2"), "k")
            empty.collect()
            assert told(lake) == told(other)
