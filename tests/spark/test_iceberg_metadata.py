"""Spark's queries of Iceberg tables with Iceberg's own connector, on random histories with deletes of every kind.

The tables are opened from their metadata files: so the connector, which is made for Spark 3.5, also runs on Spark 4.3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyspark
import pytest

pytest.importorskip("pyiceberg", reason="needs pyiceberg")

from tests.fuzz.long_history import COMMITS
from tests.spark.iceberg_connector import connector_jar
from tests.spark.processes import run

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(connector_jar() is None, reason="needs snowpark-connect-deps-iceberg"),
    pytest.mark.skipif(pyspark.__version__ < "4.3", reason="needs Spark 4.3, where tables open without a catalog"),
]


STEPS = max(10, COMMITS // 20)
"""`make fuzz` follows longer histories (``LAKEBLOOM_COMMITS``). One session: with the connector it starts slowly."""


def test_histories_are_read_right(tmp_path: Path) -> None:
    found = run("tests.spark.on_iceberg_metadata", str(tmp_path), "1v2,3v2,4v3,11v2,14v3", str(STEPS), timeout_s=7200)
    cases = {f"{seed}: {name}": case for seed, history in found.items() for name, case in history.items()}
    assert [name for name, case in cases.items() if not case["same"]] == []
    read = sum(case["splits"] for case in cases.values())
    without = sum(case["splits_without"] for case in cases.values())
    assert read < without, (read, without)
    for name, case in cases.items():
        assert [scan[2] for scan in case["scans"]] == [case["splits"]], (name, case)
        assert [scan[0] - scan[1] for scan in case["scans"]] == [skipped for _, skipped in case["explained"]], (
            name,
            case,
        )
