"""Repairing with Spark: what was damaged is built anew from the table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakebloom import BloomIndexConfig, Lakebloom, col
from lakebloom.store.commits import entry_path

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def test_a_damaged_index_is_mended(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(400).repartition(4).write.parquet(str(tmp_path / "table"))
    lake = Lakebloom(spark, tmp_path / "indexes")
    lake.create_index(str(tmp_path / "table"), BloomIndexConfig("i", ["id"], fpp=0.001))
    home = tmp_path / "indexes" / "i"

    tile = home / lake.catalog.index("i").log.confirmed().segments[0].tiles[0].parts[0].file.path
    flip(tile, tile.stat().st_size // 2)
    report = lake.repair_index("i")
    assert any(tile.name in line for line in report.done)
    assert any("built again" in line for line in report.done)
    assert report.left == ()

    # The newest entry is damaged, then all of them, with what they say of the table still to be read.
    flip(home / entry_path(report.version), 0)
    assert {record.state for record in Lakebloom(location=tmp_path / "indexes").indexes()} == {"damaged"}
    assert "newest again" in lake.repair_index("i").done[0]
    for path in sorted((home / "log").glob("0*.json")):
        data = path.read_bytes()
        flip(path, data.index(b'"crc32"', data.index(b'"segments"')) + 9 if b'"tiles":[{' in data else 0)
    report = lake.repair_index("i")
    assert "created again" in report.done[0]

    assert lake.verify_index("i").ok
    assert len(lake.catalog.index("i").log.confirmed().segments) > 0
    assert [lake.lookup("i", col("id") == key).num_rows for key in (0, 399, 400)] == [1, 1, 0]
    assert lake.repair_index("i").done == ()
