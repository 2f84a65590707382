"""The examples of the pages in docs/ that have no test of their own run as they stand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from lakebloom import BloomIndexConfig, Lakebloom
from tests.test_package import ROOT, python_blocks

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.fixture
def events(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table of 10,000 users in ten files, an index `by_user` over it in `indexes`, and this directory as ours."""
    users = spark.range(0, 10_000, 1, 10).selectExpr("concat('user-', id) AS user_id", "id AS amount")
    users.write.parquet(str(tmp_path / "events"))
    lake = Lakebloom(spark, tmp_path / "indexes")
    lake.create_index(tmp_path / "events", BloomIndexConfig("by_user", ["user_id"], global_filter=True))
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("events")
def test_lookups(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    for block in python_blocks(ROOT / "docs/LOOKUPS.md"):
        exec(compile(block, "LOOKUPS.md", "exec"), names)
    assert "200 rows to erase, in at most 10 files" in capsys.readouterr().out


@pytest.mark.usefixtures("events")
def test_joins(spark: SparkSession, tmp_path: Path) -> None:
    users = spark.createDataFrame([("user-7",), ("nobody",)], "user_id string")
    names: dict[str, Any] = {"lake": Lakebloom(spark, "indexes"), "users": users, "orders": users}
    names["events"] = spark.read.parquet(str(tmp_path / "events"))
    for block in python_blocks(ROOT / "docs/JOINS.md"):
        exec(compile(block, "JOINS.md", "exec"), names)
