"""The examples of the pages in docs/ run as they stand."""

from __future__ import annotations

import re
import subprocess
import sys
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest

from lakebloom import BloomIndexConfig, Lakebloom
from tests.storage.conftest import s3_endpoint, s3_options  # noqa: F401  (fixtures)
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


def pasted(page: str, directory: Path) -> str:
    """Paste a page into a fresh shell in an empty directory, as a newcomer does, and return what it prints.

    Nothing is defined but what the page defines.
    """
    text = "\n".join(python_blocks(ROOT / "docs" / page))
    shell = subprocess.run(
        [sys.executable, "-i", "-q"], input=text, cwd=directory, capture_output=True, text=True, timeout=600
    )
    assert "Traceback" not in shell.stderr, shell.stderr
    return shell.stdout


@pytest.mark.slow
def test_quickstart_can_be_pasted(tmp_path: Path) -> None:
    # The keys are random, and now and then a filter says perhaps for one that it does not hold.
    printed = pasted("QUICKSTART.md", tmp_path)
    assert re.search("3[6-9] of 40 files skipped", printed)
    assert re.search("[1-4] of 40 files read", printed)
    assert {path.name for path in tmp_path.iterdir()} == {"quickstart"}


@pytest.mark.slow
def test_sql_can_be_pasted(tmp_path: Path) -> None:
    printed = pasted("SQL.md", tmp_path)
    assert printed.count("by_user") >= 3
    assert re.search(r"path\|\n\+-+\+\n\|/", printed)  # a file that can hold the user


def test_object_stores(spark: SparkSession, tmp_path: Path, s3_options: dict[str, str]) -> None:  # noqa: F811
    with urllib.request.urlopen(urllib.request.Request(f"{s3_options['endpoint']}/lake", method="PUT")):
        lake = Lakebloom(spark, "s3://lake/indexes", options=s3_options)
    spark.range(100).selectExpr("concat('user-', id) AS user_id").write.parquet(str(tmp_path / "events"))
    lake.create_index(tmp_path / "events", BloomIndexConfig("by_user", ["user_id"]))
    names: dict[str, Any] = {"options": s3_options}
    for block in python_blocks(ROOT / "docs/OBJECT_STORES.md"):
        exec(compile(block, "OBJECT_STORES.md", "exec"), names)


RUN_ELSEWHERE = {
    "OPERATIONS.md": "tests/spark/test_operations.py",
    "LANCE.md": "tests/spark/test_lance.py",
    "DATA_SOURCE.md": "tests/spark/test_data_source.py",
}


def test_every_page_with_examples_is_run() -> None:
    here = (ROOT / "tests/spark/test_docs.py").read_text()
    for page in (ROOT / "docs").rglob("*.md"):
        if python_blocks(page):
            runner = ROOT / RUN_ELSEWHERE[page.name] if page.name in RUN_ELSEWHERE else None
            assert page.name in (here if runner is None else runner.read_text()), page
