"""explain, last_query and prune_join on Spark Connect: a part of ``on_connect``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lakebloom import BloomIndexConfig, Lakebloom, col
from lakebloom.errors import LakebloomError
from tests.spark.support import keys

if TYPE_CHECKING:
    from pathlib import Path


def explained(spark: Any, directory: Path) -> tuple[dict[str, Any], list[str]]:
    """Return what explain, last_query and prune_join tell of frames, and what they refuse."""
    lake = Lakebloom(spark, directory / "explained indexes")
    table = keys(directory / "explained", range(100), range(100, 200), range(200, 300))
    lake.create_index(table, BloomIndexConfig("explained", ["k"], fpp=1e-6))
    frame, whole = lake.read("explained", "k IN (150, 250, 999)"), spark.read.parquet(str(table))
    (planned,) = lake.explain(frame).scans
    (joined,) = lake.explain(frame.where("k > 3").join(spark.range(3).toDF("k"), "k").groupBy().count()).scans
    (asked,) = lake.explain("explained", col("k") == 150).scans
    told: dict[str, Any] = {"claims": [[scan.files, scan.files_kept] for scan in (planned, joined, asked)]}
    before = lake.last_query()
    rows = len(frame.collect())
    figures = [_figures(lake)]
    keys(table, range(300, 400), first=3)
    figures.append(_figures(lake))
    told["figures"] = [before is None, rows, *figures]
    lake.refresh_index("explained")
    small = spark.createDataFrame([(7,), (150,), (399,), (None,), (5000,)], "k int")
    for side in (whole, lake.read("explained"), lake.read("explained", "k > 100")):
        pruned = lake.prune_join(side, small, "K")
        (scan,) = lake.explain(pruned).scans
        told.setdefault("joins", []).append(
            [scan.files_kept, sorted(row.k for row in pruned.join(small, "k").collect())]
        )
    spark.conf.set("spark.lakebloom.join.maxKeys", "2")
    told["many"] = lake.prune_join(whole, small, "k") is whole
    spark.conf.unset("spark.lakebloom.join.maxKeys")
    errors = []
    for refused in (
        lambda: lake.explain(whole.where("k = 1")),
        lambda: lake.explain("SELECT * FROM somewhere"),
        lambda: lake.explain("nonsense"),
        lambda: lake.explain("explained"),
        lambda: lake.prune_join(whole.where("k > 3"), small, "k"),
        lambda: lake.prune_join(whole, small.selectExpr("CAST(k AS STRING) AS k"), "k"),
        lambda: lake.prune_join(
            whole, small.selectExpr("raise_error('no') AS k").selectExpr("CAST(k AS INT) AS k"), "k"
        ),
        lambda: lake.prune_join(whole, small, "kk"),
    ):
        try:
            refused()
        except LakebloomError as error:
            errors.append(str(error))
    lake.delete_index("explained", force=True)
    return told, errors


def _figures(lake: Lakebloom) -> list[int | None]:
    query = lake.last_query()
    assert query is not None
    (scan,) = query.scans
    return [scan.files, scan.files_read, scan.rows_read]
