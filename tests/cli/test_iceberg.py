"""The command line on an Iceberg table: lookups in a snapshot, advice, candidates and status."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from tests.cli.running import Cli
from tests.index.iceberg_lake import IcebergIndexes
from tests.index.logged_lake import NAME
from tests.tables.formats.iceberg.hand_table import HandTable, column, with_id

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.slow
def test_an_iceberg_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = HandTable(tmp_path / "t", [column(1, "k", "long")])
    schema = pa.schema([with_id("k", pa.int64(), 1)])
    file = table.data(pa.table([[1, 2]], schema=schema))
    first = table.commit(file)
    indexes = IcebergIndexes(tmp_path, tmp_path / "t")
    indexes.create("k")
    table.commit(table.positions({file.path: [0]}, file))
    cli = Cli(indexes.location, capsys)
    assert cli("lookup", NAME, "k = 1", "--output", "json").json["rows"] == []
    assert cli("lookup", NAME, "k = 1", "--version", str(first), "--output", "json").json["rows"] == [{"k": 1}]
    assert "no snapshot 9" in cli("lookup", NAME, "k = 1", "--version", "9").err
    assert len(cli("candidates", NAME, "k = 1", "--output", "json").json["candidates"]) == 1
    assert cli("status", "--fail-if-stale").code == 0
    assert cli("verify", NAME).code == 0
    assert cli("report", NAME, "--to", str(tmp_path / "page.html")).code == 0
    for source in (str(tmp_path / "t"), str(table.metadata_file), f"iceberg.`{tmp_path / 't'}`"):
        assert "k" in cli("advise", source).out
    table.commit(table.data(pa.table([[3]], schema=schema)))
    assert cli("status", "--fail-if-stale").code != 0
