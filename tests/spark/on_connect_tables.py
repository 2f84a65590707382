"""Delta and Iceberg tables on Spark Connect, which has a connector for neither: a part of ``on_connect``."""

from __future__ import annotations

import importlib.util
import os
from typing import TYPE_CHECKING, Any

from lakebloom import BloomIndexConfig, Lakebloom, col
from tests.index import delta_lake
from tests.index.logged_lake import ordered

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

KEYS = (3, 4, 11)


def tables(spark: Any, directory: Path) -> dict[str, list[bool]]:
    """Return for each version of each table, and each way to read it, whether the rows are those of the model."""
    lake = Lakebloom(spark, directory / "indexes of tables")
    found = {"delta": list(_delta(spark, lake, directory / "delta t"))}
    # A server of another environment may lack pyiceberg, which plans the scan there.
    if importlib.util.find_spec("pyiceberg") and "LAKEBLOOM_CONNECT_SERVER" not in os.environ:
        found["iceberg"] = list(_iceberg(spark, lake, directory / "iceberg t"))
    return found


def _delta(spark: Any, lake: Lakebloom, root: Path) -> Iterator[bool]:
    model = delta_lake.Model(root)
    for number in range(3):
        model.append([{"k": 10 * number + key, "s": f"s{key}"} for key in range(10)], None if number % 2 else "a b")
    model.delete(model.files[0], {0, 3}, inline=True)
    lake.create_index(f"delta.`{root}`", BloomIndexConfig("delta", ["k"], fpp=1e-6))
    model.delete(model.files[1], {1}, inline=False)
    model.columns[0].name = "key"
    model.alter()
    newest = len(model.versions) - 1
    for version in (None, newest, 4, 3, 1):
        number = newest if version is None else version
        yield from _compared(spark, lake, "delta", version, model.rows(number), "key" if number == newest else "k")
    assert lake.refresh_index("delta").committed
    yield from _compared(spark, lake, "delta", None, model.rows(newest), "key")


def _iceberg(spark: Any, lake: Lakebloom, root: Path) -> Iterator[bool]:
    from tests.index import iceberg_lake

    model = iceberg_lake.Model(root)
    for number in range(3):
        model.append([{1: 10 * number + key, 2: f"s{key}", 3: None if number % 2 else "a b"} for key in range(10)])
    first = model.hand.current
    model.delete_positions([(model.files[0], {0, 3})], alone=False)
    lake.create_index(str(root), BloomIndexConfig("iceberg", ["k"], fpp=1e-6))
    model.delete_equal([1], [(11,), (25,)], None)
    second = model.hand.current
    model.columns[0].name = "key"
    model.alter()
    for snapshot in (None, second, first):
        name = "key" if snapshot is None else "k"
        yield from _compared(spark, lake, "iceberg", snapshot, model.rows(snapshot), name)


def _compared(
    spark: Any, lake: Lakebloom, index: str, version: int | None, rows: list[dict[str, Any]], name: str
) -> Iterator[bool]:
    """Compare ``lake.read`` and the format, whole and for some keys."""
    yield _same(lake.read(index, version=version).collect(), rows)
    reader = spark.read.format("lakebloom").option("location", lake.location)
    if version is not None:
        reader = reader.option("version", str(version))
    for key in KEYS:
        wanted = [row for row in rows if row[name] == key]
        yield _same(lake.read(index, col(name) == key, version=version).collect(), wanted)
        yield _same(reader.option("where", f"{name} = {key}").load(index).collect(), wanted)


def _same(found: Sequence[Any], rows: list[dict[str, Any]]) -> bool:
    return ordered([row.asDict() for row in found]) == ordered(rows)
