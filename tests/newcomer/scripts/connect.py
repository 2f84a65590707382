"""Spark Connect in the first hour: what works, and what is said of the rest. Run by play.py."""

from __future__ import annotations

import warnings
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from lakebloom import BloomIndexConfig, Lakebloom, col
from lakebloom.errors import LakebloomError

warnings.simplefilter("ignore")  # Connect warns of settings that the running server does not change
spark = SparkSession.builder.remote("local[2]").getOrCreate()
home = Path.cwd()
(home / "events").mkdir()
for part in range(4):
    ids = range(part * 250, part * 250 + 250)
    pq.write_table(pa.table({"user_id": ids, "day": [i % 7 for i in ids]}), home / f"events/{part}.parquet")
lake = Lakebloom(spark, home / "indexes")
print(lake.create_index(home / "events", BloomIndexConfig("by_user", ["user_id"])))
frame = lake.read("by_user", "user_id = 42")
print(frame.collect())
print(lake.lookup("by_user", col("user_id") == 42).to_pylist())
print(lake.explain("by_user", "user_id = 42"))
for title, call in {
    "enable()": lake.enable,
    "explain(frame)": lambda: lake.explain(spark.read.parquet(str(home / "events"))),
    "last_query()": lake.last_query,
    "a missing index": lambda: lake.read("by_usr"),
    "a wrong condition": lambda: lake.read("by_user", "user_id = 'one'").collect(),
    "a missing table": lambda: lake.create_index("evens", BloomIndexConfig("x", ["user_id"])),
}.items():
    print(f"## {title}")
    try:
        print(f"no error: {call()}")
    except LakebloomError as error:
        print(f"{type(error).__name__}: {error}\n")
    except Exception as error:
        print(f"NOT OURS {type(error).__name__}: {error}\n")
spark.stop()
