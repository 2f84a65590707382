"""The whole life of an index of a Delta or Iceberg table on the command line, with a real Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

pytest.importorskip("pyiceberg", reason="needs pyiceberg")

from tests.cli.running import Cli
from tests.tables.formats.delta.hand_table import HandTable as DeltaTable
from tests.tables.formats.delta.hand_table import field
from tests.tables.formats.iceberg.hand_table import HandTable as IcebergTable
from tests.tables.formats.iceberg.hand_table import column, with_id

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]
SCHEMA = pa.schema([with_id("k", pa.int64(), 1)])


def rows(*keys: int) -> pa.Table:
    return pa.table([pa.array(keys, pa.int64())], schema=SCHEMA)


class Delta:
    """Key 2 is deleted by a vector, key 3 is new."""

    def __init__(self, root: Path) -> None:
        self.table = DeltaTable(root, [field("k", "long")])
        self._first = self.table.add("a.parquet", rows(1, 2))
        self.before = self.table.commit(self._first, self.table.add("b.parquet", rows(5)))

    def change(self) -> None:
        table = self.table
        table.commit(table.remove(self._first), table.again(self._first, table.inline([1])))
        table.commit(table.add("c.parquet", rows(3)))


class Iceberg:
    """The same with position deletes."""

    def __init__(self, root: Path) -> None:
        self.table = IcebergTable(root, [column(1, "k", "long")])
        self._first = self.table.data(rows(1, 2))
        self.before = self.table.commit(self._first, self.table.data(rows(5)))

    def change(self) -> None:
        self.table.commit(self.table.positions({self._first.path: [1]}, self._first))
        self.table.commit(self.table.data(rows(3)))


@pytest.mark.parametrize("kind", [Delta, Iceberg])
def test_every_verb(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: type[Delta | Iceberg]
) -> None:
    name, source = kind.__name__.lower(), f"{kind.__name__.lower()}.`{tmp_path}/t`"
    table = kind(tmp_path / "t")
    cli = Cli(tmp_path / "indexes", capsys)

    def found(key: int, *more: str) -> int:
        number: int = cli("lookup", name, f"k = {key}", *more, "--output", "json").json["num_rows"]
        return number

    assert cli("create", name, source, "-c", "k", "--dry-run", "--output", "json").json["files"] == 2
    assert cli("create", name, source, "-c", "k", "--output", "json").json["files"] == 2
    table.change()
    assert [found(key) for key in (1, 2, 3)] == [1, 0, 1]
    assert [found(key, "--version", str(table.before)) for key in (1, 2, 3)] == [1, 1, 0]
    assert found(2, "--timestamp", "2100-01-01T00:00:00Z") == 0
    assert cli("status", "--fail-if-stale").code != 0
    assert cli("refresh", name, "--output", "json").json["files"] == 1
    assert cli("status", "--fail-if-stale").code == 0
    assert found(3, "--unindexed", "error") == 1
    candidates = cli("candidates", name, "k = 3", "--output", "json").json["candidates"]
    assert len(candidates) == 1
    assert cli("explain", name, "k = 3").code == 0
    assert cli("verify", name).code == 0
    assert "k" in cli("advise", source).out
    page = tmp_path / "page.html"
    assert cli("report", name, "--to", str(page)).code == 0
    assert name in page.read_text()
    plan = cli("erase-plan", name, "1", "2", "--output", "json").json
    assert (plan["format"], plan["rows"], plan["rows_hidden"]) == (name, 1, 1)
    assert cli("erase-plan", name, "2", "--check").code == 4
    assert cli("erase-plan", name, "77", "--check", "--output", "json").json["erased"] is True
    assert cli("optimize", name).code == 0
    assert [found(key) for key in (1, 2, 3)] == [1, 0, 1]
