"""Joins: rows without a partner are dropped before the shuffle, and no other."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import functions as F  # noqa: N812

from lakebloom import BloomIndexConfig, Lakebloom
from lakebloom.errors import ColumnNotFoundError, InvalidArgumentError, StaleIndexError
from lakebloom.predicate.reasons import Reason
from lakebloom.sbbf.hashing.hash_values import hash_array
from lakebloom.spark.build.expressions import canonical_hash
from tests.examples import most
from tests.quick_queries import QUICK
from tests.spark.needs import to_arrow
from tests.spark.skipping.support import configured
from tests.spark.support import fresh_name, rule_of, write

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

SHUFFLED = {
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.lakebloom.join.minBytes": "0",
}
FILTERED_SIDES = {
    "inner": {"left", "right"},
    "left_semi": {"left", "right"},
    "left_outer": {"right"},
    "right_outer": {"left"},
    "full_outer": set(),
    "left_anti": set(),
}
KEYS = range(0, 1000, 2)


@pytest.fixture
def shuffled(spark: SparkSession) -> Iterator[None]:
    with configured(spark, SHUFFLED):
        yield


@pytest.fixture
def users(spark: SparkSession, lake: Lakebloom, tmp_path: Path, shuffled: None) -> Iterator[DataFrame]:
    """Even keys and a few NULLs in four files, with a global filter; joins are enabled."""
    for part in range(4):
        keys = [*list(KEYS)[part::4], None]
        write(tmp_path / f"users/{part}.parquet", {"k": pa.array(keys, pa.int64()), "v": pa.array(range(len(keys)))})
    lake.create_index(tmp_path / "users", BloomIndexConfig("users", ["k"], fpp=0.001, global_filter=True))
    lake.enable()
    yield spark.read.parquet(str(tmp_path / "users"))
    lake.disable()


@pytest.fixture
def orders(spark: SparkSession, tmp_path: Path) -> DataFrame:
    """All keys, twice, and NULLs."""
    keys = pa.array([*range(1000), *range(1000), None, None], pa.int64())
    write(tmp_path / "orders/0.parquet", {"k": keys, "w": pa.array(range(len(keys)))})
    return spark.read.parquet(str(tmp_path / "orders"))


def rows(frame: DataFrame) -> list[str]:
    return sorted(map(repr, frame.collect()))


def same_rows(lake: Lakebloom, make: Callable[[], DataFrame]) -> DataFrame:
    """Compare the rows with and without, the latter never compiled; return the query that ran enabled."""
    query = make()
    found = rows(query)
    lake.disable()
    with configured(query.sparkSession, QUICK):
        expected = rows(make())
    lake.enable()
    assert found == expected
    return query


@pytest.mark.parametrize("how", FILTERED_SIDES)
@pytest.mark.parametrize("indexed", ["left", "right"])
def test_only_safe_sides_are_filtered(
    lake: Lakebloom, users: DataFrame, orders: DataFrame, how: str, indexed: str
) -> None:
    left, right = (users, orders) if indexed == "left" else (orders, users)
    query = same_rows(lake, lambda: left.join(right, "k", how))
    (join,) = lake.explain(query).joins
    other = "right" if indexed == "left" else "left"
    assert (join.index, join.column, join.side) == ("users", "k", other)
    expected = None if other in FILTERED_SIDES[how] else Reason.JOIN_NOT_SAFE
    assert join.reason is expected


@pytest.mark.usefixtures("compiled")
def test_what_the_filter_dropped(lake: Lakebloom, users: DataFrame, orders: DataFrame) -> None:
    query = orders.join(users, "k")
    query.collect()
    last = lake.last_query()
    assert last is not None
    (join,) = last.joins
    assert (join.index, join.column) == ("users", "k")
    assert join.rows == 2000  # Spark drops the NULLs itself
    assert 1000 <= join.rows_passed < 1050
    assert "rows dropped before the shuffle" in str(last)
    report = lake.explain(query)
    assert report.joins[0].rate < 0.02
    assert "filtered by users.k" in str(report)


def test_the_plan_does_not_hold_the_filter(lake: Lakebloom, users: DataFrame, orders: DataFrame) -> None:
    java: Any = orders.join(users, "k")._jdf
    assert len(java.queryExecution().toString()) < 30_000
    column = orders.where(lake.might_contain("users", "k", orders.k))
    assert len(column._jdf.queryExecution().toString()) < 60_000


QUERIES: dict[str, Callable[[DataFrame, DataFrame], DataFrame]] = {
    "filter above the indexed side": lambda users, orders: orders.join(users.where("v % 3 = 0"), "k"),
    "renamed": lambda users, orders: orders.join(users.withColumnRenamed("k", "u"), F.col("k") == F.col("u")),
    "aggregate": lambda users, orders: orders.join(users.groupBy("k").count(), "k"),
    "distinct": lambda users, orders: orders.join(users.select("k").distinct(), "k"),
    "join below": lambda users, orders: orders.join(users.join(users.select("k"), "k", "left"), "k"),
    "other condition": lambda users, orders: orders.alias("o").join(
        users.alias("u"), (F.col("o.k") == F.col("u.k")) & (F.col("o.w") > F.col("u.v"))
    ),
    "subquery": lambda users, orders: orders.where(F.col("k").isin([2, 3, 4])).join(users, "k"),
    "two keys": lambda users, orders: orders.join(users.withColumn("w", F.col("v")), ["k", "w"]),
    "self": lambda users, orders: users.join(users.withColumnRenamed("v", "v2"), "k"),
}


@pytest.mark.parametrize("query", QUERIES)
def test_plans_around_the_join(lake: Lakebloom, users: DataFrame, orders: DataFrame, query: str) -> None:
    ran = same_rows(lake, lambda: QUERIES[query](users, orders))
    reasons = [join.reason for join in lake.explain(ran).joins]
    assert reasons == ([] if query == "self" else [None] * len(reasons))
    assert len(reasons) == (0 if query == "self" else max(1, len(reasons)))


def test_a_computed_key_is_left_alone(lake: Lakebloom, users: DataFrame, orders: DataFrame) -> None:
    ran = same_rows(lake, lambda: orders.join(users.select((F.col("k") + 1).alias("k")), "k"))
    assert lake.explain(ran).joins == ()


class TestStaysOut:
    def test_of_a_broadcast_join(self, lake: Lakebloom, users: DataFrame, orders: DataFrame) -> None:
        (join,) = lake.explain(orders.join(F.broadcast(users), "k")).joins
        assert join.reason is Reason.BROADCAST_JOIN

    def test_of_a_small_side(self, spark: SparkSession, lake: Lakebloom, users: DataFrame, orders: DataFrame) -> None:
        with configured(spark, {"spark.lakebloom.join.minBytes": str(1 << 30)}):
            (join,) = lake.explain(orders.join(users, "k")).joins
        assert join.reason is Reason.JOIN_TOO_SMALL

    def test_where_spark_has_a_filter_of_its_own(
        self, spark: SparkSession, lake: Lakebloom, users: DataFrame, orders: DataFrame
    ) -> None:
        forced = {
            "spark.sql.optimizer.runtime.bloomFilter.enabled": "true",
            "spark.sql.optimizer.runtime.bloomFilter.applicationSideScanSizeThreshold": "0",
        }
        with configured(spark, forced):
            query = orders.join(users.where("v < 5"), "k")
            (join,) = lake.explain(query).joins
            assert join.reason is Reason.RUNTIME_FILTER

    def test_of_an_index_without_global_filter(
        self, spark: SparkSession, lake: Lakebloom, orders: DataFrame, tmp_path: Path, shuffled: None
    ) -> None:
        write(tmp_path / "t/0.parquet", {"k": pa.array([1, 2, 3])})
        lake.create_index(tmp_path / "t", BloomIndexConfig("plain", ["k"]))
        lake.enable()
        query = orders.join(spark.read.parquet(str(tmp_path / "t")), "k")
        assert query.count() == 6
        assert lake.explain(query).joins == ()
        assert rule_of(lake).joins.calls == 0
        lake.disable()


class TestFreshness:
    def test_new_files_are_added(
        self, spark: SparkSession, lake: Lakebloom, users: DataFrame, orders: DataFrame, tmp_path: Path
    ) -> None:
        write(tmp_path / "users/new.parquet", {"k": pa.array([1, 3, 5]), "v": pa.array([1, 2, 3])})
        now = spark.read.parquet(str(tmp_path / "users"))
        query = same_rows(lake, lambda: orders.join(now, "k"))
        (join,) = lake.explain(query).joins
        assert (join.reason, join.files_merged) == (None, 1)
        column = lake.might_contain("users", "k", "k")
        assert orders.where(column).where("k in (1, 3, 5)").count() == 6

    def test_too_much_is_new(
        self, spark: SparkSession, lake: Lakebloom, users: DataFrame, orders: DataFrame, tmp_path: Path
    ) -> None:
        write(tmp_path / "users/new.parquet", {"k": pa.array([1, 3, 5]), "v": pa.array([1, 2, 3])})
        now = spark.read.parquet(str(tmp_path / "users"))
        for key, value in (("mergeNewFiles", "false"), ("mergeMaxBytes", "10")):
            with configured(spark, {f"spark.lakebloom.join.{key}": value}):
                query = same_rows(lake, lambda: orders.join(now, "k"))
                (join,) = lake.explain(query).joins
                assert join.reason is Reason.STALE_FILTER
                with pytest.raises(StaleIndexError, match=rf"{key}.*Hint: refresh_index\('users'\)"):
                    lake.might_contain("users", "k", "k")
        lake.refresh_index("users")
        (join,) = lake.explain(orders.join(now, "k")).joins
        assert (join.reason, join.files_merged) == (None, 0)

    def test_deleted_files_do_no_harm(
        self, spark: SparkSession, lake: Lakebloom, users: DataFrame, orders: DataFrame, tmp_path: Path
    ) -> None:
        (tmp_path / "users/2.parquet").unlink()
        now = spark.read.parquet(str(tmp_path / "users"))
        (join,) = lake.explain(same_rows(lake, lambda: orders.join(now, "k"))).joins
        assert join.reason is None

    def test_a_damaged_filter(
        self, lake: Lakebloom, users: DataFrame, orders: DataFrame, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        for path in (tmp_path / "indexes").rglob("*.sbbf"):
            path.write_bytes(path.read_bytes()[:-5])
        query = same_rows(lake, lambda: orders.join(users, "k"))
        (join,) = lake.explain(query).joins
        assert join.reason is Reason.INDEX_UNREADABLE
        assert len([record for record in caplog.records if record.name == "lakebloom"]) == 1


COLUMNS: dict[str, list[Any]] = {
    "smallint": [1, 2, -3, None],
    "int": [1, 2, -(1 << 31), None],
    "bigint": [1, 2, -(1 << 63), (1 << 63) - 1, None],
    "float": [0.0, -0.0, 1.5, float("nan"), float("inf"), None],
    "double": [0.0, -0.0, 0.1, float("nan"), float("-inf"), None],
    "decimal(9,2)": [Decimal("1.50"), Decimal("-9999999.99"), None],
    "decimal(18,18)": [Decimal("0.999999999999999999"), Decimal("-0.000000000000000001"), None],
    "decimal(38,0)": [Decimal(10**38 - 1), Decimal(1 - 10**38), Decimal(0), None],
    "decimal(38,37)": [Decimal("-9.9999999999999999999999999999999999999"), Decimal("1e-37"), None],
    "string": ["", "a", "ü", "x" * 100, None],
    "binary": [b"", b"\x00\xff", None],
    "date": [datetime.date(2024, 2, 29), datetime.date(1969, 12, 31), None],
    "timestamp": [datetime.datetime(2024, 2, 29, 12, 30, 1, 5), None],
    "timestamp_ntz": [datetime.datetime(1999, 12, 31, 23, 59), None],
}


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("ansi", ["true", "false"])
def test_every_type_has_the_hash_of_the_index(spark: SparkSession, ansi: str) -> None:
    with configured(spark, {"spark.sql.ansi.enabled": ansi, "spark.sql.session.timeZone": "UTC"}):
        for name, values in COLUMNS.items():
            frame = spark.createDataFrame([(value,) for value in values], f"v {name}")
            found = [row.h for row in frame.select(canonical_hash(F.col("v"), name).alias("h")).collect()]
            array = to_arrow(frame)["v"].combine_chunks()
            hashes, _ = hash_array(array)
            expected = [
                None if value is None else int(h) for value, h in zip(values, hashes.view(np.int64), strict=True)
            ]
            assert found == expected, name


BY_HAND = {name: values for name, values in COLUMNS.items() if not name.startswith("decimal(38")}


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("ansi", ["true", "false"])
def test_the_column_by_hand(spark: SparkSession, lake: Lakebloom, tmp_path: Path, ansi: str) -> None:
    columns = BY_HAND
    fields = ", ".join(f"c{i} {name}" for i, name in enumerate(columns))
    height = max(map(len, columns.values()))
    table = [[(values + [None] * height)[row] for values in columns.values()] for row in range(height)]
    spark.createDataFrame(table, fields).coalesce(1).write.parquet(str(tmp_path / "t"))
    names = [f"c{i}" for i in range(len(columns))]
    lake.create_index(tmp_path / "t", BloomIndexConfig("all", names, fpp=1e-3, global_filter=True))
    with configured(spark, {"spark.sql.ansi.enabled": ansi}):
        frame = spark.read.parquet(str(tmp_path / "t"))
        tests = [lake.might_contain("all", name, frame[name]).alias(name) for name in names]
        for found, row in zip(frame.select(*tests).collect(), frame.collect(), strict=True):
            assert list(found) == [None if value is None else True for value in row]


def test_absent_values_and_other_types(lake: Lakebloom, users: DataFrame, orders: DataFrame) -> None:
    passed = orders.where(lake.might_contain("users", "k", orders.k)).select("k").distinct().count()
    assert len(KEYS) <= passed < len(KEYS) + 30
    narrower = orders.where(lake.might_contain("users", "k", orders.k.cast("int"))).select("k").distinct().count()
    assert narrower == passed
    with pytest.raises(Exception, match=r"TYPE_MISMATCH.*compares bigint; found string"):
        orders.select(lake.might_contain("users", "k", orders.k.cast("string"))).collect()


def test_what_might_contain_refuses(lake: Lakebloom, users: DataFrame, tmp_path: Path) -> None:
    with pytest.raises(ColumnNotFoundError, match="no column v; found columns k"):
        lake.might_contain("users", "v", "v")
    lake.create_index(tmp_path / "users", BloomIndexConfig("plain", ["k"]))
    with pytest.raises(InvalidArgumentError, match=r"has no global filter.*global_filter=True"):
        lake.might_contain("plain", "k", "k")


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("fields", ["1", "100"])
def test_rows_do_not_carry_the_filter(
    spark: SparkSession, lake: Lakebloom, users: DataFrame, orders: DataFrame, fields: str
) -> None:
    """Without whole-stage code a row is copied with all its columns: at most a block of the filter is one of them."""
    with configured(spark, {"spark.sql.codegen.maxFields": fields}):
        ran = same_rows(lake, lambda: orders.join(users, "k"))
    waiting: list[Any] = [ran._jdf.queryExecution().optimizedPlan()]
    types = set()
    while waiting:
        plan = waiting.pop()
        types |= {plan.output().apply(i).dataType().simpleString() for i in range(plan.output().size())}
        waiting += [plan.children().apply(i) for i in range(plan.children().size())]
    assert "array<int>" in types
    assert types <= {"array<int>", "int", "bigint"}


KEY_TYPES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int64(): st.integers(-5, 12),
    pa.string(): st.text("ab", max_size=2),
    pa.float64(): st.sampled_from([0.0, -0.0, 1.5, float("nan")]),
    pa.decimal128(12, 2): st.integers(-300, 300).map(lambda i: Decimal(i).scaleb(-2)),
    pa.date32(): st.integers(0, 9).map(lambda i: datetime.date(2024, 1, 1 + i)),
}


@pytest.mark.usefixtures("compiled")
@settings(max_examples=most(12), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_join(spark: SparkSession, tmp_path: Path, shuffled: None, data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(sorted(KEY_TYPES, key=str)))
    keys = st.lists(st.one_of(st.none(), KEY_TYPES[kind]), max_size=12)
    place = tmp_path / fresh_name()
    lake = Lakebloom(spark, place / "indexes")

    def add(part: str, values: list[Any]) -> None:
        columns = {"k": pa.array(values, kind), "v": pa.array(range(len(values)), pa.int32())}
        write(place / part, columns, store_decimal_as_integer=True)  # as Spark does

    for number in range(2):
        add(f"t/{number}.parquet", data.draw(keys))
    lake.create_index(place / "t", BloomIndexConfig("t", ["k"], global_filter=True))
    for _ in range(data.draw(st.integers(0, 1))):
        add("t/new.parquet", data.draw(keys))
    add("o/0.parquet", data.draw(keys))
    left, right = (spark.read.parquet(str(place / part)) for part in data.draw(st.permutations(["t", "o"])))
    lake.enable()
    try:
        for how in FILTERED_SIDES:
            same_rows(lake, lambda how=how: left.join(right, "k", how))  # type: ignore[misc]
    finally:
        lake.disable()


def test_queries_about_two_columns_of_an_index_at_the_same_time(
    spark: SparkSession, lake: Lakebloom, tmp_path: Path, shuffled: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each gets the filter of its own column, whatever another thread learns meanwhile."""
    columns = {"a": pa.array(range(100), pa.int64()), "b": pa.array(range(1000, 1100), pa.int64())}
    write(tmp_path / "two/0.parquet", columns)
    write(tmp_path / "more/0.parquet", {"k": pa.array(range(2000), pa.int64())})
    lake.create_index(tmp_path / "two", BloomIndexConfig("two", ["a", "b"], fpp=0.001, global_filter=True))
    lake.enable()
    two, more = (spark.read.parquet(str(tmp_path / name)) for name in ("two", "more"))

    def count(column: str) -> int:
        return more.join(two, more.k == two[column]).count()

    assert count("a") == 100
    callback = rule_of(lake).joins
    answer = callback.apply
    others: list[int] = []

    def slow(question: str) -> str:
        if '"missing"' in question and not others:
            others.append(0)
            thread = threading.Thread(target=lambda: others.append(count("b")))
            thread.start()
            thread.join()
        return answer(question)

    monkeypatch.setattr(callback, "apply", slow)
    assert count("a") == 100
    assert others == [0, 100]
    lake.disable()


def test_keys_that_need_not_be_equal_are_not_filtered(lake: Lakebloom, users: DataFrame, orders: DataFrame) -> None:
    some = users.where("v < 3")
    query = same_rows(lake, lambda: orders.join(some, (orders.k == some.k) | (orders.w == some.v)))
    assert lake.explain(query).joins == ()
