"""Embedding filters into a whole lake with Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakebloom.display.progress import Progress
from lakebloom.errors import (
    BuildFailedError,
    InvalidArgumentError,
    NoFilesError,
    NotFoundError,
    UnsupportedSourceError,
)
from lakebloom.parquet import embed
from lakebloom.parquet.footer import read_footer
from lakebloom.spark import embed as module
from lakebloom.spark.embed import embed_lake
from lakebloom.tables.columns import format_name
from tests.parquet.files import assert_same_values, embedded
from tests.parquet.test_embed_judges import rows_decoded
from tests.spark.support import write

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def has_filters(path: Path) -> bool:
    return all(group.columns[0].bloom_filter_offset is not None for group in read_footer(path).row_groups)


def test_a_lake_that_spark_wrote(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PROGRESS_INTERVAL_S", 0.01)
    table = tmp_path / "lake"
    # Each file covers the whole range of keys: statistics skip nothing.
    rows = spark.range(0, 4000, 1, 4).selectExpr("id % 1000 * 4 + id div 1000 AS k", "concat('v', id) AS v", "id % 3 p")
    rows.write.partitionBy("p").option("parquet.enable.dictionary", "false").parquet(str(table))
    files = sorted(table.rglob("*.parquet"))
    assert list(table.rglob(".*.crc"))  # of which Hadoop would say that they do not match
    expected = sorted(map(tuple, spark.read.parquet(str(table)).collect()))
    sizes = sum(file.stat().st_size for file in files)
    seen: list[Progress] = []

    report = embed_lake(spark, table, ["k", "v"], fpp=1e-4, progress=seen.append)

    assert (report.files, report.rows, report.filters, report.skipped) == (12, 4000, 24, ())
    assert report.bytes == sizes
    assert report.bytes + report.bytes_added == sum(file.stat().st_size for file in files)
    assert all(map(has_filters, files))
    assert (seen[0].files_done, seen[-1].files_done) == (0, 12)
    assert seen[-1] == Progress(files_done=12, files=12, bytes_done=sizes, bytes=sizes, rows_done=4000)
    assert [step.files_done for step in seen] == sorted(step.files_done for step in seen)
    lake = spark.read.parquet(str(table))
    assert sorted(map(tuple, lake.collect())) == expected
    for key, most in ((2001, 334), (999_999, 0)):
        query = lake.where(f"k = {key}")
        assert rows_decoded(query) <= most
        assert query.count() == (1 if most else 0)
    assert "bytes added" in str(report)


def test_the_filters_are_those_that_spark_makes(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.range(0, 1000, 1, 1).selectExpr(
        "cast(id AS smallint) AS short", "cast(id AS int) AS int", "id AS long", "concat('v', id) AS text",
        "cast(concat('b', id) AS binary) AS bytes", "cast(id AS decimal(9,2)) AS d9",
        "cast(id AS decimal(18,2)) AS d18", "cast(id AS decimal(38,2)) AS d38", "date_from_unix_date(id) AS date",
        "timestamp_micros(id) AS moment", "cast(timestamp_micros(id) AS timestamp_ntz) AS local",
        "named_struct('k', id) AS s", "array(id, -id) AS l",
    )  # fmt: skip
    writer = rows.write.option("parquet.enable.dictionary", "false").option("parquet.bloom.filter.enabled", "true")
    spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    try:
        writer.option("parquet.bloom.filter.max.bytes", 4096).parquet(str(tmp_path / "lake"))
    finally:
        spark.conf.unset("spark.sql.parquet.outputTimestampType")
    (path,) = (tmp_path / "lake").glob("*.parquet")
    leaves = read_footer(path).leaves
    target = tmp_path / "target.parquet"
    embed(path, target, [format_name(leaf.path) for leaf in leaves], fpp=0.001)
    assert len(leaves) == 13
    for leaf in leaves:
        assert_same_values(embedded(target, leaf.number), embedded(path, leaf.number))


def test_files_that_cannot_have_filters_are_reported(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "good.parquet", {"k": [1, 2, 3]})
    write(tmp_path / "other.parquet", {"j": [1, 2, 3]})
    write(tmp_path / "double.parquet", {"k": [0.5]})
    (tmp_path / "notes.txt").write_text("not Parquet at all")
    before = {file: file.read_bytes() for file in tmp_path.iterdir()}
    report = embed_lake(spark, tmp_path, ["k"])
    assert (report.files, report.rows) == (1, 3)
    assert {file.uri.rpartition("/")[2]: file.code for file in report.skipped} == {
        "other.parquet": "UNKNOWN_COLUMN",
        "double.parquet": "UNSUPPORTED_TYPE",
        "notes.txt": "NOT_PARQUET",
    }
    assert "-0.0" in str(report)
    assert {file for file, content in before.items() if file.read_bytes() != content} == {tmp_path / "good.parquet"}
    assert sorted(before) == sorted(tmp_path.iterdir())
    assert embed_lake(spark, tmp_path, ["k"], force=True).files == 2


@pytest.mark.parametrize(
    ("mark", "owner"),
    [
        ("_delta_log/00000000000000000000.json", "Delta Lake"),
        ("metadata/v1.metadata.json", "Iceberg"),
        (".hoodie/hoodie.properties", "Hudi"),
    ],
)
def test_tables_with_a_log_are_refused(spark: SparkSession, tmp_path: Path, mark: str, owner: str) -> None:
    table = tmp_path / "warehouse" / "table"
    file = write(table / "data" / "p=1" / "a.parquet", {"k": [1]})
    plain = write(tmp_path / "warehouse" / "plain" / "a.parquet", {"k": [1]})
    (table / mark).parent.mkdir()
    (table / mark).write_text("{}")
    before = file.read_bytes()
    for path in (tmp_path, table, table / "data", table / "data" / "p=1", file, tmp_path / "warehouse" / "*"):
        with pytest.raises(UnsupportedSourceError, match=f"a table of {owner}"):
            embed_lake(spark, path, ["k"])
    assert file.read_bytes() == before
    assert embed_lake(spark, plain.parent, ["k"]).files == 1
    # A column or partition of this name makes no table.
    write(plain.parent / "metadata" / "a.parquet", {"k": [1]})
    assert embed_lake(spark, plain.parent, ["k"]).skipped == ()


def test_arguments(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        embed_lake(spark, tmp_path / "none", ["k"])
    with pytest.raises(NoFilesError):
        embed_lake(spark, tmp_path, ["k"])
    with pytest.raises(InvalidArgumentError, match="fpp"):
        embed_lake(spark, tmp_path, ["k"], fpp=2)
    with pytest.raises(InvalidArgumentError, match="list of at least one name"):
        embed_lake(spark, tmp_path, "k")
    with pytest.raises(InvalidArgumentError, match="only be reached through Spark"):
        embed_lake(spark, "hdfs://name-node/lake", ["k"])


def test_a_job_that_fails_says_so(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "a.parquet", {"k": [1]})

    def fail(*arguments: object) -> None:
        raise RuntimeError("no executors")

    monkeypatch.setattr(module, "answers", fail)
    with pytest.raises(BuildFailedError, match="embeds filters failed; found no executors"):
        embed_lake(spark, tmp_path, ["k"])
    assert pq.read_table(tmp_path / "a.parquet").equals(pa.table({"k": [1]}))
