"""One filter over a whole column, made of many tasks' parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from lakebloom import BloomIndexConfig, Lakebloom, Sbbf
from lakebloom.errors import InvalidArgumentError
from lakebloom.store.global_filters import read_global
from tests.spark.support import keys, snapshot, write

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from lakebloom.store.records import GlobalRecord

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("in_tasks")]
BY_K = BloomIndexConfig("by_k", ["k"], global_filter=True)
ROWS = 3000


def stored(lake: Lakebloom, column: int = 0) -> tuple[GlobalRecord, Sbbf]:
    version = snapshot(lake, "by_k")
    (record,) = (record for record in version.commit.global_filters if record.column == column)
    return record, read_global(version.storage, record)


def built(values: range | list[str], num_blocks: int) -> Sbbf:
    """The filter as it should be: all values put into one of this size."""
    f = Sbbf(num_blocks)
    f.insert(pa.array(values))
    return f


def files(count: int, first: int = 0) -> list[range]:
    return [range(ROWS * i, ROWS * (i + 1)) for i in range(first, first + count)]


@pytest.fixture
def set_conf(spark: SparkSession) -> Iterator[Callable[[str, str], None]]:
    changed = []

    def change(key: str, value: str) -> None:
        changed.append(key)
        spark.conf.set(key, value)

    yield change
    for key in changed:
        spark.conf.unset(key)


def test_all_values_of_all_tasks(lake: Lakebloom, tmp_path: Path) -> None:
    for number, values in enumerate(files(6)):
        columns = {"k": pa.array(values), "text": pa.array([f"t{value // 2}" for value in values])}
        write(tmp_path / f"t/{number}.parquet", columns)
    lake.create_index(tmp_path / "t", BloomIndexConfig("by_k", ["k", "text"], global_filter=True))
    assert len(snapshot(lake, "by_k").segments) > 2
    for column, values in enumerate([range(6 * ROWS), [f"t{i}" for i in range(3 * ROWS)]]):
        record, f = stored(lake, column)
        assert f == built(values, record.num_blocks)
        assert record.ndv == pytest.approx(len(values), rel=0.02)
        absent = pa.array(range(10**9, 10**9 + 200_000)) if column == 0 else pa.array([f"n{i}" for i in range(200_000)])
        assert np.mean(f.might_contain(absent)) == pytest.approx(record.fpp, rel=0.15)
        assert record.fpp <= 0.01
        assert set(record.segments) == {segment.record.id for segment in snapshot(lake, "by_k").segments}


def test_through_spark(spark: SparkSession, lake: Lakebloom, tmp_path: Path) -> None:
    frame = spark.range(0, 6 * ROWS, 1, 6).withColumnRenamed("id", "k")
    frame.write.orc(str(tmp_path / "t"))
    lake.create_index(spark.read.orc(str(tmp_path / "t")), BY_K)
    record, f = stored(lake)
    assert f == built(range(6 * ROWS), record.num_blocks)


def test_refresh(lake: Lakebloom, tmp_path: Path) -> None:
    table = keys(tmp_path / "t", *files(3))
    lake.create_index(table, BY_K)
    first, _ = stored(lake)

    keys(table, *files(2, first=3), first=3)
    lake.refresh_index("by_k")
    quick, f = stored(lake)
    assert quick.num_blocks == first.num_blocks
    assert quick.fpp > first.fpp
    assert f == built(range(5 * ROWS), quick.num_blocks)

    for number in range(2):
        (table / f"{number}.parquet").unlink()
    lake.refresh_index("by_k")
    assert stored(lake)[0] == quick  # what is gone alone changes nothing

    lake.refresh_index("by_k", "full")
    full, f = stored(lake)
    assert f == built(range(2 * ROWS, 5 * ROWS), full.num_blocks)
    assert np.mean(f.might_contain(pa.array(range(2 * ROWS)))) < 2 * full.fpp
    assert full.fpp <= 0.01


def test_the_size_is_capped_and_the_rate_recorded(
    lake: Lakebloom, tmp_path: Path, set_conf: Callable[[str, str], None]
) -> None:
    set_conf("spark.lakebloom.global.maxBytes", "170000")
    table = keys(tmp_path / "t", range(150_000), range(150_000, 300_000))
    lake.create_index(table, BY_K)
    record, f = stored(lake)
    assert 160_000 < 32 * record.num_blocks <= 170_000
    assert f == built(range(300_000), record.num_blocks)
    measured = np.mean(f.might_contain(pa.array(range(10**9, 10**9 + 100_000))))
    assert record.fpp == pytest.approx(measured, rel=0.05)
    assert record.fpp > 0.1


def test_a_small_cap(lake: Lakebloom, tmp_path: Path, set_conf: Callable[[str, str], None]) -> None:
    set_conf("spark.lakebloom.global.maxBytes", "4096")
    lake.create_index(keys(tmp_path / "t", *files(2)), BY_K)
    record, f = stored(lake)
    assert 2048 < 32 * record.num_blocks <= 4096
    assert f == built(range(2 * ROWS), record.num_blocks)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("spark.lakebloom.global.maxbytes", "1", r"did you mean spark.lakebloom.global.maxBytes\?"),
        ("spark.lakebloom.nonsense", "1", "unknown configuration key; found spark.lakebloom.nonsense"),
        ("spark.lakebloom.global.maxBytes", "many", "must be a size"),
    ],
)
def test_wrong_keys(
    spark: SparkSession,
    lake: Lakebloom,
    tmp_path: Path,
    set_conf: Callable[[str, str], None],
    key: str,
    value: str,
    message: str,
) -> None:
    table = keys(tmp_path / "t", range(10))
    set_conf(key, value)
    with pytest.raises(InvalidArgumentError, match=message):
        lake.create_index(table, BY_K)
    with pytest.raises(InvalidArgumentError, match=message):
        Lakebloom(spark)
    assert not (tmp_path / "indexes").exists()
