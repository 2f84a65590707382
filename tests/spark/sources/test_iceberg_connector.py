"""Iceberg's own connector judges the model of the random histories, equality deletes included."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyspark
import pytest

pytest.importorskip("pyiceberg", reason="needs pyiceberg")

from tests.index.laws.test_iceberg import History
from tests.index.logged_lake import ordered
from tests.spark.iceberg_connector import connector_jar, connector_rows

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(connector_jar() is None, reason="needs snowpark-connect-deps-iceberg"),
    pytest.mark.skipif(pyspark.__version__ < "4.3", reason="needs Spark 4.3, where tables open without a catalog"),
]


def test_the_model_is_right_about_what_the_connector_reads(tmp_path: Path) -> None:
    """The connector fails where rows are deleted by a column that was dropped since, so a history has one of these."""
    expected = {}
    for seed, version in [(1, 2), (2, 2), (3, 2), (4, 3), (5, 3), (6, 3)]:
        history = History(tmp_path / f"t{seed}", seed, version, equality=seed % 3 != 0)
        if history.equality:
            history.drop_and_add = lambda: None  # type: ignore[method-assign]
        for _ in range(10):
            history.step()
            expected[str(history.model.hand.metadata_file)] = ordered(history.model.rows())
    found = connector_rows(tmp_path, list(expected))
    for (file, rows), read in zip(expected.items(), found, strict=True):
        assert ordered(read) == rows, file
