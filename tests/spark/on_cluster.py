"""A driver of a standalone cluster, run by test_cluster in a process of its own."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from lakebloom import BloomIndexConfig, Lakebloom, col
from tests.spark.on_retry import lose_answers
from tests.spark.support import kept, keys


def main(master: str, directory: Path) -> dict[str, Any]:
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master(master)
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.executor.memory", "512m")
        .config("spark.executor.cores", "1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.locality.wait", "0")
        .config("spark.lakebloom.query.timeoutMs", "600000")  # no test depends on time
        .config("spark.task.maxFailures", "2")
        .getOrCreate()
    )
    _wait_for_executors(spark, 2)
    table = keys(directory / "t", *(range(i, i + 1000) for i in range(0, 8000, 1000)))
    lake = Lakebloom(spark, directory / "indexes")
    report = lake.create_index(table, BloomIndexConfig("by_k", ["k"], fpp=1e-6, global_filter=True))
    found: dict[str, Any] = {
        "built": [report.files, report.rows, report.skipped],
        "kept": [kept(lake, "by_k", col("k") == key) for key in (0, 4500, 7999, 9000)],
        "ok": lake.verify_index("by_k").ok,
    }
    lake.enable()
    query = spark.read.parquet(str(table)).where("k IN (4500, 7999)")
    found["rows"] = sorted(row.k for row in query.collect())
    last = lake.last_query()
    assert last is not None
    found["files_read"] = last.scans[0].files_read
    lake.disable()
    frame = spark.range(0, 400, 1, 4).withColumnRenamed("id", "k")
    frame.write.orc(str(directory / "orc"))
    found["orc"] = lake.create_index(
        spark.read.orc(str(directory / "orc")), BloomIndexConfig("orc", ["k"], fpp=1e-6)
    ).rows
    found["lossy"] = lose_answers(spark, directory / "lossy")
    store = spark.sparkContext._jsc.sc().statusStore()
    executors = store.executorList(False)
    found["tasks"] = {
        executors.apply(i).id(): executors.apply(i).completedTasks()
        for i in range(executors.size())
        if executors.apply(i).id() != "driver"
    }
    spark.stop()
    return found


def _wait_for_executors(spark: Any, count: int) -> None:
    for _ in range(600):
        if spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() > count:  # the driver is one of them
            return
        time.sleep(0.1)
    raise AssertionError("the executors did not come")


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], Path(sys.argv[2]))))  # noqa: T201
