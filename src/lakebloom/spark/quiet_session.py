"""Quiet sessions for the command line: on this machine, on a cluster, or on a Spark Connect server."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from lakebloom.errors import UnsupportedSessionError
from lakebloom.spark.error_cause import cause
from lakebloom.spark.versions import ctrl_c_interrupts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_QUIET = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}
_ON_THIS_MACHINE = {
    "spark.sql.shuffle.partitions": "4",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


@contextmanager
def quiet_session(
    name: str,
    *,
    master: str | None = None,
    remote: str | None = None,
    conf: Mapping[str, str] | None = None,
    muted: bool = False,
) -> Iterator[SparkSession]:
    """Start Spark without its web UI and progress bars, and stop it at the end. ``conf`` overrides these settings.

    ``muted`` hides the stderr of its Java process: errors reach Python anyway. The default ``master`` is local;
    ``remote`` is the address of a Spark Connect server. Raises UnsupportedSessionError if pyspark or Java is missing.
    A session that is already active is used unchanged, and is not stopped.
    """
    active = _active()
    if active is not None:
        yield active
        return
    with _uninterrupted() as interruptions, _muted_stderr() if muted else nullcontext():
        session = _started(name, master, remote, conf or {})
    try:
        if interruptions:
            raise KeyboardInterrupt
        with ctrl_c_interrupts():
            yield session
    finally:
        session.stop()


@contextmanager
def _uninterrupted() -> Iterator[list[int]]:
    """Delay Ctrl-C until Spark has started: an interrupted start would leave its Java process running."""
    came: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield came
        return

    def note(number: int, _: object) -> None:
        came.append(number)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield came
    finally:
        if signal.getsignal(signal.SIGINT) is note:  # otherwise Spark has installed its own handler, which stays
            signal.signal(signal.SIGINT, before)


@contextmanager
def _muted_stderr() -> Iterator[None]:
    """Discard the stderr of processes that are started in the block."""
    for name in (None, "py4j.clientserver"):
        logging.getLogger(name).addFilter(_is_no_interrupt)
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def _active() -> SparkSession | None:
    if sys.modules.get("pyspark.sql") is None:
        return None
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession()


def _started(name: str, master: str | None, remote: str | None, conf: Mapping[str, str]) -> SparkSession:
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise UnsupportedSessionError(
            "this needs Spark", found=f"no pyspark in {sys.prefix}", hint="pip install 'lakebloom[spark]'"
        ) from error
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers need the Python that has lakebloom
    builder = SparkSession.builder.appName(name)
    if remote is not None:
        builder, chosen = builder.remote(remote), dict(conf)
    elif master is not None:
        builder, chosen = builder.master(master), {**_QUIET, **conf}
    else:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        builder, chosen = builder.master("local[*]"), {**_QUIET, **_ON_THIS_MACHINE, **conf}
    for key, value in chosen.items():
        builder = builder.config(key, value)
    try:
        return builder.getOrCreate()
    except Exception as error:
        raise UnsupportedSessionError(
            "Spark could not be started",
            found=cause(error),
            hint="Spark needs Java 17 or newer: install openjdk-17-jre-headless or set JAVA_HOME; check --master, "
            "--remote and --conf",
        ) from error


@contextmanager
def demo_session() -> Iterator[SparkSession]:
    """Start Spark on this machine's cores."""
    with quiet_session("lakebloom demo") as session:
        yield session


def _is_no_interrupt(record: logging.LogRecord) -> bool:
    """Return whether a line is not one of those, with a traceback, that py4j logs when Ctrl-C interrupts a call."""
    text = record.getMessage()
    return "while sending command" not in text and "while shutting down connection" not in text
