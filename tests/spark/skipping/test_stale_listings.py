"""Spark's listing may be older than the files. Whatever became of a file since, a query finds its rows.

Spark keeps the listing of a DataFrame from when it was made, and of a catalog table from when it was first read.
"""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from lakebloom import BloomIndexConfig, Lakebloom
from lakebloom.index.query.scan_reports import FileState
from tests.spark.skipping.support import EXACT, ask, configured, files_read, rows, skipping
from tests.spark.support import fresh_name, keys, write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
BY_K = BloomIndexConfig("by_k", ["k"], fpp=EXACT)
TEXTS = {"csv": "{}\n", "json": '{{"k": "{}"}}\n', "text": "{}\n"}


def one_key(path: Path, key: int) -> None:
    write(path, {"k": pa.array([key], pa.int64())})


def in_place(path: Path, key: int) -> None:
    fresh = path.parent.parent / "fresh.parquet"
    one_key(fresh, key)
    path.write_bytes(fresh.read_bytes())


def with_its_old_time(path: Path, key: int) -> None:
    """As ``cp -p`` and ``rsync -t`` leave it: Hadoop sees the same file."""
    before = path.stat()
    in_place(path, key)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def moved_over_with_its_old_time(path: Path, key: int) -> None:
    before, fresh = path.stat(), path.parent.parent / "fresh.parquet"
    one_key(fresh, key)
    os.utime(fresh, ns=(before.st_atime_ns, before.st_mtime_ns))
    fresh.replace(path)


def directory_exchanged(path: Path, key: int) -> None:
    shutil.copytree(path.parent, path.parent.with_name("copy"))
    one_key(path.parent.with_name("copy") / path.name, key)
    path.parent.rename(path.parent.with_name("old"))
    path.parent.with_name("copy").rename(path.parent)


def test_a_table_that_others_write(spark: SparkSession, lake: Lakebloom, database: str, tmp_path: Path) -> None:
    """Frames that exist, and a catalog table that was read: each way, one after the other, with a lake that is open."""
    table = keys(tmp_path / "t", [1], [2], [3])
    name = f"{database}.{fresh_name()}"
    spark.sql(f"CREATE TABLE {name} (k BIGINT) USING parquet LOCATION '{table}'")
    lake.create_index(name, BY_K)
    frame = spark.read.parquet(str(table))
    askers: list[Callable[[str], DataFrame]] = [
        frame.where,
        lambda condition: spark.sql(f"SELECT * FROM {name} WHERE {condition}"),
    ]
    for asker in askers:
        assert ask(lake, lambda asker=asker: asker("k = 2")) == ["1.parquet"]
    for number, change in enumerate([in_place, with_its_old_time, moved_over_with_its_old_time, directory_exchanged]):
        key = 70 + number
        change(table / "1.parquet", key)
        for asker in askers:
            assert "1.parquet" in ask(lake, lambda asker=asker, key=key: asker(f"k = {key}"))
            assert len(rows(asker(f"k = {key}"))) == 1
        if change is in_place:
            assert ask(lake, lambda: frame.where("k = 1")) == ["0.parquet", "1.parquet"]
            with skipping(lake):
                (scan,) = lake.explain(frame.where("k = 1")).scans
                assert set(scan.states) == {FileState.KEPT, FileState.UNINDEXED, FileState.SKIPPED}
                assert scan.files_stale == 1
    lake.refresh_index("by_k")
    again = spark.read.parquet(str(table))
    assert ask(lake, lambda: again.where("k = 1")) == ["0.parquet"]
    with_its_old_time(table / "1.parquet", 99)  # a listing made after that does not show it either
    new = spark.read.parquet(str(table))
    assert ask(lake, lambda: new.where("k = 99")) == ["1.parquet"]
    assert ask(lake, lambda: new.where("k IN (1, 99)")) == ["0.parquet", "1.parquet"]


@pytest.mark.parametrize("kind", TEXTS)
def test_lines_that_were_added(spark: SparkSession, lake: Lakebloom, tmp_path: Path, kind: str) -> None:
    """Spark reads a text to the end it had when it was listed, or further; never less because of an index."""
    table = tmp_path / "t"
    table.mkdir()
    for number in range(3):
        (table / f"{number}.{kind}").write_text(TEXTS[kind].format(f"k{number}"))
    column = "value" if kind == "text" else "k"
    frame = spark.read.format(kind).schema(f"{column} string").load(str(table))
    lake.create_index(frame, BloomIndexConfig("by_k", [column], fpp=EXACT))
    assert ask(lake, lambda: frame.where(f"{column} = 'k1'")) == [f"1.{kind}"]
    (table / f"1.{kind}").write_text("".join(map(TEXTS[kind].format, ("zz", "yy", "xx"))))
    assert ask(lake, lambda: frame.where(f"{column} = 'zz'")) == [f"1.{kind}"]
    assert len(rows(frame.where(f"{column} = 'zz'"))) == 1


def test_several_indexes_together(spark: SparkSession, lake: Lakebloom, tmp_path: Path) -> None:
    """One OR over the columns of two indexes, of which each alone could say nothing."""
    for number in range(3):
        write(tmp_path / f"t/{number}.parquet", {"a": [number], "b": [10 + number]})
    for column in ("a", "b"):
        lake.create_index(tmp_path / "t", BloomIndexConfig(f"by_{column}", [column], fpp=EXACT))
    frame = spark.read.parquet(str(tmp_path / "t"))
    assert ask(lake, lambda: frame.where("a = 0 OR b = 12")) == ["0.parquet", "2.parquet"]
    write(tmp_path / "t/1.parquet", {"a": [7], "b": [17]})
    assert ask(lake, lambda: frame.where("a = 7 OR b = 99")) == ["1.parquet"]
    assert len(rows(frame.where("a = 7 OR b = 99"))) == 1


def test_joins(spark: SparkSession, lake: Lakebloom, tmp_path: Path) -> None:
    """A filter over the values of a side knows those that are there now; so do the files for a few keys."""
    table = keys(tmp_path / "t", range(100), range(100, 200), range(200, 300))
    lake.create_index(table, BloomIndexConfig("by_k", ["k"], fpp=1e-4, global_filter=True))
    indexed = spark.read.parquet(str(table))
    write(tmp_path / "o/0.parquet", {"k": pa.array(range(1000), pa.int64())})
    others = spark.read.parquet(str(tmp_path / "o"))
    settings = {"spark.sql.autoBroadcastJoinThreshold": "-1", "spark.lakebloom.join.minBytes": "0"}
    with configured(spark, settings), skipping(lake):
        assert indexed.join(others, "k").count() == 300
        for first in (700, 800):  # the second time the filter was made for the first change
            before = (table / "1.parquet").stat()
            write(table / "1.parquet", {"k": pa.array(range(first, first + 100), pa.int64())})
            os.utime(table / "1.parquet", ns=(before.st_atime_ns, before.st_mtime_ns))
            joined = indexed.join(others, "k")
            assert joined.count() == 300
            few = spark.createDataFrame([(first + 7,)], "k bigint")
            pruned = lake.prune_join(indexed, few, "k")
            assert "1.parquet" in files_read(pruned)
            assert pruned.join(few, "k").count() == 1
