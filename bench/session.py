"""The Spark session of all benches: two cores, on loopback, quiet."""

from __future__ import annotations

import os
import sys

from pyspark.sql import SparkSession


def session(name: str, memory: str = "4g", **settings: str) -> SparkSession:
    """Start Spark; further settings are written with underscores for dots."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else workers are the first python3 on PATH
    builder = (
        SparkSession.builder.master("local[2]")
        .appName(f"lakebloom-bench-{name}")
        .config("spark.driver.memory", memory)
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
    )
    for key, value in settings.items():
        builder = builder.config(key.replace("_", "."), value)
    return builder.getOrCreate()
