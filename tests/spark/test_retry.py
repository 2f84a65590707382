"""Attempts that are lost and done again leave one truth, and orphans that a vacuum removes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.spark import processes

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.spark
@pytest.mark.slow
def test_retry(tmp_path: Path) -> None:
    found = processes.run("tests.spark.on_retry", str(tmp_path))
    for reader in ("parquet", "orc"):
        facts = found[reader]
        assert facts["one segment a group"], reader
        assert (facts["files"], facts["kept"], facts["same"]) == (6, 1, True), reader
        # The lost attempts had written as much as the others.
        assert facts["orphaned"] > 0, reader
        assert facts["vacuumed"] == facts["orphaned"], reader
        assert facts["left"] == 0, reader
    message, left = found["failed"]
    assert "ConnectionError: the executor is gone" in message
    assert left == []
