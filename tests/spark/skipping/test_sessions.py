"""Turning skipping on and off: what it leaves in a session, and several lakes and sessions side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lakebloom import BloomIndexConfig, Lakebloom
from lakebloom.errors import UnsupportedSessionError
from tests.spark.skipping.support import EXACT, ask, callbacks, files_read, rows, skipping
from tests.spark.support import keys, write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


def rules(spark: SparkSession) -> list[Any]:
    session: Any = spark
    found = session._jsparkSession.experimental().extraOptimizations()
    return [found.apply(i) for i in range(found.size())]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    for number in range(3):
        write(tmp_path / f"t/{number}.parquet", {"k": [number], "j": [number % 2]})
    return tmp_path / "t"


@pytest.fixture
def lakes(spark: SparkSession, tmp_path: Path, table: Path) -> tuple[Lakebloom, Lakebloom]:
    """One with an index of k, another one with an index of j."""
    by_k, by_j = Lakebloom(spark, tmp_path / "k"), Lakebloom(spark, tmp_path / "j")
    by_k.create_index(table, BloomIndexConfig("x", ["k"], fpp=EXACT))
    by_j.create_index(table, BloomIndexConfig("x", ["j"], fpp=EXACT))
    return by_k, by_j


def query(spark: SparkSession, table: Path, predicate: str = "k = 1") -> DataFrame:
    return spark.read.parquet(str(table)).where(predicate)


def test_on_and_off(spark: SparkSession, lakes: tuple[Lakebloom, Lakebloom], table: Path) -> None:
    lake, _ = lakes
    assert not lake.enabled
    lake.disable()
    lake.enable()
    lake.enable()
    assert lake.enabled
    assert len(rules(spark)) == 1
    assert files_read(query(spark, table)) == ["1.parquet"]
    lake.disable()
    assert not lake.enabled
    assert rules(spark) == []
    assert len(files_read(query(spark, table))) == 3
    lake.disable()
    lake.enable()
    assert files_read(query(spark, table)) == ["1.parquet"]
    lake.disable()


def test_rules_of_others_stay(spark: SparkSession, lakes: tuple[Lakebloom, Lakebloom]) -> None:
    first, second = lakes
    with skipping(first):
        (foreign,) = rules(spark)
        with skipping(second):
            assert rules(spark)[0].equals(foreign)
            assert len(rules(spark)) == 2
        assert [rule.equals(foreign) for rule in rules(spark)] == [True]
        assert first.enabled
        assert not second.enabled
        second.disable()
        assert first.enabled


def test_two_lakes_on_one_session(spark: SparkSession, lakes: tuple[Lakebloom, Lakebloom], table: Path) -> None:
    for order in (lakes, tuple(reversed(lakes))):
        with skipping(*order):
            frame = query(spark, table, "k IN (0, 1) AND j = 1")
            assert rows(frame) == ["Row(k=1, j=1)"]
            assert files_read(frame) == ["1.parquet"]
            assert files_read(query(spark, table, "k = 1")) == ["1.parquet"]
            assert files_read(query(spark, table, "j = 0")) == ["0.parquet", "2.parquet"]
    assert all(callbacks(lake) > 0 for lake in lakes)


def test_one_question_is_asked_once(spark: SparkSession, lakes: tuple[Lakebloom, Lakebloom], table: Path) -> None:
    with skipping(*lakes):
        before = [callbacks(lake) for lake in lakes]
        rows(query(spark, table, "k = 1 AND j = 1"))
        assert [callbacks(lake) - count for lake, count in zip(lakes, before, strict=True)] == [1, 1]


def test_another_session_is_not_affected(
    spark: SparkSession, lakes: tuple[Lakebloom, Lakebloom], table: Path, tmp_path: Path
) -> None:
    other = spark.newSession()
    with skipping(lakes[0]):
        assert rules(other) == []
        assert len(files_read(query(other, table))) == 3
        elsewhere = Lakebloom(other, tmp_path / "k")
        assert not elsewhere.enabled
        with skipping(elsewhere):
            assert files_read(query(other, table)) == ["1.parquet"]
        assert lakes[0].enabled
        assert files_read(query(spark, table)) == ["1.parquet"]


def test_a_lake_without_indexes(spark: SparkSession, tmp_path: Path) -> None:
    table = keys(tmp_path / "t", [1], [2])
    lake = Lakebloom(spark, tmp_path / "nowhere")
    assert len(ask(lake, lambda: query(spark, table))) == 2
    assert callbacks(lake) == 0


def test_without_a_session(tmp_path: Path) -> None:
    lake = Lakebloom(location=tmp_path)
    with pytest.raises(UnsupportedSessionError, match='format\\("lakebloom"\\)'):
        lake.enable()
    lake.disable()
    assert not lake.enabled
