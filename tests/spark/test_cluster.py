"""A standalone cluster on loopback: one master, two workers, one executor each."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import pytest

from tests.spark import processes

_DEPLOY = "org.apache.spark.deploy"


pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a driver reports."""
    directory = tmp_path_factory.mktemp("cluster")
    port = processes.free_port()
    with ExitStack() as cluster:

        def start(name: str, class_name: str, *arguments: str) -> None:
            common = ("--host", "127.0.0.1", "--webui-port", str(processes.free_port()))
            cluster.enter_context(processes.daemon(f"{_DEPLOY}.{class_name}", directory / name, *common, *arguments))

        start("master", "master.Master", "--port", str(port))
        processes.wait_for(port)
        for name in ("first", "second"):
            start(name, "worker.Worker", "--cores", "1", "--memory", "1g", f"spark://127.0.0.1:{port}")
        return processes.run("tests.spark.on_cluster", f"spark://127.0.0.1:{port}", str(directory))


def test_indexes(found: dict[str, Any]) -> None:
    assert found["built"] == [8, 8000, []]
    assert found["kept"] == [["0.parquet"], ["4.parquet"], ["7.parquet"], []]
    assert (found["rows"], found["files_read"]) == ([4500, 7999], 2)
    assert found["ok"]
    assert found["orc"] == 400


def test_both_executors_work(found: dict[str, Any]) -> None:
    assert len(found["tasks"]) == 2
    assert all(tasks > 0 for tasks in found["tasks"].values())


@pytest.mark.parametrize("reader", ["parquet", "orc"])
def test_lost_attempts_leave_one_truth(found: dict[str, Any], reader: str) -> None:
    facts = found["lossy"][reader]
    assert facts["one segment a group"]
    assert (facts["files"], facts["kept"], facts["same"]) == (6, 1, True)
    # The lost attempts had written as much as the others.
    assert facts["orphaned"] > 0
    assert facts["vacuumed"] == facts["orphaned"]
    assert facts["left"] == 0


def test_a_build_that_fails_leaves_no_index(found: dict[str, Any]) -> None:
    message, names = found["lossy"]["failed"]
    assert "ConnectionError: the executor is gone" in message
    assert names == ["calm", "retried"]
    assert found["lossy"]["again"] == 1
