"""PrunedFiles on columns: what it predicts is what a real build then gives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from lakebloom import BloomIndexConfig, Lakebloom, col
from lakebloom.errors import ColumnNotFoundError
from tests.spark.support import snapshot, write

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from lakebloom.index.build.column_advice import ColumnAdvice

FILES, ROWS = 40, 3000


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty files with every kind of column."""
    home = tmp_path_factory.mktemp("advised")
    rng = np.random.default_rng(5)
    for number in range(FILES):
        write(
            home / f"{number:03d}.parquet",
            {
                "unique": rng.integers(0, 1 << 60, ROWS),
                "user": [f"u{key}" for key in rng.integers(0, 20_000, ROWS)],  # in one file of seven
                "country": np.array(["de", "fr", "us"])[rng.integers(0, 3, ROWS)],
                "seq": np.arange(number * ROWS, (number + 1) * ROWS),
                "amount": rng.random(ROWS),
                "flag": rng.random(ROWS) < 0.5,
                "nothing": pa.nulls(ROWS, pa.int64()),
                "s": [{"leaf": int(key)} for key in rng.integers(0, 1 << 60, ROWS)],
            },
            row_group_size=ROWS // 2,
        )
    return home


@pytest.fixture(scope="module")
def advice(spark: SparkSession, table: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, ColumnAdvice]:
    lake = Lakebloom(spark, tmp_path_factory.mktemp("none"))
    return {found.column: found for found in lake.advise(table)}


def test_verdicts(advice: dict[str, ColumnAdvice]) -> None:
    said = {
        name: (found.verdict.value, found.why.partition(":")[0].partition(";")[0]) for name, found in advice.items()
    }
    assert said["country"] == ("no", "too few to skip")
    assert said["seq"] == ("no", "clustered")
    assert said["flag"] == ("no", "a Bloom filter over at most 256 values skips nothing")
    assert said["nothing"] == ("no", "all values are NULL in the sampled files")
    assert said["amount"][0] == "maybe"
    assert [said[name][0] for name in ("unique", "user", "s.leaf")] == ["yes", "yes", "yes"]
    assert list(advice) == ["unique", "user", "country", "seq", "amount", "flag", "nothing", "s.leaf"]


def sample_of(table: Path, column: str, count: int) -> list[Any]:
    """Values of files drawn at random, as somebody looks them up."""
    import pyarrow.parquet as pq

    rng = np.random.default_rng(9)
    whole = [pq.read_table(path, columns=[column])[column].unique() for path in sorted(table.glob("*.parquet"))]
    return [whole[f][int(rng.integers(len(whole[f])))].as_py() for f in rng.integers(0, FILES, count)]


@pytest.mark.parametrize("column", ["unique", "user", "country", "seq"])
def test_predictions_come_true(lake: Lakebloom, table: Path, advice: dict[str, ColumnAdvice], column: str) -> None:
    predicted = advice[column]
    config = BloomIndexConfig("built", [column], fpp=predicted.fpp, granularity=predicted.granularity)
    lake.create_index(table, config)
    tiles = [tile for segment in snapshot(lake, "built").commit.segments for tile in segment.tiles]
    built_bytes = sum(tile.num_blocks * tile.num_units * 32 for tile in tiles)
    assert predicted.index_bytes == pytest.approx(built_bytes, rel=0.1)
    keys = sample_of(table, column, 150)
    kept = [len(set(lake.candidates("built", col(column) == key)["path"].to_pylist())) for key in keys]
    assert predicted.predicted_skip == pytest.approx(1 - np.mean(kept) / FILES, abs=0.03)


def test_auto_is_what_is_proposed(lake: Lakebloom, table: Path, advice: dict[str, ColumnAdvice]) -> None:
    assert lake.price_index(table, BloomIndexConfig("x", ["unique"])).fpp == pytest.approx(advice["unique"].fpp)


def test_few_files_are_indexed_by_row_group(lake: Lakebloom, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    for number in range(2):
        keys = rng.integers(0, 1 << 60, 10_000)
        write(tmp_path / f"few/{number}.parquet", {"k": keys}, row_group_size=1000)
    (found,) = lake.advise(tmp_path / "few")
    assert (found.granularity, found.verdict.value) == ("row_group", "yes")
    lake.create_index(tmp_path / "few", BloomIndexConfig("few", ["k"], granularity="row_group", fpp=found.fpp))
    kept = [lake.candidates("few", col("k") == int(key)).num_rows for key in keys[:200]]
    assert found.predicted_skip == pytest.approx(1 - np.mean(kept) / 20, abs=0.01)


def test_other_formats_partitions_and_names(spark: SparkSession, lake: Lakebloom, tmp_path: Path) -> None:
    frame = spark.range(2000).selectExpr("uuid() AS `odd.name`", "id % 4 AS p")
    frame.repartition(3).write.partitionBy("p").orc(str(tmp_path / "orc"))
    found = {advice.column: advice for advice in lake.advise(spark.read.orc(str(tmp_path / "orc")))}
    assert found["`odd.name`"].verdict == "yes"
    assert "partition column" in found["p"].why
    (only,) = lake.advise(spark.read.orc(str(tmp_path / "orc")), ["`Odd.Name`"])
    assert only.column == "`odd.name`"
    with pytest.raises(ColumnNotFoundError):
        lake.advise(spark.read.orc(str(tmp_path / "orc")), ["nope"])
