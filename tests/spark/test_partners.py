"""The mirror image of filtering a join: files that hold no key of a small side are never opened."""

from __future__ import annotations

import datetime
import logging
import random
from collections.abc import Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lakebloom import BloomIndexConfig, Lakebloom
from lakebloom.errors import ColumnNotFoundError, InvalidArgumentError, UnsupportedSourceError
from lakebloom.index.query.scan_reports import Use
from tests.spark.skipping.support import configured
from tests.spark.support import write

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

FILES, ROWS = 10, 50
PRUNED = {
    ("inner", "left"): True,
    ("inner", "right"): True,
    ("left_semi", "left"): True,
    ("left_semi", "right"): True,
    ("left_outer", "left"): False,
    ("left_outer", "right"): True,
    ("right_outer", "left"): True,
    ("right_outer", "right"): False,
    ("full_outer", "left"): False,
    ("full_outer", "right"): False,
    ("left_anti", "left"): False,
    ("left_anti", "right"): True,
}
"""Whether files of the indexed side may be left out, by the kind of join and the side it is on."""


@pytest.fixture
def events(spark: SparkSession, lake: Lakebloom, tmp_path: Path) -> DataFrame:
    """File n holds keys 50 n to 50 n + 49 and a NULL."""
    for number in range(FILES):
        keys = [*range(number * ROWS, (number + 1) * ROWS), None]
        columns = {"k": pa.array(keys, pa.int64()), "v": pa.array(range(len(keys)))}
        write(tmp_path / f"events/{number}.parquet", columns)
    lake.create_index(tmp_path / "events", BloomIndexConfig("events", ["k"], fpp=1e-6))
    return spark.read.parquet(str(tmp_path / "events"))


@pytest.fixture
def enabled(lake: Lakebloom, events: DataFrame) -> Iterator[DataFrame]:
    lake.enable()
    yield events
    lake.disable()


def local(spark: SparkSession, keys: list[Any], kind: str = "bigint") -> DataFrame:
    """Rows that are part of the plan."""
    values = ", ".join(f"(CAST({'NULL' if key is None else key} AS {kind}), 'w')" for key in keys)
    return spark.sql(f"SELECT * FROM VALUES {values} AS t(k, w)")


def rows(frame: DataFrame) -> list[str]:
    return sorted(map(repr, frame.collect()))


def files_read(lake: Lakebloom) -> int:
    last = lake.last_query()
    assert last is not None
    (scan,) = last.scans
    return scan.files_read


@pytest.mark.parametrize(("how", "side"), PRUNED)
def test_only_safe_sides_lose_files(
    spark: SparkSession, lake: Lakebloom, enabled: DataFrame, how: str, side: str
) -> None:
    small = local(spark, [7, 7, 120, 9999, None])

    def query() -> DataFrame:
        return enabled.join(small, "k", how) if side == "left" else small.join(enabled, "k", how)

    found = rows(query())
    read = files_read(lake)
    lake.disable()
    assert found == rows(query())
    assert read == (2 if PRUNED[how, side] else FILES)


def test_a_small_side_in_the_cache_is_used_once_it_is_loaded(
    spark: SparkSession, lake: Lakebloom, enabled: DataFrame
) -> None:
    small = spark.range(3).selectExpr("id * 60 AS k", "id AS w").cache()
    expected = [(0, 0, 0), (60, 10, 1), (120, 20, 2)]
    assert sorted(map(tuple, enabled.join(small, "k").collect())) == expected
    small.count()
    query = enabled.join(small.where("w < 2"), "k")
    assert sorted(map(tuple, query.collect())) == expected[:2]
    assert files_read(lake) == 2
    small.unpersist()


def test_a_large_side_is_left_alone(spark: SparkSession, lake: Lakebloom, enabled: DataFrame) -> None:
    small = local(spark, [1, 2])
    for setting in ("maxKeys", "maxKeyBytes"):
        with configured(spark, {f"spark.lakebloom.join.{setting}": "1"}):
            assert enabled.join(small, "k").count() == 2
            assert files_read(lake) == FILES


def test_explain_counts_the_files_of_a_join(spark: SparkSession, lake: Lakebloom, enabled: DataFrame) -> None:
    query = enabled.where("k <> 3").join(local(spark, [7, 120]), "k")
    report = lake.explain(query)
    (scan,) = report.scans
    assert (scan.files, scan.files_kept) == (FILES, 2)
    assert "k IN (" in scan.predicate
    assert query.count() == 2
    assert files_read(lake) == 2


def test_filters_and_keys_work_together(spark: SparkSession, lake: Lakebloom, enabled: DataFrame) -> None:
    query = enabled.where("k IN (7, 60, 420)").join(local(spark, [7, 120]), "k")
    assert [row.k for row in query.collect()] == [7]
    assert files_read(lake) == 1
    (scan,) = lake.explain(query).scans
    assert (scan.files, scan.files_kept, scan.use) == (FILES, 1, Use.FULL)


def test_rows_that_depend_on_other_files_are_left_alone(
    spark: SparkSession, lake: Lakebloom, enabled: DataFrame
) -> None:
    small = local(spark, [7])
    for frame in (
        enabled.orderBy("k").limit(100),
        enabled.selectExpr("k + 1 AS k", "v"),
        enabled.selectExpr("max(k) OVER () AS k", "v"),
        enabled.union(enabled),
        enabled.selectExpr("k", "monotonically_increasing_id() AS id"),
    ):
        found = rows(frame.join(small, "k"))
        lake.disable()
        assert found == rows(frame.join(small, "k"))
        lake.enable()
    grouped = enabled.groupBy("k").count().join(small, "k")
    assert [tuple(row) for row in grouped.collect()] == [(7, 1, "w")]
    assert files_read(lake) == 1


def test_new_and_changed_files_are_read(
    spark: SparkSession, lake: Lakebloom, enabled: DataFrame, tmp_path: Path
) -> None:
    write(tmp_path / "events/new.parquet", {"k": pa.array([7], pa.int64()), "v": pa.array([99])})
    write(tmp_path / "events/5.parquet", {"k": pa.array([7, 7], pa.int64()), "v": pa.array([1, 2])})
    (tmp_path / "events/6.parquet").unlink()
    events = spark.read.parquet(str(tmp_path / "events"))
    assert events.join(local(spark, [7]), "k").count() == 4
    assert files_read(lake) == 3


VALUES: dict[str, list[Any]] = {
    "int": [0, 7, -1],
    "smallint": [0, 7, -1],
    "date": [datetime.date(2020, 1, 1), datetime.date(1969, 12, 31)],
    "timestamp": [datetime.datetime(2020, 1, 1, tzinfo=datetime.timezone.utc)],
    "double": [0.0, 1.5, float("nan"), float("inf")],
    "decimal(7,2)": [Decimal("1.50"), Decimal("-3.00")],
    "decimal(30,5)": [Decimal("1.50000"), Decimal("-99999999999999999999.00000")],
    "string": ["", "x", "é"],
    "binary": [b"", b"\x00\xff"],
}


@pytest.mark.parametrize("kind", VALUES)
def test_every_type_of_key(spark: SparkSession, lake: Lakebloom, tmp_path: Path, kind: str) -> None:
    values = VALUES[kind]
    for number, value in enumerate([*values, None]):
        frame = spark.createDataFrame([(value, number)], f"k {kind}, v int").coalesce(1)
        frame.write.mode("append").parquet(str(tmp_path / "t"))
    lake.create_index(tmp_path / "t", BloomIndexConfig("t", ["k"], fpp=1e-6))
    table = spark.read.parquet(str(tmp_path / "t"))
    for value in values:
        small = spark.createDataFrame([(value,), (None,)], f"k {kind}")
        pruned = lake.prune_join(table, small, "k")
        assert len(pruned.inputFiles()) == 1
        assert rows(pruned.join(small, "k")) == rows(table.join(small, "k"))
        assert pruned.join(small, "k").count() == 1


def test_prune_join_needs_no_enable(spark: SparkSession, lake: Lakebloom, events: DataFrame) -> None:
    small = spark.createDataFrame([(7, 0), (120, 1), (None, 2)], "k bigint, w int")
    view = events.where("v >= 0").select("k", "v").alias("e")
    pruned = lake.prune_join(view, small, "k")
    assert pruned.columns == view.columns
    assert len(pruned.inputFiles()) == 2
    assert rows(pruned.join(small, "k")) == rows(view.join(small, "k"))
    assert pruned.where("e.k = 7").count() == 1
    assert not lake.enabled
    (scan,) = lake.explain(pruned).scans
    assert (scan.files, scan.files_kept) == (FILES, 2)


@pytest.mark.parametrize("kind", ["smallint", "int", "decimal(10,0)"])
def test_prune_join_takes_keys_of_a_narrower_type(
    spark: SparkSession, lake: Lakebloom, events: DataFrame, kind: str
) -> None:
    small = local(spark, [7, 120, None], kind)
    pruned = lake.prune_join(events.union(events), small, "k")
    assert len(pruned.inputFiles()) == 2
    assert rows(pruned.join(small, "k")) == rows(events.union(events).join(small, "k"))


def test_prune_join_twice_leaves_out_more(spark: SparkSession, lake: Lakebloom, events: DataFrame) -> None:
    few, fewer = local(spark, [7, 60, 120]), local(spark, [60, 400])
    once = lake.prune_join(events, few, "k")
    twice = lake.prune_join(once, fewer, "k")
    assert (len(once.inputFiles()), len(twice.inputFiles())) == (3, 1)
    assert rows(twice.join(few, "k", "semi").join(fewer, "k", "semi")) == rows(events.where("k = 60"))


def test_prune_join_on_several_keys(spark: SparkSession, lake: Lakebloom, tmp_path: Path) -> None:
    for number in range(9):
        columns = {"a": pa.array([number % 3], pa.int64()), "b": pa.array([number // 3], pa.int64())}
        write(tmp_path / f"t/{number}.parquet", columns)
    lake.create_index(tmp_path / "t", BloomIndexConfig("t", ["a", "b"], fpp=1e-6))
    table = spark.read.parquet(str(tmp_path / "t"))
    small = spark.createDataFrame([(1, 2)], "A bigint, b bigint")
    assert len(lake.prune_join(table, small, ["a", "b"]).inputFiles()) == 1


def test_prune_join_says_why_nothing_is_left_out(
    spark: SparkSession, lake: Lakebloom, events: DataFrame, caplog: pytest.LogCaptureFixture
) -> None:
    everywhere = spark.range(FILES).selectExpr(f"id * {ROWS} AS k")
    with caplog.at_level(logging.WARNING, "lakebloom"):
        assert len(lake.prune_join(events, everywhere, "k").inputFiles()) == FILES
    assert "NOT_SELECTIVE" in caplog.text
    with configured(spark, {"spark.lakebloom.join.maxKeys": "5"}), caplog.at_level(logging.WARNING, "lakebloom"):
        assert len(lake.prune_join(events, everywhere, "k").inputFiles()) == FILES
    assert "TOO_MANY_KEYS" in caplog.text


def test_bad_input_of_prune_join(spark: SparkSession, lake: Lakebloom, events: DataFrame) -> None:
    small = local(spark, [7])
    with pytest.raises(ColumnNotFoundError, match="no column x"):
        lake.prune_join(events, small, "x")
    with pytest.raises(InvalidArgumentError, match="at least one column"):
        lake.prune_join(events, small, [])
    with pytest.raises(UnsupportedSourceError, match="keys of k"):
        lake.prune_join(events, local(spark, ["'7'"], "string"), "k")
    with pytest.raises(UnsupportedSourceError):
        lake.prune_join(events.orderBy("v").limit(3), small, "k")
    with pytest.raises(UnsupportedSourceError):
        lake.prune_join(spark.range(3).selectExpr("id AS k"), small, "k")


def test_random_joins_equal_those_without(
    spark: SparkSession, lake: Lakebloom, enabled: DataFrame, tmp_path: Path
) -> None:
    """Kinds of joins, keys with duplicates and NULLs, empty sides, files that came, changed and went."""
    rng = random.Random(6)
    for step in range(24):
        if step == 8:
            write(tmp_path / "events/new.parquet", {"k": pa.array([7, 3000], pa.int64()), "v": pa.array([1, 2])})
        if step == 16:
            (tmp_path / "events/3.parquet").unlink()
            write(tmp_path / "events/4.parquet", {"k": pa.array([1, None], pa.int64()), "v": pa.array([1, 2])})
        events = spark.read.parquet(str(tmp_path / "events"))
        keys = rng.choices([None, *range(0, 3100, 3)], k=rng.choice([1, 3, 30]))
        small = local(spark, keys).where("k >= 0 OR k IS NULL" if rng.random() < 0.9 else "k < 0")
        how, side = rng.choice(list(PRUNED))
        indexed = events.where("v % 2 = 0") if rng.random() < 0.5 else events

        def query(indexed: DataFrame = indexed, small: DataFrame = small, how: str = how, side: str = side) -> Any:
            return rows(indexed.join(small, "k", how) if side == "left" else small.join(indexed, "k", how))

        found = query()
        lake.disable()
        assert found == query(), (step, how, side, keys)
        lake.enable()


def test_a_relation_on_both_sides_of_a_join_below(spark: SparkSession, lake: Lakebloom, enabled: DataFrame) -> None:
    """Spark keeps one relation for both where their columns do not clash: only one of them may lose files."""
    small = local(spark, [7, 120])
    parents = enabled.selectExpr("k AS parent", "v AS parent_v")

    def query(how: str, indexed: DataFrame) -> DataFrame:
        return indexed.join(parents, indexed.k + 200 == parents.parent, how)

    for how in ("inner", "left_outer", "left_anti"):
        found = rows(query(how, enabled).join(small, "k"))
        by_hand = rows(lake.prune_join(query(how, enabled), small, "k").join(small, "k"))
        lake.disable()
        expected = rows(query(how, enabled).join(small, "k"))
        lake.enable()
        assert found == expected, how
        assert by_hand == expected, how


def test_prune_join_refuses_a_name_that_fits_two_columns(
    spark: SparkSession, lake: Lakebloom, events: DataFrame
) -> None:
    two = events.selectExpr("k", "v AS K")
    with pytest.raises(ColumnNotFoundError, match="several"):
        lake.prune_join(two, local(spark, [7]), "k")


def test_keys_that_need_not_be_equal(spark: SparkSession, lake: Lakebloom, enabled: DataFrame, tmp_path: Path) -> None:
    """OR offers another way to match, and NOT IN asks for NULLs wherever they are."""
    write(tmp_path / "some/0.parquet", {"k": pa.array([7, 8], pa.int64())})
    write(tmp_path / "some/1.parquet", {"k": pa.array([None], pa.int64())})
    lake.create_index(tmp_path / "some", BloomIndexConfig("some", ["k"], fpp=1e-6))
    some = spark.read.parquet(str(tmp_path / "some"))
    small = local(spark, [7, 120])
    for make in (
        lambda: enabled.join(small, (enabled.k == small.k) | (enabled.v == 3)),
        lambda: enabled.join(small, (enabled.k == small.k) | (enabled.v == 3), "left_semi"),
        lambda: spark.sql("SELECT * FROM {small} WHERE k NOT IN (SELECT k FROM {some})", small=small, some=some),
        lambda: spark.sql("SELECT * FROM {small} WHERE k IN (SELECT k FROM {some}) OR k > 100", small=small, some=some),
    ):
        found = rows(make())
        lake.disable()
        assert found == rows(make())
        lake.enable()
