"""The statements of erasure plans do what they say when Iceberg's own connector runs them: rows are gone for good.

The connector's SQL loads on Spark 3.5 only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyspark
import pytest

pytest.importorskip("pyiceberg", reason="needs pyiceberg")

from tests.spark.iceberg_connector import connector_jar
from tests.spark.processes import run

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(connector_jar("2.12") is None, reason="needs snowpark-connect-deps-iceberg"),
    pytest.mark.skipif(not pyspark.__version__.startswith("3.5"), reason="needs the Iceberg connector's Spark 3.5"),
]
DELETE, PURGE, DROP, EXPIRE = (
    "Delete the rows",
    "Purge rows that are only marked as deleted",
    "Drop branches and tags",
    "Expire old snapshots",
)


def test_statements_erase_what_they_are_for(tmp_path: Path) -> None:
    found: dict[str, Any] = run("tests.spark.on_iceberg_erasure", str(tmp_path), timeout_s=900)
    assert len(found) == 15
    for name, case in found.items():
        assert case["planned"] == case["deleted"] > 0, (name, case)
        assert case["left"] == [0, False], (name, case)
        assert case["erased"] == [0, True, [], []], (name, case)
        expected = [DELETE, PURGE, DROP, EXPIRE] if name.endswith(" k") else [DELETE, PURGE, EXPIRE]
        assert case["titles"] == expected, (name, case)
