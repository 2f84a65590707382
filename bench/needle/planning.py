"""What an index adds to the planning of a query over very many files."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from lakebloom import BloomIndexConfig, Lakebloom

INDEX = "tiny_files"


def planning_times(spark: SparkSession, lake: Lakebloom, folder: Path, rounds: int) -> tuple[list[float], list[float]]:
    """Return seconds without and with an index, round by round; a plan counts if it kept what it should."""
    frame = spark.read.parquet(str(folder))
    files = len(frame.inputFiles())
    lake.create_index(str(folder), BloomIndexConfig(INDEX, ["uuid"]))
    keys = [row.uuid for row in frame.limit(rounds).collect()]
    without, with_index = [], []
    for key in keys:
        query = frame.where(f"uuid = '{key}'")
        elapsed, text = _plan(query)
        assert INDEX not in text
        without.append(elapsed)
        lake.enable()
        elapsed, text = _plan(query.where("true"))
        lake.disable()
        assert f"{INDEX}: " in text
        assert f"{INDEX}: {files} of" not in text
        with_index.append(elapsed)
    return without, with_index


def _plan(query: DataFrame) -> tuple[float, str]:
    fresh: Any = query.select("*")._jdf.queryExecution()  # a frame keeps its plan
    started = time.perf_counter()
    plan = fresh.executedPlan()
    return time.perf_counter() - started, plan.toString()
