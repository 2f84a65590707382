"""Other processes: drivers with a session of their own, and the daemons of a cluster."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.class_archive import JAVA_OPTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

_ROOT = Path(__file__).parents[2]
_SPARK = "-Dspark.ui.enabled=false -Dspark.sql.shuffle.partitions=4"
SHORT_LIVED = {"JAVA_TOOL_OPTIONS": f"{JAVA_OPTIONS} {_SPARK}"}
"""For Java processes that live for seconds. Spark takes its defaults from Java's properties: of 200 tasks of a shuffle
most have nothing to do. Queries are compiled, as they are for users."""


def environment() -> dict[str, str]:
    """This process's environment, without what its own session put there."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("SPARK_", "PYSPARK_"))}
    return {
        **kept,
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYTHONPATH": f"{_ROOT / 'src'}{os.pathsep}{_ROOT}",
        **SHORT_LIVED,
    }


def run(module: str, *arguments: str, timeout_s: float = 1800) -> Any:
    """Run a module of the tests in a process of its own; returns the JSON in the last line that it prints."""
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        env=environment(),
        cwd=_ROOT,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    assert done.returncode == 0, f"{module} failed:\n{done.stderr[-8000:]}"
    return json.loads(done.stdout.splitlines()[-1])


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


_CONNECT = "org.apache.spark.sql.connect.service.SparkConnectServer"


@contextmanager
def connect_server(directory: Path) -> Iterator[str]:
    """Where to connect to: a server that the client starts, or one of the environment LAKEBLOOM_CONNECT_SERVER.

    The latter is what clients need that bring no Spark: it names the Python of an environment that has one.
    """
    python = os.environ.get("LAKEBLOOM_CONNECT_SERVER")
    if python is None:
        yield "local[2]"
        return
    (home,) = Path(python).parents[1].glob("lib/python*/site-packages/pyspark")
    port = free_port()
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
        "spark.sql.shuffle.partitions": "4",
        "spark.ui.enabled": "false",
    }
    directory.mkdir(parents=True, exist_ok=True)
    command = [f"{home}/bin/spark-submit", "--class", _CONNECT, "--master", "local[2]"]
    for key, value in settings.items():
        command += ["--conf", f"{key}={value}"]
    with (directory / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "spark-internal"],
            env={**environment(), "SPARK_HOME": str(home), "PYSPARK_PYTHON": python},
            cwd=directory,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        wait_for(port, process)
        yield f"sc://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def wait_for(port: int, process: subprocess.Popen[bytes] | None = None) -> None:
    """Wait until a process listens."""
    for _ in range(1200):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            assert process is None or process.poll() is None, "the process has ended; see its log"
            time.sleep(0.1)
    raise AssertionError("nobody listens")


@contextmanager
def daemon(class_name: str, directory: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A Java process of Spark's, gone when the block ends."""
    import pyspark

    home = str(Path(pyspark.__file__).parent)
    directory.mkdir(parents=True)
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(
            [f"{home}/bin/spark-class", class_name, *arguments],
            env={
                **environment(),
                "SPARK_HOME": home,
                "SPARK_DAEMON_MEMORY": "256m",
                "SPARK_WORKER_DIR": str(directory),
            },
            cwd=directory,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
