"""What differs between versions of Spark: Java sources are changed for old ones, and what is missing is said."""

from __future__ import annotations

import os
import signal
import time
from importlib.resources import files

import pytest

from lakebloom.errors import UnsupportedSessionError
from lakebloom.spark import versions

SOURCES = [file.read_text() for file in files("lakebloom.spark.rule").joinpath("java").iterdir()]
OLD, NEW = "org.apache.spark.sql.SparkSession", "org.apache.spark.sql.classic.SparkSession"


def test_sources_are_changed_for_old_versions_only() -> None:
    assert [versions.java_source(text, "2.13.18", NEW) for text in SOURCES] == SOURCES
    for text in (*versions._SCALA_2_12, *versions._SPARK_3):
        assert any(text in source for source in SOURCES), f"no source has {text}"
        assert not any(text in versions.java_source(source, "2.12.18", OLD) for source in SOURCES)
    # Scala 2.13 with Spark 3.5, as some vendors have it.
    made = "".join(versions.java_source(source, "2.13.18", OLD) for source in SOURCES)
    assert "import scala.collection.immutable.Seq;" in made
    assert "supportsBinaryEquality" not in made


def test_the_data_source_says_which_spark_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "_has_data_sources", lambda: False)
    with pytest.raises(UnsupportedSessionError, match=r"needs Spark 4\.0.*found pyspark.*Hint: after lake\.enable\(\)"):
        versions.require_data_source()


def test_ctrl_c_interrupts_whatever_the_handler_of_spark_does() -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("the connection is in use")

    def wait(seconds: float) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(seconds)

    before = signal.signal(signal.SIGINT, fails)
    try:
        with pytest.raises(RuntimeError), versions.ctrl_c_interrupts():
            wait(60)  # a handler that is not Spark's stays
        fails.__module__ = "pyspark.context"
        with pytest.raises(KeyboardInterrupt), versions.ctrl_c_interrupts():
            wait(60)
        assert signal.getsignal(signal.SIGINT) is fails
    finally:
        signal.signal(signal.SIGINT, before)


class Session:
    """A session without a JVM, which is all that is looked at."""


def test_connect_says_which_spark_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "_has_data_sources", lambda: True)
    versions.require_connect(Session())  # type: ignore[arg-type]
    monkeypatch.setattr(versions, "_has_data_sources", lambda: False)
    with pytest.raises(UnsupportedSessionError, match=r"from Spark 4\.0 on.*Hint: with Spark 3\.5 use a classic"):
        versions.require_connect(Session())  # type: ignore[arg-type]
