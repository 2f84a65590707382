"""No cost where there is no use: neither a callback nor a read from the index, and no more reads than are needed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lakebloom import BloomIndexConfig, Lakebloom
from tests.spark.skipping.support import EXACT, callbacks, rows, skipping
from tests.spark.support import reopen, write
from tests.storage.faults import FaultyStorage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakebloom.storage import Storage

pytestmark = pytest.mark.spark


class Counted:
    """A lake that counts what is done to its index."""

    def __init__(self, spark: SparkSession, home: Path) -> None:
        self._recorders: list[FaultyStorage] = []
        self.lake = Lakebloom(spark, home / "indexes")
        reopen(self.lake, self._wrap)

    def _wrap(self, storage: Storage) -> FaultyStorage:
        self._recorders.append(FaultyStorage(storage))
        return self._recorders[-1]

    @property
    def reads(self) -> int:
        return sum(recorder.operations for recorder in self._recorders)

    def cost(self, run: object) -> tuple[int, int]:
        """How many callbacks, and how many operations on the index, something takes."""
        asked, reads = callbacks(self.lake), self.reads
        assert callable(run)
        run()
        return callbacks(self.lake) - asked, self.reads - reads


@pytest.fixture(scope="module")
def home(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("cost")
    for name in ("t", "other"):
        for number in range(3):
            write(home / f"{name}/{number}.parquet", {"k": [number], "v": [number], "s": [{"x": number}]})
    columns = ["k", "s.x"]
    Lakebloom(spark, home / "indexes").create_index(home / "t", BloomIndexConfig("x", columns, fpp=EXACT))
    return home


@pytest.fixture
def counted(spark: SparkSession, home: Path) -> Counted:
    return Counted(spark, home)


@pytest.mark.parametrize(
    "predicate",
    [
        "true",
        "k <> 1",
        "k > v",
        "k IS NOT NULL AND abs(k) > 1",
        "k NOT IN (1, 2)",
        "NOT (k = 1 OR v = 1)",
        "abs(k) = 1",
        "CAST(k AS STRING) = '1'",
        "k = v",
        "v = 1",
        "v = 1 AND k <> 1",
        "k = 1 OR v = 1",
        "k = 1 OR v > 1",
        "s.x % 2 > 1",
        "s IS NULL",
        "k % 2 IN (1, 5)",
    ],
)
def test_a_condition_that_no_filter_answers(spark: SparkSession, counted: Counted, home: Path, predicate: str) -> None:
    with skipping(counted.lake):
        frame = spark.read.parquet(str(home / "t")).where(predicate)
        assert counted.cost(lambda: rows(frame)) == (0, 0)


def test_a_query_without_condition(spark: SparkSession, counted: Counted, home: Path) -> None:
    with skipping(counted.lake):
        frame = spark.read.parquet(str(home / "t"))
        assert counted.cost(lambda: rows(frame)) == (0, 0)
        assert counted.cost(lambda: rows(frame.groupBy("k").count())) == (0, 0)


def test_a_table_without_index(spark: SparkSession, counted: Counted, home: Path) -> None:
    with skipping(counted.lake):
        assert counted.cost(lambda: rows(spark.read.parquet(str(home / "other")).where("k = 1"))) == (0, 0)
        assert counted.cost(lambda: rows(spark.range(5).where("id = 1"))) == (0, 0)


def test_after_disable(spark: SparkSession, counted: Counted, home: Path) -> None:
    with skipping(counted.lake):
        pass
    assert counted.cost(lambda: rows(spark.read.parquet(str(home / "t")).where("k = 1"))) == (0, 0)


def test_what_a_question_costs(spark: SparkSession, counted: Counted, home: Path) -> None:
    """Once warm: a look at the log, and one read for each tile."""
    with skipping(counted.lake):
        ask = lambda: rows(spark.read.parquet(str(home / "t")).where("k = 1"))  # noqa: E731
        ask()
        asked, reads = counted.cost(ask)
        assert asked == 1
        tiles = {operation.path for operation in counted._recorders[0].log if operation.name == "read_ranges"}
        assert reads <= 2 + len(tiles)
        assert counted._recorders[0].count("list") <= 1
