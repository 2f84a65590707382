"""What a join calls equal, filters and lists of files must call equal, too: collations and types."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from lakebloom import BloomIndexConfig
from lakebloom.errors import UnsupportedTypeError
from lakebloom.predicate.reasons import Reason
from tests.spark.needs import needs_collations
from tests.spark.skipping.support import configured
from tests.spark.support import write

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from lakebloom import Lakebloom

SHUFFLED = {"spark.sql.autoBroadcastJoinThreshold": "-1", "spark.lakebloom.join.minBytes": "0"}
QUERIES = (
    "SELECT o.k, t.v FROM o JOIN t ON o.k = t.k",
    "SELECT k FROM o WHERE k IN (SELECT k FROM t)",
    "SELECT k FROM o WHERE EXISTS (SELECT 1 FROM t WHERE t.k = o.k)",
    "SELECT k FROM o INTERSECT SELECT k FROM t",
    "SELECT o.k FROM o RIGHT JOIN t ON o.k = t.k",
    "SELECT t.k FROM t JOIN VALUES ('A0'), ('A8') AS o(k) ON o.k COLLATE UTF8_LCASE = t.k",
)


@needs_collations
@pytest.mark.parametrize("kind", ["shuffled", "broadcast"])
def test_strings_that_a_collation_calls_equal_are_partners(
    spark: SparkSession, lake: Lakebloom, tmp_path: Path, kind: str
) -> None:
    """The index has the bytes of strings, and a query may read the same files with a collation."""
    for name, letter in (("t", "a"), ("o", "A")):
        for half in range(2):
            keys = [f"{letter}{n}" for n in range(half, 10, 2)]
            write(tmp_path / f"{name}/{half}.parquet", {"k": pa.array(keys), "w": pa.array(range(5))})
        frame = spark.read.schema("k STRING COLLATE UTF8_LCASE, w BIGINT").parquet(str(tmp_path / name))
        frame.selectExpr("k", "w AS v").createOrReplaceTempView(name)
    lake.create_index(tmp_path / "t", BloomIndexConfig("t", ["k"], fpp=1e-6, global_filter=True))
    with configured(spark, SHUFFLED if kind == "shuffled" else {}):
        for query in QUERIES:
            lake.disable()
            expected = sorted(map(str, spark.sql(query).collect()))
            assert expected
            lake.enable()
            assert sorted(map(str, spark.sql(query).collect())) == expected, query
            assert {join.reason for join in lake.explain(spark.sql(query)).joins} <= {
                Reason.COLLATION, Reason.JOIN_NOT_SAFE, Reason.BROADCAST_JOIN
            }  # fmt: skip
    lake.disable()


def test_keys_of_another_type_are_not_filtered_and_explain_says_so(
    spark: SparkSession, lake: Lakebloom, tmp_path: Path
) -> None:
    write(tmp_path / "t/0.parquet", {"k": pa.array([1, 2, 3], pa.int32())})
    write(tmp_path / "o/0.parquet", {"k": pa.array([2, 3, 1 << 40], pa.int64())})
    lake.create_index(tmp_path / "t", BloomIndexConfig("t", ["k"], global_filter=True))
    lake.enable()
    table, other = (spark.read.parquet(str(tmp_path / name)) for name in ("t", "o"))
    with configured(spark, SHUFFLED):
        query = other.join(table, other.k == table.k)
        assert query.count() == 2
        assert [(join.side, join.reason) for join in lake.explain(query).joins] == [("left", Reason.NOT_SUPPORTED)]
    lake.disable()


def test_might_contain_refuses_what_would_take_longer_than_the_join(lake: Lakebloom, tmp_path: Path) -> None:
    write(tmp_path / "t/0.parquet", {"k": pa.array([1, 2], pa.decimal128(30, 2))})
    lake.create_index(tmp_path / "t", BloomIndexConfig("wide", ["k"], global_filter=True))
    with pytest.raises(UnsupportedTypeError, match=r"decimal\(30,2\).*at most 18 digits"):
        lake.might_contain("wide", "k", "k")
