"""Other processes: drivers with a session of their own, and the daemons of a cluster."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_ROOT = Path(__file__).parents[2]


def environment() -> dict[str, str]:
    """This process's environment, without what its own session put there."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("SPARK_", "PYSPARK_"))}
    return {
        **kept,
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYTHONPATH": f"{_ROOT / 'src'}{os.pathsep}{_ROOT}",
        # These processes live for seconds: compiling well costs them more than it gives.
        "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }


def run(module: str, *arguments: str, timeout_s: float = 240) -> Any:
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
