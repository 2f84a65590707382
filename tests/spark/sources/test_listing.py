"""Spark and Python list the same table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from lakebloom import BloomIndexConfig, Lakebloom, col
from lakebloom.errors import NotFoundError
from lakebloom.index.current_table import CurrentTable
from lakebloom.spark.sources.listing import list_table, list_with_spark
from lakebloom.store.records import TableRecord
from lakebloom.tables.file_identity import is_same
from lakebloom.tables.listing.glob import escape
from lakebloom.tables.listing.listing import list_files
from tests.spark.support import fresh_name, indexed, kept, keys

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from lakebloom.tables.file_identity import TableFile

pytestmark = pytest.mark.spark


@pytest.fixture
def lakehouse(tmp_path: Path) -> Path:
    for directory in ("flat", "parts/day=1/p=a b%25", "parts/day=2/p=☃", "odd [x] #", "many/a", "many/b"):
        keys(tmp_path / directory, range(3), range(4))
    for hidden in ("flat/_SUCCESS", "flat/.hidden", "flat/_tmp/0.parquet", "flat/sub/0.parquet", "parts/_x/p=1/0.x"):
        (tmp_path / hidden).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / hidden).write_text("x")
    (tmp_path / "flat/empty.parquet").write_text("")
    return tmp_path


def assert_same(listed: list[TableFile], expected: list[TableFile]) -> None:
    """Spark does not tell all that makes a file the same; what it tells has to agree."""
    assert [file.uri for file in listed] == [file.uri for file in expected]
    assert all(map(is_same, listed, expected))


@pytest.mark.parametrize(
    "pattern",
    ["flat", "parts", "parts/day=1", "odd \\[x\\] #", "flat/0.parquet", "many/*", "many/*/0.parquet", "{flat,many/a}"],
)
def test_both_see_the_same(spark: SparkSession, lakehouse: Path, pattern: str) -> None:
    location = f"file://{lakehouse}/{pattern}"
    expected = list_files([location])
    assert expected
    assert_same(sorted(list_with_spark(spark, location), key=lambda file: file.uri), expected)


def test_nothing_there(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"could not list .*missing; found .*PATH_NOT_FOUND"):
        list_with_spark(spark, f"file://{tmp_path}/missing")


def test_data_that_only_spark_reaches(
    spark: SparkSession, lake: Lakebloom, lakehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lakebloom.spark.build import job
    from lakebloom.spark.sources import listing

    monkeypatch.setattr(listing, "reachable", lambda _: False)
    monkeypatch.setattr(job, "reachable", lambda uri: uri.endswith("/by_k"))
    source = TableRecord("parquet", (escape(f"file://{lakehouse}/parts"), f"file://{lakehouse}/gone"))
    assert_same(list_table(spark, CurrentTable(source), {}), list_files([f"file://{lakehouse}/parts"]))
    lake.create_index(lakehouse / "parts", BloomIndexConfig("by_k", ["k"], fpp=1e-6))
    assert len(indexed(lake, "by_k")) == 4
    assert kept(lake, "by_k", col("k") == 3) == ["1.parquet"]
    keys(lakehouse / "parts/day=3/p=b", range(9, 12))
    assert lake.refresh_index("by_k").files == 1


class TestViewFs:
    """A scheme that only Hadoop knows, mounted on local disk: all of it is real."""

    @pytest.fixture
    def distant(self, spark: SparkSession, lakehouse: Path) -> Iterator[str]:
        configuration: Any = spark.sparkContext._jsc.hadoopConfiguration()
        name = fresh_name()
        configuration.set(f"fs.viewfs.mounttable.{name}.link./lake", f"file://{lakehouse}")
        yield f"viewfs://{name}/lake"
        configuration.unset(f"fs.viewfs.mounttable.{name}.link./lake")

    @pytest.mark.parametrize("pattern", ["parts", "many/*", "many/{a,b}/1.parquet"])
    def test_parquet(self, lake: Lakebloom, lakehouse: Path, distant: str, pattern: str) -> None:
        lake.create_index(f"{distant}/{pattern}", BloomIndexConfig("by_k", ["k"], fpp=1e-6))
        expected = [file.uri for file in list_files([f"file://{lakehouse}/{pattern}"])]
        assert indexed(lake, "by_k") == [uri.replace(f"file://{lakehouse}", distant) for uri in expected]
        assert kept(lake, "by_k", col("k") == 3) == ["1.parquet"]
        assert not lake.refresh_index("by_k").committed

    def test_orc(self, spark: SparkSession, lake: Lakebloom, distant: str) -> None:
        spark.range(0, 40, 1, 2).write.orc(f"{distant}/orc")
        lake.create_index(spark.read.orc(f"{distant}/orc"), BloomIndexConfig("by_id", ["id"], fpp=1e-6))
        assert len(kept(lake, "by_id", col("id") == 7)) == 1
        spark.range(100, 120, 1, 1).write.mode("append").orc(f"{distant}/orc")
        assert lake.refresh_index("by_id").rows == 20
        assert lake.candidates("by_id", col("id") == 110).num_rows == 1
