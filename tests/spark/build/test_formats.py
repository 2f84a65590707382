"""Formats that only Spark reads: files as units, every refresh finds what is new and nothing else."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from lakebloom import BloomIndexConfig, Lakebloom, col
from lakebloom.errors import BuildFailedError, DataFileError, InvalidArgumentError, UnsupportedSourceError
from lakebloom.spark.build.spark_reader import read_files
from lakebloom.spark.versions import session_settings
from lakebloom.store.records import TableRecord
from lakebloom.tables.file_identity import TableFile
from tests.spark.support import indexed, kept, unit_filters

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("compiled")]
FORMATS: dict[str, Callable[[SparkSession, str], DataFrame]] = {
    "orc": lambda spark, path: spark.read.orc(path),
    "json": lambda spark, path: spark.read.json(path, schema="value STRING, n BIGINT"),
    "csv": lambda spark, path: spark.read.csv(path, header=True, schema="value STRING, n BIGINT", sep="|"),
    "text": lambda spark, path: spark.read.text(path),
}
OPTIONS: dict[str, dict[str, Any]] = {"csv": {"header": True, "sep": "|"}}
BY_VALUE = BloomIndexConfig("by_value", ["value"], fpp=1e-6)


def append(spark: SparkSession, path: Path, file_format: str, first: int, count: int) -> set[str]:
    """Append one file with the values v<first>, …; returns the names of the new files."""
    before = set(os.listdir(path)) if path.exists() else set()  # noqa: PTH208
    columns = ["concat('v', id) AS value", *(["id AS n"] if file_format != "text" else [])]
    frame = spark.range(first, first + count, 1, 1).selectExpr(*columns)
    frame.write.format(file_format).options(**OPTIONS.get(file_format, {})).mode("append").save(str(path))
    return {name for name in set(os.listdir(path)) - before if name.startswith("part-")}  # noqa: PTH208


@pytest.mark.parametrize("file_format", FORMATS)
def test_life(spark: SparkSession, lake: Lakebloom, tmp_path: Path, file_format: str) -> None:
    table = tmp_path / "t"
    first, second = (append(spark, table, file_format, start, 50) for start in (0, 50))
    report = lake.create_index(FORMATS[file_format](spark, str(table)), BY_VALUE)
    assert (report.files, report.rows, report.skipped) == (2, 100, ())
    assert lake.index("by_value").format == file_format
    assert kept(lake, "by_value", col("value") == "v7") == sorted(first)
    assert kept(lake, "by_value", col("value").isin(["v7", "v60"])) == sorted(first | second)
    assert kept(lake, "by_value", col("value") == "nowhere") == []
    assert not lake.refresh_index("by_value").committed

    third = append(spark, table, file_format, 100, 10)
    report = lake.refresh_index("by_value")
    assert (report.files, report.rows) == (1, 10)
    assert kept(lake, "by_value", col("value") == "v105") == sorted(third)
    (gone,) = first
    (table / gone).unlink()
    lake.refresh_index("by_value", "full")
    assert {os.path.basename(path) for path in indexed(lake, "by_value")} == second | third  # noqa: PTH119


@pytest.mark.parametrize("chosen", [None, "77"])
def test_the_session_stays_as_it_was(
    spark: SparkSession, lake: Lakebloom, tmp_path: Path, request: pytest.FixtureRequest, chosen: str | None
) -> None:
    key = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
    if chosen is not None:
        spark.conf.set(key, chosen)
        request.addfinalizer(lambda: spark.conf.unset(key))
    before = session_settings(spark)
    append(spark, tmp_path / "t", "orc", 0, 10)
    lake.create_index(spark.read.orc(str(tmp_path / "t")), BY_VALUE)
    assert session_settings(spark) == before
    assert before.get(key) == chosen


@pytest.mark.parametrize("granularity", ["row_group", 1000])
def test_only_whole_files(spark: SparkSession, lake: Lakebloom, tmp_path: Path, granularity: str | int) -> None:
    append(spark, tmp_path / "t", "orc", 0, 10)
    config = BloomIndexConfig("x", ["value"], granularity=granularity)
    with pytest.raises(InvalidArgumentError, match=r'orc files have no row positions.*use granularity="file"'):
        lake.create_index(spark.read.orc(str(tmp_path / "t")), config)


def test_lookup_says_what_it_cannot(spark: SparkSession, lake: Lakebloom, tmp_path: Path) -> None:
    append(spark, tmp_path / "t", "orc", 0, 10)
    lake.create_index(spark.read.orc(str(tmp_path / "t")), BY_VALUE)
    with pytest.raises(UnsupportedSourceError, match="lookup reads Parquet files only"):
        lake.lookup("by_value", col("value") == "v1")


def test_files_without_rows_are_known(spark: SparkSession, lake: Lakebloom, tmp_path: Path) -> None:
    table = tmp_path / "t"
    table.mkdir()
    (table / "0.csv").write_text("value|n\n")
    (table / "1.csv").write_text("value|n\na|1\n")
    (table / "2.csv").write_text("value|n\n")
    (table / "3.csv").write_text("")  # Spark never opens it, and so it is no part of the table
    report = lake.create_index(FORMATS["csv"](spark, str(table)), BY_VALUE)
    assert (report.files, report.rows) == (3, 1)
    assert not lake.refresh_index("by_value").committed
    assert kept(lake, "by_value", col("value") == "a") == ["1.csv"]
    assert kept(lake, "by_value", col("value").is_null()) == []


def test_a_table_without_any_rows(spark: SparkSession, lake: Lakebloom, tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    for number in range(5):
        (tmp_path / f"t/{number}.csv").write_text("value|n\n")
    report = lake.create_index(FORMATS["csv"](spark, str(tmp_path / "t")), BY_VALUE)
    assert (report.files, report.rows) == (5, 0)
    assert lake.candidates("by_value", col("value") == "a").num_rows == 0
    assert not lake.refresh_index("by_value").committed


def test_partitioned_orc(spark: SparkSession, lake: Lakebloom, tmp_path: Path) -> None:
    frame = spark.range(0, 40, 1, 1).selectExpr("id AS k", "concat('day ', id % 2, '%') AS day")
    frame.write.partitionBy("day").orc(str(tmp_path / "t"))
    lake.create_index(spark.read.orc(str(tmp_path / "t")), BloomIndexConfig("by_k", ["k"], fpp=1e-6))
    (path,) = lake.candidates("by_k", col("k") == 7)["path"].to_pylist()
    assert "/day=day 1%25/" in path
    with pytest.raises(InvalidArgumentError, match="day is a partition column"):
        lake.create_index(spark.read.orc(str(tmp_path / "t")), BloomIndexConfig("x", ["day"]))


def test_odd_names(spark: SparkSession, lake: Lakebloom, tmp_path: Path) -> None:
    table = tmp_path / "a b%20[x]{y}+☃"
    table.mkdir()
    for name in ("[0].csv", "50%.csv", "a b+c.csv", "ü#?.csv"):
        (table / name).write_text(f"value|n\n{name}|1\n")
    lake.create_index(FORMATS["csv"](spark, str(table).replace("[", "\\[").replace("{", "\\{")), BY_VALUE)
    for name in ("[0].csv", "50%.csv", "a b+c.csv", "ü#?.csv"):
        assert kept(lake, "by_value", col("value") == name) == [name]
    assert not lake.refresh_index("by_value").committed


def test_a_column_called_like_sparks_own(spark: SparkSession, lake: Lakebloom, tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "t/0.json").write_text('{"_metadata": {"file_path": "nowhere"}, "value": "a"}\n')
    frame = spark.read.json(str(tmp_path / "t"))
    lake.create_index(frame, BloomIndexConfig("by_value", ["value", "_metadata.file_path"]))
    assert kept(lake, "by_value", col("value") == "a") == ["0.json"]
    assert kept(lake, "by_value", col("_metadata.file_path") == "nowhere") == ["0.json"]


def test_files_of_many_splits(spark: SparkSession, lake: Lakebloom, tmp_path: Path, request: Any) -> None:
    append(spark, tmp_path / "t", "csv", 0, 3000)
    append(spark, tmp_path / "t", "csv", 3000, 3000)
    lake.create_index(FORMATS["csv"](spark, str(tmp_path / "t")), BloomIndexConfig("whole", ["value", "n"]))
    spark.conf.set("spark.sql.files.maxPartitionBytes", "8192")
    request.addfinalizer(lambda: spark.conf.unset("spark.sql.files.maxPartitionBytes"))
    frame = FORMATS["csv"](spark, str(tmp_path / "t"))
    assert frame.rdd.getNumPartitions() > 4
    lake.create_index(frame, BloomIndexConfig("split", ["value", "n"]))
    for column in range(2):
        assert unit_filters(lake, "split", column) == unit_filters(lake, "whole", column)


def test_a_file_that_spark_would_skip_fails_the_build(
    spark: SparkSession, lake: Lakebloom, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    append(spark, tmp_path / "t", "orc", 0, 10)
    (tmp_path / "t/part-bad.orc").write_bytes(b"no ORC")
    spark.conf.set("spark.sql.files.ignoreCorruptFiles", "true")
    request.addfinalizer(lambda: spark.conf.unset("spark.sql.files.ignoreCorruptFiles"))
    frame = spark.read.schema("value STRING").orc(str(tmp_path / "t"))
    with pytest.raises(BuildFailedError, match=r"job that builds the index failed; found .*part-bad\.orc"):
        lake.create_index(frame, BY_VALUE)
    assert not list(tmp_path.glob("indexes/**/*.arrow"))


@pytest.mark.parametrize("fate", ["replaced", "deleted", "all"])
def test_a_file_that_changes_meanwhile_is_not_indexed(
    spark: SparkSession, lake: Lakebloom, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fate: str
) -> None:
    from lakebloom.spark.build import job

    table = tmp_path / "t"
    table.mkdir()
    for number in range(6):
        (table / f"{number}.csv").write_text(f"value|n\nv{number}|1\n")
    changed = {"replaced": ["4.csv"], "deleted": ["4.csv"], "all": [f"{number}.csv" for number in range(6)]}[fate]

    def change_when_read(*arguments: Any, gathered: Callable[..., Any] = job._gathered) -> Any:
        for name in changed:
            (table / name).unlink()
            if fate != "deleted":
                (table / name).write_text("value|n\nother|1\n")
        return gathered(*arguments)

    frame = FORMATS["csv"](spark, str(table))
    monkeypatch.setattr(job, "_gathered", change_when_read)
    if fate == "all":
        with pytest.raises(DataFileError, match=r"none of 6 files could be indexed; found .*/0\.csv: the file changed"):
            lake.create_index(frame, BY_VALUE)
        assert not list(tmp_path.glob("indexes/**/*.arrow"))
        return
    report = lake.create_index(frame, BY_VALUE)
    assert [(skipped.uri.rpartition("/")[2], skipped.code) for skipped in report.skipped] == [("4.csv", "FILE_CHANGED")]
    assert [path[-5:] for path in indexed(lake, "by_value")] == ["0.csv", "1.csv", "2.csv", "3.csv", "5.csv"]
    assert kept(lake, "by_value", col("value") == "v5") == ["5.csv"]
    assert lake.verify_index("by_value", sample=0).orphaned == ()
    if fate == "replaced":
        changed.clear()
        assert lake.refresh_index("by_value").files == 1
        assert kept(lake, "by_value", col("value") == "other") == ["4.csv"]


@pytest.mark.parametrize("scheme", ["s3a", "s3"])
def test_s3_by_the_name_that_spark_has_for_it(
    spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest, scheme: str
) -> None:
    """Buckets are mounted on local disk, because Spark comes without a client for S3."""
    append(spark, tmp_path / "t", "orc", 0, 10)
    configuration: Any = spark.sparkContext._jsc.hadoopConfiguration()
    for key, value in {
        f"fs.{scheme}.impl": "org.apache.hadoop.fs.viewfs.ViewFileSystemOverloadScheme",
        f"fs.viewfs.mounttable.{scheme}-bucket.link./lake": f"file://{tmp_path}",
    }.items():
        configuration.set(key, value)
        request.addfinalizer(partial(configuration.unset, key))
    source = TableRecord("orc", (f"s3://{scheme}-bucket/lake/t",), schema_json=spark.range(1).schema.json())
    files = [TableFile(f"s3://{scheme}-bucket/lake/t/{file.name}", 1, 1) for file in (tmp_path / "t").glob("*.orc")]
    assert read_files(spark, source, files).inputFiles()[0].startswith(f"{scheme}://{scheme}-bucket/lake/t/part-")
