"""Spark's queries of Iceberg tables with the connector as users have it: catalogs, SQL, writes, procedures.

The connector's catalogs load on Spark 3.5 only. ``test_iceberg_metadata.py`` has what runs on newer ones.
"""

from __future__ import annotations

from typing import Any

import pyspark
import pytest

pytest.importorskip("pyiceberg", reason="needs pyiceberg")

from tests.spark.iceberg_connector import connector_jar
from tests.spark.processes import run

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(connector_jar("2.12") is None, reason="needs snowpark-connect-deps-iceberg"),
    pytest.mark.skipif(not pyspark.__version__.startswith("3.5"), reason="needs the Iceberg connector's Spark 3.5"),
]
PARTS = (
    "conditions", "writes", "versions", "columns", "partitions", "maintenance", "old_format", "plans", "oddities", "joins"
)  # fmt: skip


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    home = tmp_path_factory.mktemp("iceberg")
    result: dict[str, Any] = run("tests.spark.on_iceberg_catalog", str(home), timeout_s=1800)
    return result


@pytest.mark.parametrize("part", PARTS)
def test_indexes_change_no_result(found: dict[str, Any], part: str) -> None:
    assert [name for name, case in found[part].items() if not case["same"]] == []


@pytest.mark.parametrize("part", PARTS)
def test_counts_are_those_of_the_connector(found: dict[str, Any], part: str) -> None:
    """What last_query says was read is what Iceberg's readers opened; files that are read in full have one split."""
    for name, case in found[part].items():
        if "scans" in case and all(read is not None for _, _, read in case["scans"]) and case["scans"]:
            assert sum(read for _, _, read in case["scans"]) == case["splits"], (name, case)
            assert case["splits"] <= case["splits_without"], (name, case)
