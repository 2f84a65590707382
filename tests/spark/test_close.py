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
from lakebloom.tables.listing import inotify
from tests.spark.support import keys

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


@pytest.fixture
def alone() -> Iterator[None]:
    """Nobody else uses the threads or watches a table: other tests leave objects behind."""
    gc.collect()
    kept = list(threads._users)
    for user in [*kept, held]:  # the last one ends threads of tests that had no user, too
        threads.closed(user)
    # At the bound of watches a new one closes the oldest and gets its descriptor, which then looks like no new one.
    for watch in list(inotify._live):
        watch.give_up()
    yield
    for user in kept:
        threads.opened(user)


def held(spark: SparkSession) -> dict[str, set[object]]:
    """What there is of each kind; other tests leave things behind, which may go at any time."""
    gc.collect()
    session: Any = spark
    identity = session._jvm.System.identityHashCode
    rules = session._jsparkSession.experimental().extraOptimizations()
    links = {entry.name: str(entry.readlink()) for entry in Path("/proc/self/fd").iterdir() if os.path.lexists(entry)}
    return {
        "rules": {identity(rules.apply(number)) for number in range(rules.size())},
        "listeners": {identity(each) for each in session._jsparkSession.listenerManager().listListeners()},
        "callbacks": set(session.sparkContext._gateway.gateway_property.pool.dict),
        "threads": {thread for thread in threading.enumerate() if thread.name.startswith("lakebloom")},
        "watches": {name for name, link in links.items() if "inotify" in link},
    }


def can_watch() -> bool:
    """Whether this user may have one more watch: Linux bounds how many all processes of a user have."""
    watch = inotify.Watch()
    may = watch.is_quiet()
    watch.give_up()
    return may


def added(spark: SparkSession, before: dict[str, set[object]]) -> set[str]:
    """Which kinds have something that was not there before."""
    return {name for name, now in held(spark).items() if now - before[name]}


@pytest.mark.usefixtures("alone")
def test_everything_is_given_back(spark: SparkSession, tmp_path: Path) -> None:
    table = str(keys(tmp_path / "table", range(50), range(50, 100)))
    before = held(spark)
    watchable = {"watches"} if can_watch() else set()
    with Lakebloom(spark, tmp_path / "indexes") as lake:
        lake.create_index(table, BloomIndexConfig("by_k", ["k"]))
        lake.enable(auto_refresh=True)
        frame = spark.read.parquet(table).where("k = 7")
        assert len(frame.collect()) == 1
        lake.lookup("by_k", col("k") == 7)
        threads.pool(2).submit(int).result()
        assert added(spark, before) == {"rules", "listeners", "callbacks", "threads", *watchable}
    assert not added(spark, before)
    lake.close()
    assert not added(spark, before)
    assert not lake.enabled
    assert len(frame.collect()) == 1  # a plan of before asks nobody
    assert lake.lookup("by_k", col("k") == 7).num_rows == 1
    lake.enable()
    assert len(spark.read.parquet(table).where("k = 7").collect()) == 1
    lake.close()
    assert not added(spark, before)


@pytest.mark.slow
@pytest.mark.usefixtures("alone")
def test_threads_stay_for_others(tmp_path: Path) -> None:
    first, second = Lakebloom(location=tmp_path), Lakebloom(location=tmp_path)
    used = threads.pool(2)
    first.close()
    assert threads.pool(2) is used
    second.close()
    assert threads.pool(2) is not used
    threads.closed(second)
