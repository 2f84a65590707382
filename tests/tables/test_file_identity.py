"""One identity, whoever lists."""

from __future__ import annotations

import os
import pickle
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakebloom.storage import from_encoded
from lakebloom.tables.file_identity import TableFile, unlike
from lakebloom.tables.listing.listing import list_files, stat_file

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

# Times of day at which rounding shows, some before 1970.
MTIMES_NS = [
    1_700_000_000_000_000_000,
    1_700_000_000_000_999_999,
    1_700_000_000_001_000_000,
    1_700_000_000_999_999_999,
    1_699_999_999_123_456_789,
    999_999,
    0,
    -1,
    -999_999_999,
    -1_500_000_001,
]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    for i, mtime_ns in enumerate(MTIMES_NS):
        file = tmp_path / f"part-{i}.parquet"
        pq.write_table(pa.table({"x": list(range(i + 1))}), file)
        os.utime(file, ns=(mtime_ns, mtime_ns))
    return tmp_path


def test_milliseconds_are_rounded_down(table: Path) -> None:
    assert [file.mtime_ms for file in list_files([str(table)])] == [ns // 1_000_000 for ns in MTIMES_NS]


@pytest.mark.spark
def test_spark_sees_the_same_files(table: Path, spark: SparkSession) -> None:
    """Both by its metadata columns and by the FileStatus that its file index holds."""
    rows = (
        spark.read.parquet(str(table))
        .selectExpr("_metadata.file_path", "_metadata.file_size", "unix_millis(_metadata.file_modification_time)")
        .collect()
    )
    ours = list_files([str(table)])
    seen = {from_encoded(row[0]): TableFile(from_encoded(row[0]), row[1], row[2]) for row in rows}
    assert len(seen) == len(ours)
    assert unlike(seen, ours) == []
    assert all(file.tag for file in ours), "which Spark does not know"
    path = spark._jvm.org.apache.hadoop.fs.Path(str(table))
    statuses = path.getFileSystem(spark._jsc.hadoopConfiguration()).listStatus(path)
    listed = {status.getPath().getName(): (status.getLen(), status.getModificationTime()) for status in statuses}
    assert listed == {file.uri.rpartition("/")[2]: (file.size_bytes, file.mtime_ms) for file in ours}


def test_looking_at_one_file_is_listing_it(table: Path) -> None:
    for file in list_files([str(table)]):
        assert stat_file(file.uri) == file


def test_what_changes_is_another_file(table: Path) -> None:
    before = list_files([str(table)])[0]
    path = table / "part-0.parquet"
    path.write_bytes(path.read_bytes() + b"x")
    os.utime(path, ns=(MTIMES_NS[0], MTIMES_NS[0]))
    longer = stat_file(before.uri)
    os.utime(path, ns=(MTIMES_NS[2], MTIMES_NS[2]))
    later = stat_file(before.uri)
    assert len({before, longer, later}) == 3


def test_objects_have_whole_seconds() -> None:
    from_listing = TableFile("s3://lake/t/a.parquet", 10, 1_700_000_000_750)
    from_head = TableFile("s3://lake/t/a.parquet", 10, 1_700_000_000_000)
    assert from_listing == from_head
    assert TableFile("hdfs://n/t/a", 10, 1_700_000_000_750).mtime_ms == 1_700_000_000_750


def test_files_are_pickled_and_kept_in_sets() -> None:
    file = TableFile("gs://lake/a", 1, 2_345)
    assert pickle.loads(pickle.dumps(file)) == file
    assert len({file, TableFile("gs://lake/a", 1, 2_999)}) == 1
