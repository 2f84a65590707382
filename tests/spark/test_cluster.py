"""A standalone cluster on loopback: one master, two workers, one executor each."""

from __future__ import annotations

import socket
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tests.spark import processes

if TYPE_CHECKING:
    from pathlib import Path

_DEPLOY = "org.apache.spark.deploy"


@pytest.mark.spark
@pytest.mark.slow
def test_cluster(tmp_path: Path) -> None:
    port = processes.free_port()
    with ExitStack() as cluster:

        def start(name: str, class_name: str, *arguments: str) -> None:
            common = ("--host", "127.0.0.1", "--webui-port", str(processes.free_port()))
            cluster.enter_context(processes.daemon(f"{_DEPLOY}.{class_name}", tmp_path / name, *common, *arguments))

        start("master", "master.Master", "--port", str(port))
        _wait_for(port)
        for name in ("first", "second"):
            start(name, "worker.Worker", "--cores", "1", "--memory", "1g", f"spark://127.0.0.1:{port}")
        found = processes.run("tests.spark.on_cluster", f"spark://127.0.0.1:{port}", str(tmp_path))
    assert found["built"] == [8, 8000, []]
    assert found["kept"] == [["0.parquet"], ["4.parquet"], ["7.parquet"], []]
    assert found["ok"]
    assert found["orc"] == 400
    assert len(found["tasks"]) == 2
    assert all(tasks > 0 for tasks in found["tasks"].values())


def _wait_for(port: int) -> None:
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise AssertionError("the master does not listen")
