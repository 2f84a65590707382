"""Ctrl-C cancels the jobs of a build, and no others."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from lakebloom.spark.build.job import interruptible
from lakebloom.spark.versions import ctrl_c_interrupts

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def test_jobs_of_the_block_are_cancelled(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark import InheritableThread

    began, ended = tmp_path / "began", tmp_path / "ended"

    def slow(batches: Iterator[Any]) -> Iterator[Any]:
        began.touch()
        for _ in range(600):
            time.sleep(0.1)
        ended.touch()
        yield from batches

    outcome: list[str] = []

    def run() -> None:
        try:
            spark.range(0, 1, 1, 1).mapInArrow(slow, "id long").collect()
            outcome.append("done")
        except Exception as error:
            outcome.append(type(error).__name__)

    def interrupted() -> None:
        with interruptible(spark, "lakebloom-test"):
            thread = InheritableThread(target=run)
            thread.start()
            while not began.exists():
                time.sleep(0.02)
            threads.append(thread)
            raise KeyboardInterrupt

    threads: list[Any] = []
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    threads[0].join(30)
    assert not threads[0].is_alive()
    assert outcome != ["done"]
    assert not ended.exists()
    assert spark.range(3).count() == 3
    assert "lakebloom-test" not in spark.sparkContext.getJobTags()


def _fail(*, after_ctrl_c: bool) -> None:
    with ctrl_c_interrupts():
        with suppress(KeyboardInterrupt):  # as py4j does while it frees an object
            if after_ctrl_c:
                signal.raise_signal(signal.SIGINT)
        raise RuntimeError("Answer from Java side is empty")


@pytest.fixture
def spark_handler() -> Iterator[Any]:
    """A handler of SIGINT that looks like Spark's."""

    def handler(number: int, frame: object) -> None:
        raise AssertionError("the block has a handler of its own")

    handler.__module__ = "pyspark.core.context"
    before = signal.signal(signal.SIGINT, handler)
    yield handler
    signal.signal(signal.SIGINT, before)


def test_an_error_that_follows_ctrl_c_is_the_interrupt(spark_handler: Any) -> None:
    with pytest.raises(KeyboardInterrupt):
        _fail(after_ctrl_c=True)
    with pytest.raises(RuntimeError):
        _fail(after_ctrl_c=False)
    assert signal.getsignal(signal.SIGINT) is spark_handler


def test_a_block_inside_of_another_knows_of_ctrl_c(spark_handler: Any) -> None:
    with ctrl_c_interrupts():
        handler = signal.getsignal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):  # so a build inside of a command's session cancels its jobs
            _fail(after_ctrl_c=True)
        assert signal.getsignal(signal.SIGINT) is handler
        with pytest.raises(RuntimeError):  # an interrupt that was handled before explains no later error
            _fail(after_ctrl_c=False)
    assert signal.getsignal(signal.SIGINT) is spark_handler
