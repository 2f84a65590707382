"""Names that differ in case only, with Spark as the judge: queries, lookups and reads mean the same column.

An index is built under one setting of ``spark.sql.caseSensitive`` and asked under the same or the other one. Whatever
Spark answers without it, it answers with it; lookups and reads, which have no setting of their own, answer as Spark
does under the setting of the build.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException

from lakebloom import BloomIndexConfig, Lakebloom, col
from lakebloom.errors import ColumnNotFoundError, InvalidArgumentError
from tests.spark.skipping.support import EXACT, ask_each, configured, rows, skipping
from tests.spark.support import fresh_name, write

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from lakebloom.predicate.tree import Predicate

pytestmark = pytest.mark.spark

CASE = "spark.sql.caseSensitive"
BIG, SMALL, BOTH = {"K": 10}, {"k": 0}, {"k": 0, "K": 10}
"""The columns of a file; its values are its number and this much more."""
TABLES = {"both": [BOTH, BOTH], "K, then k": [BIG, SMALL, BIG]}
PREDICATES = ["k = 1", "K = 11", "k = 11", "k = 1 OR K = 12", "k IS NULL"]


def save(path: Path, files: list[dict[str, int]], *, nested: bool) -> None:
    for number, file in enumerate(files):
        values = {name: number + more for name, more in file.items()}
        columns: dict[str, Any] = {"s": [values]} if nested else {name: [value] for name, value in values.items()}
        write(path / f"{number}.parquet", columns)


def names_in(predicate: str, *, nested: bool) -> str:
    return predicate.replace("k ", "s.k ").replace("K ", "s.K ") if nested else predicate


def readings(spark: SparkSession, path: Path, *, nested: bool) -> list[DataFrame]:
    """The table as it is, and under schemas that know one column of the two."""
    schemas = ["k BIGINT", "K BIGINT"]
    texts = [f"s STRUCT<{schema}>" if nested else schema for schema in schemas]
    return [read.parquet(str(path)) for read in (spark.read, *(spark.read.schema(text) for text in texts))]


def that_spark_takes(frame: DataFrame, predicates: list[str]) -> list[str]:
    """The questions that Spark finds columns for."""
    taken = []
    for predicate in predicates:
        with suppress(AnalysisException):
            frame.where(predicate)
            taken.append(predicate)
    return taken


@pytest.mark.parametrize("nested", [False, True], ids=["top", "nested"])
def test_queries_find_what_spark_finds(spark: SparkSession, lake: Lakebloom, tmp_path: Path, nested: bool) -> None:
    predicates = [names_in(predicate, nested=nested) for predicate in PREDICATES]
    for built in ("true", "false"):
        for name, files in TABLES.items():
            save(tmp_path / built / name, files, nested=nested)
            with configured(spark, {CASE: built}):
                for column in ("K", "k"):  # one index for each: none knows the sibling of its own column
                    if column in files[0] and (built == "true" or files[0] != BOTH):
                        config = BloomIndexConfig(fresh_name(), [names_in(f"{column} ", nested=nested)[:-1]], fpp=EXACT)
                        lake.create_index(tmp_path / built / name, config)
    for asked in ("true", "false"):
        with configured(spark, {CASE: asked}):
            tables = [name for name in TABLES if asked == "true" or name != "both"]  # Spark cannot read it
            paths = [tmp_path / built / name for built in ("true", "false") for name in tables]
            frames = [frame for path in paths for frame in readings(spark, path, nested=nested)]
            asked_of = [(frame, that_spark_takes(frame, predicates)) for frame in frames]
            assert sum(len(taken) for _, taken in asked_of) >= 2 * len(frames)
            opened = sum(len(files) for each in asked_of for files in ask_each(lake, *each).values())
            assert opened < sum(len(frame.inputFiles()) * len(taken) for frame, taken in asked_of)


@pytest.mark.parametrize("nested", [False, True], ids=["top", "nested"])
@pytest.mark.parametrize("built", ["true", "false"])
def test_lookups_and_reads_find_what_spark_finds(
    spark: SparkSession, source: Lakebloom, tmp_path: Path, nested: bool, built: str
) -> None:
    lake, prefix = source, "s." if nested else ""
    asked = {
        "k = 1": col(f"{prefix}k") == 1,
        "K = 11": col(f"{prefix}K") == 11,
        "k = 1 OR K = 12": (col(f"{prefix}k") == 1) | (col(f"{prefix}K") == 12),
    }
    for name in ("both", "K, then k") if built == "true" else ("K, then k",):
        path = tmp_path / name
        save(path, TABLES[name], nested=nested)
        with configured(spark, {CASE: built}):
            frame, index = spark.read.parquet(str(path)), fresh_name()
            lake.create_index(frame, BloomIndexConfig(index, [f"{prefix}K"], fpp=EXACT))
            expected = {text: _count(frame, names_in(text, nested=nested)) for text in asked}
        assert set(expected.values()) > {None} or built == "false" or name == "both"
        for text, count in expected.items():  # under the setting of a session that is not that of the build
            for predicate in (asked[text], names_in(text, nested=nested)):
                _answers(lake, index, predicate, count)
            if count is not None:
                assert lake.read(index, asked[text]).count() == count


def _count(frame: DataFrame, predicate: str) -> int | None:
    try:
        return frame.where(predicate).count()
    except AnalysisException:
        return None


def _answers(lake: Lakebloom, name: str, predicate: Predicate | str, count: int | None) -> None:
    if count is not None:
        assert lake.lookup(name, predicate).num_rows == count
        return
    for ask in (lake.lookup, lake.read, lake.candidates):
        with pytest.raises((ColumnNotFoundError, InvalidArgumentError), match="column"):
            ask(name, predicate)  # type: ignore[operator]


def test_chosen_columns(spark: SparkSession, source: Lakebloom, tmp_path: Path) -> None:
    lake = source
    for number in range(4):
        write(tmp_path / f"t/{number}.parquet", {"Key": [number, 9], "a,b": [1, 2], "x.y": [3, 4]})
    lake.create_index(tmp_path / "t", BloomIndexConfig("t", ["key"]))
    nine = col("KEY") == 9
    assert lake.lookup("t", nine, columns=["KEY", "`x.y`"]).column_names == ["Key", "x.y"]
    assert lake.read("t", nine, columns=["KEY", "a,b", "`X.Y`"]).columns == ["Key", "a,b", "x.y"]
    assert lake.read("t", nine, columns=["a,b"]).count() == 4
    assert [lake.lookup("t", nine, columns=[], limit=limit).num_rows for limit in (None, 3, 9, 0)] == [4, 3, 4, 0]
    assert lake.lookup("t", nine, columns=[]).column_names == []
    assert lake.lookup("t", col("key") == 77, columns=[]).num_rows == 0
    for predicate, count in ((nine, 4), (None, 8), (col("key") == 77, 0)):
        nothing = lake.read("t", predicate, columns=[])
        assert (nothing.columns, nothing.count(), len(nothing.collect())) == ([], count, count)
    for twice in (["Key", "Key"], ["Key", "KEY"], ["a,b", "key", "`key`"]):
        with pytest.raises(InvalidArgumentError, match="Key is named twice"):
            lake.lookup("t", nine, columns=twice)
        with pytest.raises(InvalidArgumentError, match="Key is named twice"):
            lake.read("t", nine, columns=twice)
    for ask in (lake.lookup, lake.read):
        with pytest.raises(ColumnNotFoundError, match="did you mean Key"):
            ask("t", nine, columns=["Keys"])
        with pytest.raises(ColumnNotFoundError, match="did you mean Key"):
            ask("t", col("Keys") == 9)


def test_the_option_columns(spark: SparkSession, source: Lakebloom, tmp_path: Path) -> None:
    write(tmp_path / "t/0.parquet", {"Key": [1]})
    source.create_index(tmp_path / "t", BloomIndexConfig("t", ["key"]))
    read = lambda names: spark.read.format("lakebloom").option("columns", names).load("t")  # noqa: E731
    assert read("KEY").columns == ["Key"]
    with pytest.raises(Exception, match="Key is named twice"):
        read("Key, KEY")


def test_joins_find_what_spark_finds(spark: SparkSession, lake: Lakebloom, tmp_path: Path) -> None:
    save(tmp_path / "t", [BOTH, BOTH, BOTH], nested=False)
    settings = {CASE: "true", "spark.sql.autoBroadcastJoinThreshold": "-1", "spark.lakebloom.join.minBytes": "0"}
    with configured(spark, settings):
        lake.create_index(tmp_path / "t", BloomIndexConfig("t", ["K"], fpp=EXACT, global_filter=True))
        small = spark.createDataFrame([(1,), (2,)], "k BIGINT")

        def joined() -> DataFrame:
            return spark.read.parquet(str(tmp_path / "t")).join(small, "k")

        with skipping(lake):
            found = rows(joined())
        assert found == rows(joined())
        assert len(found) == 2
