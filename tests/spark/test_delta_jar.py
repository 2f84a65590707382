"""Spark's queries on Delta tables with Delta's own jar, where ``LAKEBLOOM_DELTA_JAR`` names it.

Several jars (delta-spark and delta-storage) are separated by commas.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

from tests.spark.processes import run

JAR = os.environ.get("LAKEBLOOM_DELTA_JAR", "")
pytestmark = pytest.mark.skipif(not JAR, reason="LAKEBLOOM_DELTA_JAR does not name Delta's jar")


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    home = tmp_path_factory.mktemp("delta")
    result: dict[str, Any] = run("tests.spark.on_delta_jar", JAR, str(home), timeout_s=600)
    return result


def test_indexes_change_no_result(found: dict[str, Any]) -> None:
    assert [name for name, case in found.items() if not case["same"]] == []
    counts = {name: case["rows"] for name, case in found.items()}
    assert counts == {
        "frame 0": 1, "frame 1": 1, "present": 1, "absent": 0, "by name": 2, "deleted": 1, "before": 1, "updated": 2,
        "optimized": 1,
    }  # fmt: skip


def test_files_are_skipped(found: dict[str, Any]) -> None:
    assert found["present"]["scans"] == [[4, 1]]
    assert found["before"]["scans"] == [[4, 1]]
    assert found["by name"]["scans"] == [[4, 2]]
