"""An index may lag behind its table, and never lies: new and changed files are read, whatever the index thinks."""

from __future__ import annotations

import os
import shutil
from datetime import timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from lakebloom import BloomIndexConfig, Lakebloom
from tests.spark.skipping.support import EXACT, ask, configured, files_read, rows, skipping
from tests.spark.support import keys, write

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
BY_K = BloomIndexConfig("by_k", ["k"], fpp=EXACT)


@pytest.fixture
def table(lake: Lakebloom, tmp_path: Path) -> Path:
    """Three files, with 1, 2 and 3; and an index that knows them."""
    table = keys(tmp_path / "t", [1], [2], [3])
    lake.create_index(table, BY_K)
    return table


class Reads:
    """Asks for keys: the numbers of the files that are read for each."""

    def __init__(self, spark: SparkSession, lake: Lakebloom, table: Path) -> None:
        self._spark, self._lake, self._table = spark, lake, table

    def __call__(self, key: int) -> str:
        files = ask(self._lake, lambda: self._spark.read.parquet(str(self._table)).where(f"k = {key}"))
        return "".join(name.removesuffix(".parquet") for name in files)


@pytest.fixture
def reads(spark: SparkSession, lake: Lakebloom, table: Path) -> Reads:
    return Reads(spark, lake, table)


def replace(file: Path, key: int, *, same_time: bool) -> None:
    """Write a file of the same length with another key."""
    before = file.stat()
    write(file, {"k": pa.array([key], pa.int64())})
    assert file.stat().st_size == before.st_size
    time_ns = before.st_mtime_ns + (0 if same_time else 1_000_000)
    os.utime(file, ns=(time_ns, time_ns))


class TestFiles:
    def test_appended(self, lake: Lakebloom, table: Path, reads: Reads) -> None:
        keys(table, [1], first=3)
        assert reads(1) == "03"
        assert reads(2) == "13"
        lake.refresh_index("by_k")
        assert reads(1) == "03"
        assert reads(2) == "1"

    def test_replaced(self, lake: Lakebloom, table: Path, reads: Reads) -> None:
        replace(table / "1.parquet", 7, same_time=False)
        assert reads(7) == "1"
        assert reads(1) == "01"
        assert reads(2) == "1"
        lake.refresh_index("by_k")
        assert reads(2) == ""
        assert reads(7) == "1"

    def test_rewritten_at_the_same_time_with_another_length(self, table: Path, reads: Reads) -> None:
        file = table / "1.parquet"
        before = file.stat()
        write(file, {"k": pa.array([7, 8, 9], pa.int64())}, compression="none")
        assert file.stat().st_size != before.st_size
        os.utime(file, ns=(before.st_mtime_ns, before.st_mtime_ns))
        assert reads(8) == "1"
        assert reads(1) == "01"

    def test_touched(self, table: Path, reads: Reads) -> None:
        os.utime(table / "1.parquet", ns=(0, 0))
        assert reads(1) == "01"

    def test_deleted(self, table: Path, reads: Reads) -> None:
        (table / "0.parquet").unlink()
        assert reads(1) == ""
        assert reads(2) == "1"

    def test_moved_over_another(self, table: Path, reads: Reads) -> None:
        """The content of one file under the name of another, with its own time."""
        (table / "0.parquet").replace(table / "1.parquet")
        os.utime(table / "1.parquet", ns=(1, 1))
        assert reads(1) == "1"
        assert reads(2) == "1"

    def test_a_table_written_anew(self, spark: SparkSession, lake: Lakebloom, table: Path, reads: Reads) -> None:
        shutil.rmtree(table)
        keys(table, [3], [1], [2])
        for file in table.iterdir():
            os.utime(file, ns=(10**18, 10**18))
        assert reads(1) == "012"
        lake.refresh_index("by_k")
        assert reads(1) == "1"

    def test_a_frame_that_listed_before(self, spark: SparkSession, lake: Lakebloom, table: Path) -> None:
        """What a frame reads are the files as it listed them, whatever a refresh has learnt since."""
        frame = spark.read.parquet(str(table))
        replace(table / "1.parquet", 7, same_time=False)
        keys(table, [1], first=3)
        lake.refresh_index("by_k")
        assert ask(lake, lambda: frame.where("k = 7")) == ["1.parquet"]
        assert ask(lake, lambda: frame.where("k = 1")) == ["0.parquet", "1.parquet"]

    def test_a_frame_that_was_planned_before(self, spark: SparkSession, lake: Lakebloom, table: Path) -> None:
        with skipping(lake):
            frame = spark.read.parquet(str(table)).where("k = 1")
            assert files_read(frame) == ["0.parquet"]
            keys(table, [1], first=3)
            lake.refresh_index("by_k")
            assert rows(frame) == ["Row(k=1)"]
            assert len(rows(spark.read.parquet(str(table)).where("k = 1"))) == 2


class TestVersions:
    def test_several_behind(self, spark: SparkSession, lake: Lakebloom, table: Path, tmp_path: Path) -> None:
        """One reader sleeps while another writes new versions."""
        writer = Lakebloom(spark, tmp_path / "indexes")
        reads = Reads(spark, lake, table)
        assert reads(1) == "0"
        for number in range(3, 6):
            keys(table, [number + 1], first=number)
            writer.refresh_index("by_k")
        assert reads(6) == "5"
        assert reads(1) == "0"

    def test_after_optimize(self, lake: Lakebloom, table: Path, reads: Reads) -> None:
        keys(table, [4], first=3)
        lake.refresh_index("by_k")
        replace(table / "1.parquet", 7, same_time=False)
        lake.refresh_index("by_k")
        assert (reads(2), reads(7), reads(4)) == ("", "1", "3")
        lake.optimize_index("by_k")
        assert (reads(2), reads(7), reads(4), reads(1)) == ("", "1", "3", "0")
        (table / "0.parquet").unlink()
        lake.refresh_index("by_k", "full")
        assert (reads(1), reads(7), reads(4)) == ("", "1", "3")

    def test_deleted_and_restored(self, lake: Lakebloom, reads: Reads) -> None:
        assert reads(1) == "0"
        lake.delete_index("by_k")
        assert reads(1) == "012"
        lake.restore_index("by_k")
        assert reads(1) == "0"

    @pytest.mark.parametrize("same_object", [True, False])
    def test_vacuumed_and_created_again(
        self, spark: SparkSession, lake: Lakebloom, table: Path, reads: Reads, tmp_path: Path, same_object: bool
    ) -> None:
        """The same name, another table: what the JVM knew of the files must be forgotten."""
        assert reads(3) == "2"
        writer = lake if same_object else Lakebloom(spark, tmp_path / "indexes")
        writer.delete_index("by_k")
        settings = {"spark.lakebloom.vacuum.graceMs": "0", "spark.lakebloom.vacuum.retentionMs": "0"}
        with configured(spark, settings):
            writer.vacuum_index("by_k", retention=timedelta(0))
        (table / "0.parquet").unlink()
        replace(table / "1.parquet", 9, same_time=True)  # which only a new index can know
        keys(table, [5], first=3)
        writer.create_index(table, BY_K)
        assert reads(3) == "2"
        assert reads(9) == "1"
        assert reads(5) == "3"
        assert reads(2) == ""

    def test_removed_and_created_again(self, spark: SparkSession, table: Path, reads: Reads, tmp_path: Path) -> None:
        """As someone may do by hand."""
        assert reads(3) == "2"
        shutil.rmtree(tmp_path / "indexes/by_k")
        replace(table / "1.parquet", 9, same_time=True)
        Lakebloom(spark, tmp_path / "indexes").create_index(table, BY_K)
        assert "1" in reads(9)
        assert "2" in reads(3)


class TestWhileEnabled:
    """What happens to an index after ``enable()`` is noticed by itself."""

    def test_created(self, spark: SparkSession, lake: Lakebloom, tmp_path: Path) -> None:
        table = keys(tmp_path / "t", [1], [2], [3])
        frame = spark.read.parquet(str(table))
        with skipping(lake):
            assert len(files_read(frame.where("k = 1"))) == 3
            lake.create_index(table, BY_K)
            assert files_read(frame.where("k = 1")) == ["0.parquet"]

    def test_deleted_restored_refreshed(self, spark: SparkSession, lake: Lakebloom, table: Path) -> None:
        with skipping(lake):
            lake.delete_index("by_k")
            assert len(files_read(spark.read.parquet(str(table)).where("k = 1"))) == 3
            lake.restore_index("by_k")
            keys(table, [4], first=3)
            lake.refresh_index("by_k")
            assert files_read(spark.read.parquet(str(table)).where("k = 4")) == ["3.parquet"]
            lake.optimize_index("by_k")
            assert files_read(spark.read.parquet(str(table)).where("k = 4")) == ["3.parquet"]

    def test_by_another_process(self, spark: SparkSession, lake: Lakebloom, table: Path, tmp_path: Path) -> None:
        other = Lakebloom(spark, tmp_path / "indexes")
        with skipping(lake):
            keys(table, [4], first=3)
            other.refresh_index("by_k")
            assert files_read(spark.read.parquet(str(table)).where("k = 4")) == ["3.parquet"]
            other.delete_index("by_k")
            assert len(files_read(spark.read.parquet(str(table)).where("k = 4"))) == 4
            other.restore_index("by_k")
            assert files_read(spark.read.parquet(str(table)).where("k = 4")) == ["3.parquet"]
