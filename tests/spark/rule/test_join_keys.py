"""Joins with something small: which keep files closed, which do not and say why, and that no row is lost."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql import Row
from pyspark.sql import functions as F  # noqa: N812

from lakebloom import BloomIndexConfig, Lakebloom
from lakebloom.predicate.reasons import Reason
from tests.spark.needs import HAS_ARROW_INPUT
from tests.spark.skipping.support import configured, rows, skipping
from tests.spark.support import write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    Query = Callable[[], DataFrame]

FILES, ROWS = 10, 20
KEYS = "k bigint"


@pytest.fixture
def events(spark: SparkSession, lake: Lakebloom, tmp_path: Path) -> DataFrame:
    """File n holds the keys 20 n to 20 n + 19, in several types; file 0 holds NULLs, too."""
    for number in range(FILES):
        keys: list[int | None] = [*range(number * ROWS, (number + 1) * ROWS), *([None] if number == 0 else [])]
        floats = [None if key is None else float(key) for key in keys]
        columns = {
            "k": pa.array(keys, pa.int64()),
            "i": pa.array(keys, pa.int32()),
            "d": pa.array(floats, pa.float64()),
            "f": pa.array(floats, pa.float32()),
            "s": pa.array([None if key is None else str(key) for key in keys]),
            "n": pa.array([{"k": key} for key in keys]),
            "v": pa.array(range(len(keys))),
        }
        write(tmp_path / f"events/{number}.parquet", columns)
    lake.create_index(tmp_path / "events", BloomIndexConfig("events", ["k", "i", "d", "f", "s", "n.k"], fpp=1e-7))
    frame = spark.read.parquet(str(tmp_path / "events"))
    frame.createOrReplaceTempView("events")
    spark.createDataFrame([(7,), (45,), (None,)], KEYS).createOrReplaceTempView("few")
    write(tmp_path / "some.parquet", {"k": pa.array([7, 45], pa.int64())})
    spark.read.parquet(str(tmp_path / "some.parquet")).createOrReplaceTempView("some")
    return frame


def listed(spark: SparkSession, *keys: Any, schema: str = KEYS) -> DataFrame:
    return spark.createDataFrame([(key,) for key in keys], schema)


STRUCTS = "named_struct('x', {}, 'y', {}) = named_struct('x', {}, 'y', {})"
"""Before Spark 4.0 structs are compared only if their fields have the same names."""


def kept(lake: Lakebloom, query: Query) -> int:
    """How many of the events' files a query reads, whose rows are those that it has without indexes."""
    with skipping(lake):
        frame = query()
        report = lake.explain(frame)
        found = rows(frame)
    assert found == rows(query())
    return sum(scan.files_kept for scan in report.scans if scan.table.endswith("events"))


def test_small_sides_of_every_kind_skip_files(spark: SparkSession, lake: Lakebloom, events: DataFrame) -> None:
    few = spark.table("few")
    arrow = lambda: spark.createDataFrame(pa.table({"k": [7]}))  # noqa: E731
    two = few.where("k > 40").selectExpr("cast(k AS int) AS a", "k + 20 AS b")
    cached = listed(spark, 7).cache()
    filled = listed(spark, 7).cache()
    filled.count()
    sides: dict[str, tuple[Query, int]] = {
        "a list": (lambda: events.join(few, "k"), 2),
        "a list of rows": (lambda: events.join(spark.createDataFrame([Row(k=7)]), "k"), 1),
        "a long list": (lambda: events.join(listed(spark, *(i % 5 for i in range(3000))), "k"), 1),
        **({"an Arrow table": (lambda: events.join(arrow(), "k"), 1)} if HAS_ARROW_INPUT else {}),
        "broadcast": (lambda: events.join(F.broadcast(few.where("k > 8").distinct()), "k"), 1),
        "a range": (lambda: events.join(spark.range(3).toDF("k"), "k"), 1),
        "a limit": (lambda: events.join(few.orderBy(F.desc("k")).limit(1), "k"), 2),
        "a union": (lambda: events.join(few.union(spark.range(199, 200).toDF("k")), "k"), 3),
        "grouped": (lambda: events.join(few.groupBy("k").agg(F.sum("k").alias("n")), "k"), 2),
        "another column is random": (lambda: events.join(few.withColumn("r", F.lit(0) * F.rand()), "k"), 2),
        "joined with a table": (lambda: events.join(spark.table("some").join(few, "k"), "k"), 2),
        "a cache of a list": (lambda: events.join(cached, "k"), 1),
        "a full cache of a list": (lambda: events.join(filled, "k"), 1),
        "a checkpoint": (lambda: events.join(spark.table("some").where("k > 9").localCheckpoint(), "k"), 1),
        "a checkpoint of random rows": (
            lambda: events.join(spark.range(3).selectExpr("cast(rand() AS bigint) AS k").localCheckpoint(), "k"),
            1,
        ),
        "no keys": (lambda: events.join(listed(spark), "k"), 0),
        "only NULL": (lambda: events.join(listed(spark, None), "k"), 0),
        "int keys": (lambda: events.join(listed(spark, 7, schema="k int"), "k"), 1),
        "bigint keys of an int column": (lambda: events.join(listed(spark, 7, 2**40, schema="i bigint"), "i"), 1),
        "none that the column can hold": (lambda: events.join(listed(spark, 2**40, schema="i bigint"), "i"), 0),
        "doubles": (lambda: events.join(listed(spark, -0.0, float("nan"), schema="d double"), "d"), 1),
        "double keys of a float column": (lambda: events.join(listed(spark, 7.0, 0.1, schema="f double"), "f"), 1),
        "strings": (lambda: events.join(listed(spark, "7", "x", schema="s string"), "s"), 1),
        "a leaf": (lambda: events.join(few.toDF("z"), F.expr("n.k = z")), 2),
        "two keys": (lambda: events.join(two, (events.i == two.a) & (events.k == two.b)), 0),
        "structs": (
            lambda: events.join(two, F.expr(STRUCTS.format("i", "k", "a", "b - 20"))),
            1,
        ),
        "null-safe": (lambda: events.join(few.toDF("z"), F.expr("k <=> z")), 2),
        "null-safe with NULL": (lambda: events.join(listed(spark, 45, None).toDF("z"), F.expr("k <=> z")), 2),
        "two joins": (lambda: events.join(few, "k").join(listed(spark, 45, 99), "k"), 1),
        "a union of tables": (lambda: events.union(events).join(few, "k"), 4),
        "a window by the key": (lambda: events.selectExpr("k", "sum(v) OVER (PARTITION BY k)").join(few, "k"), 2),
    }
    for name, (query, expected) in sides.items():
        assert kept(lake, query) == expected, name
    cached.unpersist()
    filled.unpersist()


def test_subqueries_skip_files(spark: SparkSession, lake: Lakebloom, events: DataFrame) -> None:
    for condition, expected in {
        "k IN (SELECT k FROM few)": 2,
        "k IN (SELECT 7 UNION SELECT 8)": 1,
        "k IN (SELECT explode(array(7, 190)))": 2,
        "i IN (SELECT k FROM few)": 2,
        "(k, i) IN (SELECT k, cast(k AS int) FROM few WHERE k > 7)": 1,
        "EXISTS (SELECT 1 FROM few WHERE few.k = events.k)": 2,
        "k = (SELECT max(k) FROM few WHERE k < 40)": 1,
        "i = (SELECT min(k) FROM few WHERE k > 40)": 1,
        "k = coalesce((SELECT max(k) FROM few WHERE k > 1000), 190)": 1,
        "k <=> (SELECT max(k) FROM few WHERE k > 1000)": 1,
        "k = (SELECT count(*) FROM few)": FILES,
        "k IN (SELECT k FROM few) OR v = 3": FILES,
        "k NOT IN (SELECT k FROM few WHERE k > 0)": FILES,
        "k NOT IN (SELECT k FROM few)": FILES,
    }.items():
        assert kept(lake, lambda where=condition: spark.sql(f"SELECT * FROM events WHERE {where}")) == expected, (  # type: ignore[misc]
            condition
        )
    assert kept(lake, lambda: spark.sql("SELECT k FROM events INTERSECT SELECT k FROM few")) == 2
    assert kept(lake, lambda: spark.sql("SELECT k FROM events EXCEPT SELECT k FROM few")) == FILES


def test_joins_that_skip_nothing_say_why(spark: SparkSession, lake: Lakebloom, events: DataFrame) -> None:
    few, some = spark.table("few"), spark.table("some")
    other = few.toDF("z")
    numbers = spark.sparkContext.parallelize([(7,)])
    waiting = some.where("k > 0").cache()
    drawn = spark.range(3).selectExpr("cast(rand() AS bigint) AS k").cache()
    drawn.count()
    identity = F.udf(lambda key: key, "bigint")
    queries: dict[str, tuple[Query, Reason]] = {
        "a table": (lambda: events.join(some, "k"), Reason.KEYS_AT_RUN_TIME),
        "rows of a Python function": (
            lambda: events.join(numbers.map(lambda row: row).toDF(KEYS), "k"),
            Reason.KEYS_AT_RUN_TIME,
        ),
        "a UDF": (lambda: events.join(few.select(identity("k").alias("k")), "k"), Reason.KEYS_AT_RUN_TIME),
        "a sum": (lambda: events.join(few.selectExpr("sum(k) AS k"), "k"), Reason.KEYS_AT_RUN_TIME),
        "a subquery": (
            lambda: spark.sql("SELECT * FROM events WHERE k = (SELECT max(k) FROM some)"),
            Reason.KEYS_AT_RUN_TIME,
        ),
        "a cache to come": (lambda: events.join(waiting, "k"), Reason.CACHE_NOT_FILLED),
        "a random cache": (lambda: events.join(drawn, "k"), Reason.NOT_REPEATABLE),
        "random": (lambda: events.join(few.selectExpr("cast(rand() AS bigint) AS k"), "k"), Reason.NOT_REPEATABLE),
        "numbered": (
            lambda: events.join(few.selectExpr("monotonically_increasing_id() AS k"), "k"),
            Reason.NOT_REPEATABLE,
        ),
        "random rows": (lambda: events.join(few.where("rand() < 0.5"), "k"), Reason.NOT_REPEATABLE),
        "a sample": (lambda: events.join(few.sample(0.5), "k"), Reason.NOT_REPEATABLE),
        "many numbers": (lambda: events.join(spark.range(10**9).toDF("k"), "k"), Reason.TOO_MANY_KEYS),
        "an outer join": (lambda: events.join(few, "k", "left"), Reason.JOIN_NOT_SAFE),
        "an anti join": (lambda: events.join(few, "k", "left_anti"), Reason.JOIN_NOT_SAFE),
        "within OR": (
            lambda: spark.sql("SELECT * FROM events WHERE k IN (SELECT k FROM few) OR v = 3"),
            Reason.JOIN_NOT_SAFE,
        ),
        "computed": (lambda: events.join(other, F.expr("k + 1 = z")), Reason.KEY_COMPUTED),
        "another type": (lambda: events.join(other, F.expr("s = z")), Reason.KEY_COMPUTED),
        "a limit": (lambda: events.orderBy("v").limit(30).join(few, "k"), Reason.NEEDS_ALL_ROWS),
        "everywhere": (lambda: events.join(spark.range(0, 200, 5).toDF("k"), "k"), Reason.NOT_SELECTIVE),
    }
    for name, (query, reason) in queries.items():
        with skipping(lake):
            report = lake.explain(query())
        (scan,) = [scan for scan in report.scans if scan.table.endswith("events")]
        assert len(scan.joins) == 1, name
        (join,) = scan.joins
        assert (join.reason, scan.files_kept) == (reason, FILES), name
        assert reason in scan.reasons, name
        assert f"{reason.value}: {reason.meaning}. Remedy: {reason.remedy}" in str(report), name
        assert reason.value in report._repr_html_(), name
    assert lake.explain(events.join(few, "k")).scans[0].joins[0].reason is Reason.DISABLED
    with configured(spark, {"spark.lakebloom.join.maxKeys": "1"}), skipping(lake):
        (join,) = lake.explain(events.join(few, "k")).scans[0].joins
        assert (join.reason, join.message) == (Reason.TOO_MANY_KEYS, "more than 1 keys")
    with configured(spark, {"spark.lakebloom.join.maxKeyBytes": "1k"}), skipping(lake):
        (join,) = lake.explain(events.join(listed(spark, *range(1000)), "k")).scans[0].joins
        assert join.reason is Reason.TOO_MANY_KEYS
        assert "maxKeyBytes is 1024" in join.message
    waiting.unpersist()
    drawn.unpersist()


def test_planning_runs_no_job(spark: SparkSession, lake: Lakebloom, events: DataFrame) -> None:
    """Neither to find the keys of a list, nor to find out that a side is not at hand."""
    context: Any = spark.sparkContext
    scheduler = context._jsc.sc().dagScheduler()
    few = spark.table("few")
    numbers = context.parallelize([(7,)]).map(lambda row: row).toDF(KEYS)
    with skipping(lake):
        for small in (few, few.distinct(), few.cache(), spark.range(9).toDF("k"), numbers, spark.table("some")):
            before = scheduler.numTotalJobs()
            frame: Any = events.join(small, "k")
            frame._jdf.queryExecution().executedPlan()
            assert scheduler.numTotalJobs() == before
    few.unpersist()


def test_rows_that_are_fixed_stay_fixed(spark: SparkSession, lake: Lakebloom, events: DataFrame) -> None:
    """A list that Python changes, caches that come and go, and a checkpoint: between planning and running."""
    keys = [(7,)]
    small = spark.createDataFrame(keys, KEYS)
    keys.append((45,))
    random_rows = spark.range(50).selectExpr("cast(rand() * 200 AS bigint) AS k").localCheckpoint()
    cached = small.cache()
    with skipping(lake):
        query = events.join(small, "k", "right").select("k", "v")
        fixed = random_rows.join(events, "k", "left").select("k", "v")
        for frame in (query, fixed):
            jdf: Any = frame._jdf
            jdf.queryExecution().executedPlan()
        cached.count()
        assert [row.k for row in query.collect()] == [7]
        cached.unpersist(blocking=True)
        assert [row.k for row in query.collect()] == [7]
        assert all(row.v is not None for row in fixed.collect())
        assert all(row.v is not None for row in fixed.collect())


ZEROS = "VALUES (double('-0.0')), (double('0.0')), (double('NaN')), (NULL)"
GROUPED = [
    "SELECT cast(d AS string) AS z FROM (SELECT DISTINCT d FROM side)",
    "SELECT cast(d AS string) AS z FROM (SELECT d, count(*) FROM side GROUP BY d)",
    "SELECT z FROM (SELECT cast(d AS string) AS z FROM (SELECT DISTINCT d FROM side)) WHERE z LIKE '0%'",
    "SELECT 'a' AS z FROM (SELECT DISTINCT d FROM side) WHERE cast(d AS string) = '0.0'",
    "SELECT if(cast(d AS string) = '0.0', 'a', 'b') AS z FROM (SELECT DISTINCT d FROM side)",
    "SELECT cast(q.d AS string) AS z FROM (SELECT struct(d) AS q FROM side) GROUP BY q",
    "SELECT cast(q[0] AS string) AS z FROM (SELECT array(d) AS q FROM side) GROUP BY q",
    "SELECT cast(d AS string) AS z FROM (SELECT d FROM side UNION SELECT d FROM side)",
    "SELECT cast(d AS string) AS z FROM (SELECT d FROM side EXCEPT ALL SELECT 5.0D)",
    "SELECT cast(d AS string) AS z FROM (SELECT d FROM side INTERSECT SELECT 0.0D)",
    "SELECT cast(max(d) AS string) AS z FROM side WHERE d = 0",
]


def test_groups_do_not_tell_the_zeros_apart(spark: SparkSession, lake: Lakebloom, tmp_path: Path) -> None:
    """Rows with -0.0 are grouped as 0.0: what is computed of the group is of 0.0."""
    for number, text in enumerate(["0.0", "-0.0", "NaN", "a", "b"]):
        write(tmp_path / f"texts/{number}.parquet", {"s": pa.array([text])})
    lake.create_index(tmp_path / "texts", BloomIndexConfig("texts", ["s"], fpp=1e-7))
    spark.read.parquet(str(tmp_path / "texts")).createOrReplaceTempView("texts")
    listed_zero, zeros = spark.createDataFrame([(-0.0,)], "d double"), spark.sql(f"SELECT * FROM {ZEROS} AS v(d)")
    for side, asked in ((listed_zero, "JOIN ({}) ON s = z"), (zeros, "WHERE s IN ({})")):
        side.createOrReplaceTempView("side")
        for query in GROUPED:
            text = f"SELECT s FROM texts {asked.format(query)}"
            with skipping(lake):
                found = rows(spark.sql(text))
            assert found == rows(spark.sql(text)), text


def test_a_cache_over_a_cache_counts_with_its_own_rows(
    spark: SparkSession, lake: Lakebloom, events: DataFrame, tmp_path: Path
) -> None:
    source = tmp_path / "changing"
    write(source / "0.parquet", {"k": pa.array([7, 45], pa.int64())})
    below = spark.read.parquet(str(source)).cache()
    below.count()
    old = below.groupBy().count()
    jdf: Any = old._jdf
    jdf.queryExecution().executedPlan()
    above = below.where("k >= 0").cache()
    above.count()
    below.unpersist(blocking=True)
    write(source / "0.parquet", {"k": pa.array([150, 170], pa.int64())})
    old.collect()  # fills the lower cache of that plan with other rows
    with skipping(lake):
        found = [row.v for row in above.join(events, "k", "left").orderBy("k").collect()]
    assert found == [7, 5]
    above.unpersist()


def test_a_long_list_of_few_keys_does_not_hold_up_planning(
    spark: SparkSession, lake: Lakebloom, events: DataFrame
) -> None:
    side = spark.createDataFrame([(number % 3,) for number in range(1001)], KEYS)
    with skipping(lake), configured(spark, {"spark.lakebloom.join.maxKeys": "100"}):
        (scan, *_) = lake.explain(events.join(side, "k")).scans
    assert Reason.TOO_MANY_KEYS in {join.reason for join in scan.joins}


HOW = ("inner", "left_outer", "right_outer", "full_outer", "left_semi", "left_anti", "cross")


def test_random_small_sides_lose_no_row(spark: SparkSession, lake: Lakebloom, events: DataFrame) -> None:
    """Whatever is done to a small side before it is joined, in whatever way."""
    rng = random.Random(15)
    steps: list[Callable[[DataFrame], DataFrame]] = [
        lambda side: side.where("k IS NULL OR k % 2 = 1"),
        lambda side: side.selectExpr("k + 3 AS k"),
        lambda side: side.selectExpr("cast(k AS int) AS k"),
        lambda side: side.selectExpr("coalesce(k, 99) AS k"),
        lambda side: side.distinct(),
        lambda side: side.union(spark.range(61, 63).toDF("k")),
        lambda side: side.orderBy("k").limit(2),
        lambda side: side.groupBy(F.expr("k % 2")).agg(F.max("k").alias("k")).select("k"),
        lambda side: side.selectExpr("max(k) AS k"),
        lambda side: side.where("k > 1000").selectExpr("coalesce(min(k), 33) AS k"),
        lambda side: side.selectExpr("explode(array(k, 101)) AS k"),
        lambda side: (
            spark.table("some").join(side.toDF("z"), F.expr("k = z"), "left").selectExpr("coalesce(z, 150) AS k")
        ),
        lambda side: spark.table("some").join(side, "k", "full").select("k"),
        lambda side: side.join(spark.table("some"), "k", "left_anti"),
        lambda side: side.selectExpr("k", "row_number() OVER (ORDER BY k) AS n").where("n < 3").select("k"),
        lambda side: side.localCheckpoint(),
    ]
    for step in range(16):
        small = listed(spark, *rng.choices([None, *range(210)], k=rng.choice([1, 2, 5])))
        chosen = [rng.choice(steps) for _ in range(rng.choice([1, 2, 3]))]
        for change in chosen:
            small = change(small)
        how, flipped = rng.choice(HOW), rng.random() < 0.5
        on = rng.choice(
            ["k = z", "k <=> z", "i = z", "k = z AND v >= 0", "k = z OR v = z", STRUCTS.format("k", "v", "z", "7L")]
        )
        table = rng.choice([events, events.where("v < 15"), events.union(events.where("k > 50"))])
        other = small.toDF("z")

        def query(how: str = how, on: str = on, table: Any = table, other: Any = other, flipped: bool = flipped) -> Any:
            left, right = (other, table) if flipped else (table, other)
            joined = left.crossJoin(right).where(on) if how == "cross" else left.join(right, F.expr(on), how)
            return joined.drop("n")

        with skipping(lake):
            found = rows(query())
        assert found == rows(query()), (step, how, on, flipped, [steps.index(change) for change in chosen])
