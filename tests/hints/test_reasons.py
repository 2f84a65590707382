"""Each remedy of docs/REASONS.md is followed: a query that meets the reason, the remedy, and a query that does not.

Where the remedy says that none is needed, the query has the rows that it has without an index, and that is all.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812

from lakebloom import Lakebloom
from lakebloom.predicate.reasons import Reason
from tests.hints.registry import Registry
from tests.hints.world import FILES, World
from tests.spark.needs import HAS_COLLATIONS
from tests.spark.skipping.support import configured
from tests.spark.skipping.test_failures import Hanging
from tests.spark.support import fresh_name, reopen, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

case = Registry({})


@case("NO_INDEX")
def _(world: World) -> None:
    world.meets(world.frame("v = 7"))
    world.index("by_v", ["v"])
    world.is_out(world.frame("v = 7"))


@case("TYPE_MISMATCH")
def _(world: World) -> None:
    world.index("by_s", ["s"])
    world.meets(world.frame("k = 1.5D"))
    world.is_out(world.frame("k = 1"))


@case("COLLATION")
def _(world: World) -> None:
    if not HAS_COLLATIONS:
        pytest.skip("needs collations (Spark 4.0)")
    world.index("by_s", ["s"])
    lower = world.spark.read.schema("k BIGINT, s STRING COLLATE UTF8_LCASE").parquet(str(world.table))
    world.meets(lower.where("s = 'S7'"))
    world.is_out(world.frame("s = 's7'"))


@case("CHAR_PADDING")
def _(world: World) -> None:
    database = fresh_name()
    world.spark.sql(f"CREATE DATABASE {database} LOCATION '{world.home}/db'")
    try:
        world.spark.sql(f"CREATE TABLE {database}.t (c CHAR(5), k BIGINT) USING parquet")
        world.spark.sql(f"INSERT INTO {database}.t VALUES ('ab', 1)")
        world.index("by_key", ["k"], f"{database}.t")
        world.meets(world.spark.table(f"{database}.t").where("c = 'ab'"))
        world.spark.sql(f"CREATE TABLE {database}.u USING parquet AS SELECT rtrim(c) AS c, k FROM {database}.t")
        world.index("by_c", ["c"], f"{database}.u")  # stored as string
        world.is_out(world.spark.table(f"{database}.u").where("c = 'ab'"))
    finally:
        world.spark.sql(f"DROP DATABASE {database} CASCADE")


@case("NEGATED")
def _(world: World) -> None:
    world.needs_none(lambda: world.frame("k <> 7"))


@case("NOT_SUPPORTED")
def _(world: World) -> None:
    world.index("by_s", ["s"])
    world.meets(world.frame("upper(s) = 'S7'"))
    world.is_out(world.frame("s = 's7'"))


@case("NOT_NEEDED")
def _(world: World) -> None:
    world.lake.delete_index("by_k")
    world.index("by_both", ["k", "s"])
    world.needs_none(lambda: world.frame("k = 100000 AND s = 'nobody'"))


@case("OR_NOT_ANSWERED")
def _(world: World) -> None:
    world.meets(world.frame("k = 7 OR v = 30"))
    world.index("by_v", ["v"])
    world.is_out(world.frame("k = 7 OR v = 30"))
    for side in ("k = 7", "v = 30"):
        world.is_out(world.frame(side))


def _by_day(world: World) -> Path:
    for day in range(3):
        write(world.home / f"days/day={day}/0.parquet", {"k": pa.array([day * 10, day * 10 + 1], pa.int64())})
    world.index("by_day_k", ["k"], world.home / "days")
    return world.home / "days"


@case("PARTITIONS")
def _(world: World) -> None:
    days = _by_day(world)
    world.needs_none(lambda: world.frame("day = 1 AND k = 10", days))


@case("PARTITION_IN_OR")
def _(world: World) -> None:
    days = _by_day(world)
    world.meets(world.frame("k = 1 OR day = 2", days))
    for side in ("k = 1", "day = 2"):
        world.is_out(world.frame(side, days))


@case("NOT_SELECTIVE")
def _(world: World) -> None:
    world.index("coarse", ["s"], fpp=0.1)
    # Dozens of values within the bounds of each file, none of which it holds.
    many = ", ".join(f"'s{number}{letter}'" for number in range(120) for letter in "xyz")
    world.meets(world.frame(f"s IN ({many})"))
    world.is_out(world.frame("s IN ('s50x', 's51x')"))
    world.lake.delete_index("coarse", force=True)
    world.index("fine", ["s"], fpp=1e-6)
    world.is_out(world.frame(f"s IN ({many})"))


@case("NO_USABLE_PREDICATE")
def _(world: World) -> None:
    world.meets(world.frame())
    world.is_out(world.frame("k = 7"))


@case("NEEDS_ALL_ROWS")
def _(world: World) -> None:
    world.meets(world.frame().limit(50).where("k = 7"))
    world.is_out(world.frame("k = 7").limit(50))


@case("NO_MATCHING_INDEX")
def _(world: World) -> None:
    write(world.home / "other/0.parquet", {"k": pa.array([1], pa.int64())})
    world.meets(world.frame("k = 1", world.home / "other"))
    world.index("other", ["k"], world.home / "other")
    world.is_out(world.frame("k = 1", world.home / "other"))


@case("READ_DIFFERS")
def _(world: World) -> None:
    with configured(world.spark, {"spark.sql.caseSensitive": "true"}):
        world.meets(world.frame("k = 7"))
    world.is_out(world.frame("k = 7"))
    with configured(world.spark, {"spark.sql.caseSensitive": "true"}):
        world.lake.delete_index("by_k", force=True)
        world.index("by_k", ["k"])  # for this reading
        world.is_out(world.frame("k = 7"))


@case("UNSUPPORTED_TABLE")
def _(world: World) -> None:
    target = world.home / "streamed"
    write(target / "0.parquet", {"k": pa.array([1], pa.int64())})
    world.index("streamed", ["k"], target)
    (target / "0.parquet").unlink()
    stream = world.spark.readStream.schema("k BIGINT").parquet(str(world.table)).writeStream.format("parquet")
    stream = stream.option("checkpointLocation", f"{world.home}/check").trigger(availableNow=True)
    stream.start(str(target)).awaitTermination()
    world.needs_none(lambda: world.frame("k = 7", target))


@case("CACHED")
def _(world: World) -> None:
    cached = world.frame().cache()
    world.meets(cached.where("k = 7"))
    cached.unpersist()
    world.is_out(world.frame("k = 7"))


@case("STALE_FILES")
def _(world: World) -> None:
    world.add(FILES)
    world.meets(world.frame("k = 7"))
    world.lake.refresh_index("by_k")
    world.is_out(world.frame("k = 7"))


@case("STALE_FILTER")
def _(world: World) -> None:
    with world.join() as (users, orders):
        world.add(FILES)
        users = world.frame()
        with configured(world.spark, {"spark.lakebloom.join.mergeMaxBytes": "10"}):
            world.meets(orders.join(users, "k"))
        world.is_out(orders.join(users, "k"))  # the limit is higher again
        with configured(world.spark, {"spark.lakebloom.join.mergeMaxBytes": "10"}):
            world.lake.refresh_index("joined")
            world.is_out(orders.join(users, "k"))


@case("JOIN_NOT_SAFE")
def _(world: World) -> None:
    with world.join() as (users, orders):
        world.needs_none(lambda: orders.join(users, "k", "left_outer"))


@case("BROADCAST_JOIN")
def _(world: World) -> None:
    with world.join() as (users, orders):
        world.needs_none(lambda: orders.join(F.broadcast(users), "k"))


@case("JOIN_TOO_SMALL")
def _(world: World) -> None:
    with world.join() as (users, orders):
        with configured(world.spark, {"spark.lakebloom.join.minBytes": str(1 << 30)}):
            world.meets(orders.join(users, "k"))
        world.is_out(orders.join(users, "k"))


@case("RUNTIME_FILTER")
def _(world: World) -> None:
    forced = {
        "spark.sql.optimizer.runtime.bloomFilter.enabled": "true",
        "spark.sql.optimizer.runtime.bloomFilter.applicationSideScanSizeThreshold": "0",
    }
    with world.join() as (users, orders), configured(world.spark, forced):
        world.needs_none(lambda: orders.join(users.where("v < 5"), "k"))


@case("INDEX_UNREADABLE")
def _(world: World) -> None:
    for path in (world.home / "indexes").rglob("files.arrow"):
        path.write_bytes(b"damage")
    world.meets(world.frame("k = 7"))
    assert not world.lake.verify_index("by_k").ok
    world.lake.repair_index("by_k")
    assert world.lake.verify_index("by_k").ok
    world.is_out(world.frame("k = 7"))


@case("TIMED_OUT")
def _(world: World) -> None:
    answers = threading.Event()
    world.lake.disable()
    reopen(world.lake, lambda storage: Hanging(storage, answers))
    try:
        with configured(world.spark, {"spark.lakebloom.query.timeoutMs": "50"}):
            world.lake.enable()
            world.meets(world.frame("k = 7"))
    finally:
        answers.set()
    with configured(world.spark, {"spark.lakebloom.query.timeoutMs": "600000"}):
        world.lake.enable()
        world.is_out(world.frame("k = 7"))


@case("DELETED")
def _(world: World) -> None:
    world.lake.delete_index("by_k")
    world.meets(world.frame("k = 7"))
    world.lake.restore_index("by_k")
    world.is_out(world.frame("k = 7"))


@case("DISABLED")
def _(world: World) -> None:
    world.lake.disable()
    world.meets(world.frame("k = 7"))
    world.lake.enable()
    world.is_out(world.frame("k = 7"))


@case("PLANNED_BEFORE")
def _(world: World) -> None:
    frame = world.frame("v = 7")
    frame.collect()
    world.index("by_v", ["v"])
    world.meets(frame)
    world.is_out(world.frame("v = 7"))


@case("NOT_REPEATABLE")
def _(world: World) -> None:
    drawn = world.spark.range(3).select((F.rand() * 100).cast("bigint").alias("k"))
    world.meets(world.frame().join(drawn, "k"))
    world.is_out(world.frame().join(drawn.localCheckpoint(), "k"))
    world.is_out(world.frame().join(world.spark.range(3).selectExpr("id AS k"), "k"))  # without what is random


def _few(world: World, *keys: int) -> Path:
    """A small table of files, to be joined with."""
    write(world.home / "few/0.parquet", {"k": pa.array(keys, pa.int64())})
    return world.home / "few"


@case("KEYS_AT_RUN_TIME")
def _(world: World) -> None:
    few = world.frame(path=_few(world, 7, 8))
    world.meets(world.frame().join(few, "k"))
    pruned = world.lake.prune_join(world.frame(), few, "k")
    assert len(pruned.inputFiles()) == 1
    assert pruned.join(few, "k").count() == 2
    world.is_out(world.frame().join(few.localCheckpoint(), "k"))


@case("CACHE_NOT_FILLED")
def _(world: World) -> None:
    few = world.frame(path=_few(world, 7, 8)).cache()
    world.meets(world.frame().join(few, "k"))
    few.count()
    world.is_out(world.frame().join(few, "k"))
    few.unpersist()


@case("TOO_MANY_KEYS")
def _(world: World) -> None:
    few = world.spark.createDataFrame([(7,), (8,)], "k bigint")
    with configured(world.spark, {"spark.lakebloom.join.maxKeys": "1"}):
        world.meets(world.frame().join(few, "k"))
        world.is_out(world.frame().join(world.spark.createDataFrame([(7,)], "k bigint"), "k"))
    world.is_out(world.frame().join(few, "k"))


@case("KEY_COMPUTED")
def _(world: World) -> None:
    few = world.spark.createDataFrame([(8,)], "z bigint")
    world.meets(world.frame().join(few, F.expr("k + 1 = z")))
    world.is_out(world.frame().join(few.selectExpr("z - 1 AS k"), "k"))


@pytest.mark.parametrize("code", [reason.value for reason in Reason if reason.value in case.cases])
def test_the_remedy_leads_out(spark: SparkSession, tmp_path: Path, code: str) -> None:
    lake = Lakebloom(spark, tmp_path / "indexes")
    world = World(spark, lake, tmp_path, Reason(code))
    lake.enable()
    try:
        case.cases[code](world)
    finally:
        lake.disable()
    assert world.met_times, "the case never met the reason that it is about"


def test_every_reason_has_a_case() -> None:
    case.require_complete({reason.value for reason in Reason}, "docs/REASONS.md")
