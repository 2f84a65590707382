"""Random histories of Iceberg tables in SQL: queries with indexes equal those without, at every step and snapshot."""

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
    pytest.mark.skipif(connector_jar("2.12") is None, reason="needs snowpark-connect-deps-iceberg"),
    pytest.mark.skipif(not pyspark.__version__.startswith("3.5"), reason="needs the Iceberg connector's Spark 3.5"),
]


SEEDS = ("2", "3", "12")
STEPS = max(25, COMMITS // 7)
"""`make fuzz VERSION=3.5.9` follows longer histories (``LAKEBLOOM_COMMITS``)."""


def test_random_histories_are_read_right(tmp_path: Path) -> None:
    found = run("tests.spark.on_iceberg_random", str(tmp_path), str(STEPS), *SEEDS, timeout_s=7200)
    assert {seed: history["wrong"] for seed, history in found.items()} == {seed: [] for seed in SEEDS}
    files, kept, rows, errors = (
        sum(history[what] for history in found.values()) for what in ("files", "kept", "rows", "errors")
    )
    assert kept < files, (kept, files)
    assert rows
    assert errors < STEPS * len(SEEDS), "most queries have an answer"
