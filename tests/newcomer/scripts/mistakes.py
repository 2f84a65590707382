"""What people get wrong in their first hour. Run by play.py in an environment that has lakebloom from a wheel only."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

from lakebloom import BloomIndexConfig, Lakebloom, col

spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.ui.enabled", "false")
    .config("spark.log.level", "ERROR")
    .config("spark.ui.showConsoleProgress", "false")
    .getOrCreate()
)
home = Path.cwd()
events = home / "events"
spark.range(0, 1000, 1, 4).selectExpr("id AS user_id", "id % 7 AS day").write.parquet(str(events))
spark.range(10).write.csv(str(home / "csv"))
(home / "iceberg/metadata").mkdir(parents=True)
(home / "iceberg/metadata/v1.metadata.json").write_text("{}")
shutil.copy(next(events.glob("*.parquet")), home / "iceberg/part-0.parquet")
shutil.copytree(events, home / "gone")
(home / "file").touch()

lake = Lakebloom(spark, home / "indexes")
by_user = BloomIndexConfig("by_user", ["user_id"])
lake.create_index(events, by_user)
lake.create_index(home / "gone", BloomIndexConfig("gone", ["user_id"]))
shutil.rmtree(home / "gone")

MISTAKES: dict[str, Callable[[], object]] = {
    'Lakebloom("orders")': lambda: Lakebloom("orders"),  # type: ignore[arg-type]
    'create_index(path, "user_id")': lambda: lake.create_index(events, "user_id"),  # type: ignore[arg-type]
    'BloomIndexConfig("x", ["user_id"], ffp=0.1)': lambda: BloomIndexConfig("x", ["user_id"], ffp=0.1),  # type: ignore[call-arg]
    "a misspelt column": lambda: lake.create_index(events, BloomIndexConfig("x", ["user_ID_"])),
    "a misspelt keyword": lambda: lake.create_index(events, by_user, from_embeded=True),  # type: ignore[call-arg]
    "the index exists": lambda: lake.create_index(events, by_user),
    "no such index": lambda: lake.lookup("by_usr", col("user_id") == 1),
    "a path that is not there": lambda: lake.create_index(home / "evens", BloomIndexConfig("x", ["user_id"])),
    "a CSV directory": lambda: lake.create_index(home / "csv", BloomIndexConfig("x", ["user_id"])),
    "an Iceberg table, damaged": lambda: lake.create_index(home / "iceberg", BloomIndexConfig("x", ["user_id"])),
    "a location that cannot be written": lambda: Lakebloom(spark, home / "file/indexes").create_index(events, by_user),
    "the table is gone": lambda: lake.refresh_index("gone"),
    "explain of nonsense": lambda: lake.explain("selct * from events"),
    "explain of an unknown table": lambda: lake.explain("select * from evens"),
    "a text for a number": lambda: lake.lookup("by_user", col("user_id") == "one"),
    "a condition that is none": lambda: lake.lookup("by_user", "user_id equals 1"),
    "a column that is not there": lambda: lake.lookup("by_user", "usr_id = 1"),
    "a misspelt setting": lambda: _with_setting("spark.lakebloom.maxIndexByte", "1m"),
    "a setting that is no size": lambda: _with_setting("spark.lakebloom.maxIndexBytes", "much"),
    "without Spark": lambda: Lakebloom(location=home / "indexes").create_index(events, by_user),
}


def _with_setting(key: str, value: str) -> None:
    spark.conf.set(key, value)
    try:
        lake.create_index(events, BloomIndexConfig("x", ["user_id"]))
    finally:
        spark.conf.unset(key)


for title, mistake in MISTAKES.items():
    print(f"## {title}")
    try:
        print(f"no error: {mistake()}")
    except Exception as error:
        print(f"{type(error).__name__}: {error}\n")
print("## what is there after all this")
print(lake)
print(*sorted(path.name for path in Path("indexes").iterdir()))
spark.stop()
