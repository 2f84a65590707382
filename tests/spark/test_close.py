"""Closing a Lakebloom gives back what it holds: rule, listeners, callbacks, threads, watches."""

from __future__ import annotations

import gc
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lakebloom import BloomIndexConfig, Lakebloom, col
from lakebloom.index import threads
from tests.spark.support import keys

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


@pytest.fixture
def alone() -> Iterator[None]:
    """Nobody else uses the threads: other tests leave objects behind."""
    gc.collect()
    kept = list(threads._users)
    for user in kept:
        threads.closed(user)
    yield
    for user in kept:
        threads.opened(user)


def held(spark: SparkSession) -> dict[str, int]:
    gc.collect()
    session: Any = spark
    links = [str(entry.readlink()) for entry in Path("/proc/self/fd").iterdir() if os.path.lexists(entry)]
    return {
        "rules": session._jsparkSession.experimental().extraOptimizations().size(),
        "listeners": len(session._jsparkSession.listenerManager().listListeners()),
        "callbacks": len(session.sparkContext._gateway.gateway_property.pool),
        "threads": sum(thread.name.startswith("lakebloom") for thread in threading.enumerate()),
        "watches": sum("inotify" in link for link in links),
        "files": sum(link.startswith("/") and "lakebloom" in link for link in links),
    }


@pytest.mark.usefixtures("alone")
def test_everything_is_given_back(spark: SparkSession, tmp_path: Path) -> None:
    table = str(keys(tmp_path / "table", range(50), range(50, 100)))
    before = held(spark)
    with Lakebloom(spark, tmp_path / "indexes") as lake:
        lake.create_index(table, BloomIndexConfig("by_k", ["k"]))
        lake.enable(auto_refresh=True)
        frame = spark.read.parquet(table).where("k = 7")
        assert len(frame.collect()) == 1
        lake.lookup("by_k", col("k") == 7)
        threads.pool(2).submit(int).result()
        during = held(spark)
        assert all(during[name] > before[name] for name in ("rules", "callbacks", "threads", "watches")), during
    assert held(spark) == before
    lake.close()
    assert held(spark) == before
    assert not lake.enabled
    assert len(frame.collect()) == 1  # a plan of before asks nobody
    assert lake.lookup("by_k", col("k") == 7).num_rows == 1
    lake.enable()
    assert len(spark.read.parquet(table).where("k = 7").collect()) == 1
    lake.close()
    assert held(spark) == before


@pytest.mark.usefixtures("alone")
def test_threads_stay_for_others(tmp_path: Path) -> None:
    first, second = Lakebloom(location=tmp_path), Lakebloom(location=tmp_path)
    used = threads.pool(2)
    first.close()
    assert threads.pool(2) is used
    second.close()
    assert threads.pool(2) is not used
    threads.closed(second)
