"""What an index adds to the planning of a query over very many files."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from lakebloom import BloomIndexConfig, Lakebloom, col

INDEX = "tiny_files"


def planning_times(spark: SparkSession, lake: Lakebloom, folder: Path, rounds: int) -> tuple[list[float], list[float]]:
    """Return seconds without and with an index, round by round; a plan counts if it kept what it should."""
    frame = spark.read.parquet(str(folder))
    files = len(frame.inputFiles())
    lake.create_index(str(folder), BloomIndexConfig(INDEX, ["uuid"]))
    without, with_index = [], []
    for row in frame.limit(rounds).collect():
        elapsed_s, plan = _plan(frame, row.uuid)
        assert INDEX not in plan
        without.append(elapsed_s)
        lake.enable()
        elapsed_s, plan = _plan(frame, row.uuid)
        lake.disable()
        kept = re.search(rf"{INDEX}: (\d+) of (\d+) files", plan)
        assert kept is not None, plan
        assert 1 <= int(kept[1]) < 10
        assert int(kept[2]) == files
        with_index.append(elapsed_s)
    return without, with_index


def first_times(spark: SparkSession, location: Path, folder: Path, rounds: int) -> list[float]:
    """Return what the first planned query adds, round by round, each with a new index that was opened before.

    All that a session learns once about 10,000 files is in it: they are looked at again on disk, and sent to Spark.
    """
    frame = spark.read.parquet(str(folder))
    files = len(frame.inputFiles())
    added = []
    for number, row in enumerate(frame.limit(rounds + 1).collect()):
        name = f"first_{number}"
        with Lakebloom(spark, location) as lake:
            lake.create_index(str(folder), BloomIndexConfig(name, ["uuid"]))
        with Lakebloom(spark, location) as lake:
            lake.candidates(name, col("uuid") == row.uuid)
            without_s = min(_plan(frame, row.uuid)[0] for _ in range(3))
            lake.enable()
            elapsed_s, plan = _plan(frame, row.uuid)
            lake.disable()
            kept = re.search(rf"{name}: (\d+) of (\d+) files", plan)
            assert kept is not None, plan
            assert 1 <= int(kept[1]) < 10
            assert int(kept[2]) == files
            added.append(elapsed_s - without_s)
            lake.delete_index(name, force=True)
    return added[1:]  # the first one compiles the rule


def _plan(frame: DataFrame, key: str) -> tuple[float, str]:
    execution: Any = frame.where(F.col("uuid") == key)._jdf.queryExecution()
    started = time.perf_counter()
    plan = execution.executedPlan()
    return time.perf_counter() - started, plan.toString()
