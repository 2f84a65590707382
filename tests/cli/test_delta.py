"""The command line on a Delta table: lookups in a version, advice, candidates and status."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from tests.cli.running import Cli
from tests.index.delta_lake import DeltaIndexes
from tests.index.logged_lake import NAME
from tests.tables.formats.delta.hand_table import HandTable, field

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_a_delta_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = HandTable(tmp_path / "t", [field("k", "long")])
    first = table.add("a.parquet", pa.table({"k": pa.array([1, 2], pa.int64())}))
    table.commit(first)
    indexes = DeltaIndexes(tmp_path, tmp_path / "t")
    indexes.create("k")
    table.commit(table.remove(first), table.again(first, table.inline([0])))
    cli = Cli(indexes.location, capsys)
    assert cli("lookup", NAME, "k = 1", "--output", "json").json["rows"] == []
    assert cli("lookup", NAME, "k = 1", "--version", "1", "--output", "json").json["rows"] == [{"k": 1}]
    assert cli("lookup", NAME, "k = 1", "--version", "9").code != 0
    assert "time with a time zone" in cli("lookup", NAME, "k = 1", "--timestamp", "2024-01-01").err
    assert len(cli("candidates", NAME, "k = 1", "--output", "json").json["candidates"]) == 1
    assert cli("status", "--fail-if-stale").code == 0
    assert cli("verify", NAME).code == 0
    assert "k" in cli("advise", str(tmp_path / "t")).out
