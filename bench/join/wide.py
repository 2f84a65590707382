"""A join of wide rows, for which Spark compiles no whole stage: `python -m bench.join.wide`.

The filter must not travel with the rows. Prints the time of the join without and with it, for a side that Spark
compiles (90 columns) and one that it does not (110). Best of three rounds.
"""

from __future__ import annotations

import shutil
import time

from rich.console import Console

from bench.parameters import WORK
from bench.session import session
from lakebloom import BloomIndexConfig, Lakebloom

FOLDER = WORK / "join-wide"
KEYS, ROWS, ROUNDS = 300_000, 40_000, 3
SHUFFLED = {"spark.sql.autoBroadcastJoinThreshold": "-1", "spark.lakebloom.join.minBytes": "0"}


def main() -> None:
    """Write the tables, run the joins, print a line for each width."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    spark = session("join-wide", "2g", spark_sql_shuffle_partitions="2")
    for key, value in SHUFFLED.items():
        spark.conf.set(key, value)
    spark.range(0, KEYS, 1, 4).selectExpr("id * 2 AS k", "id AS v").write.parquet(str(FOLDER / "keys"))
    lake = Lakebloom(spark, FOLDER / "indexes")
    lake.create_index(str(FOLDER / "keys"), BloomIndexConfig("keys", ["k"], global_filter=True))
    for width in (90, 110):
        path = str(FOLDER / f"wide{width}")
        columns = [f"id + {i} AS c{i}" for i in range(width)]
        spark.range(0, ROWS, 1, 2).selectExpr("id AS k", *columns).write.parquet(path)
        best = {}
        for enabled in (False, True):
            if enabled:
                lake.enable()
            times = []
            for _ in range(ROUNDS):
                started = time.perf_counter()
                query = spark.read.parquet(path).join(spark.read.parquet(str(FOLDER / "keys")), "k")
                query.write.format("noop").mode("overwrite").save()
                times.append(time.perf_counter() - started)
            best[enabled] = min(times)
        lake.disable()
        Console().print(
            f"{width} columns, {ROWS} rows: {best[False]:.2f} s without, {best[True]:.2f} s with the filter"
        )
    spark.stop()


if __name__ == "__main__":
    main()
