"""What docs/OPERATIONS.md shows runs as it stands: Python, cron's commands as cron runs them, backup and removal."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lakebloom import BloomIndexConfig, Lakebloom
from lakebloom.errors import IndexNotFoundError
from tests.index.lake import Lake
from tests.spark.support import keys
from tests.test_package import ROOT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = ROOT / "docs/OPERATIONS.md"


def crontab() -> tuple[dict[str, str], list[str]]:
    """The environment that a crontab sets, and its commands."""
    (text,) = re.findall(r"```crontab\n(.*?)```", PAGE.read_text(), re.DOTALL)
    lines = text.splitlines()
    variables = [line for line in lines if re.match(r"\w+=", line)]
    commands = [line.split(None, 5)[5] for line in lines if line not in variables]
    return dict(line.split("=", 1) for line in variables), commands


@pytest.mark.slow
def test_cron_runs_the_commands(spark: SparkSession, tmp_path: Path) -> None:
    table = keys(tmp_path / "t", range(100))
    lake = Lakebloom(spark, tmp_path / "indexes")
    lake.create_index(table, BloomIndexConfig("events_by_user", ["k"]))
    keys(table, range(100, 200), first=1)
    variables, commands = crontab()
    real = {
        "/data/indexes": str(tmp_path / "indexes"),
        "/opt/lakebloom/bin/": f"{Path(sys.executable).parent}/",
        "/var/log/lakebloom.log": str(tmp_path / "lakebloom.log"),
    }

    def here(text: str) -> str:
        for shown, mine in real.items():
            text = text.replace(shown, mine)
        return text

    environment = {"HOME": str(tmp_path), **{name: here(value) for name, value in variables.items()}}
    java_home = os.environ.get("JAVA_HOME")
    if java_home:
        environment["JAVA_HOME"] = java_home
    for command in commands:
        assignments = [f"{name}={value}" for name, value in environment.items()]
        done = subprocess.run(
            ["env", "-i", *assignments, "/bin/sh", "-c", here(command)],
            capture_output=True, text=True, timeout=600, cwd=tmp_path,
        )  # fmt: skip
        assert (done.returncode, done.stdout) == (0, ""), (command, done.stderr)
        assert "Traceback" not in done.stderr
    assert '"files": 1' in (tmp_path / "lakebloom.log").read_text()
    assert lake.status("events_by_user")[0].lag == 0


def test_a_copy_is_an_index_anywhere(tmp_path: Path) -> None:
    lake = Lake(tmp_path, {"k": "bigint", "s": "string", "n": "int"})
    lake.fill(range(4))
    lake.create()
    copied = tmp_path / "elsewhere" / "deep"
    copied.parent.mkdir()
    (tmp_path / "indexes").rename(copied)
    restored = Lake(tmp_path, lake.types, str(copied))
    assert restored.open().verify_index("i").ok
    assert restored.open().lookup("i", "k = 25").num_rows == 1
    assert len(restored.open().candidates("i", "k = 25")) == 1
    lake.fill([4])
    assert restored.refresh().files == 1
    assert restored.indexed() == restored.uris()


def test_a_removal_leaves_nothing(tmp_path: Path) -> None:
    lake = Lake(tmp_path, {"k": "bigint", "s": "string", "n": "int"})
    lake.fill(range(4))
    lake.create()
    lake.fill([4])
    lake.refresh()
    before = {path: path.stat().st_mtime_ns for path in lake.table.iterdir()}
    assert lake.open().delete_index("i", force=True).operation == "remove"
    home = tmp_path / "indexes" / "i"
    left = [path for path in home.rglob("*") if path.is_file()]
    assert sorted(path.name for path in left) == ["00000000000000000003.json", "latest"]
    assert sum(path.stat().st_size for path in left) < 2000
    lake.vacuum()
    assert [path for path in home.rglob("*") if path.is_file()] == []
    with pytest.raises(IndexNotFoundError):
        lake.entry()
    assert {path: path.stat().st_mtime_ns for path in lake.table.iterdir()} == before, "the table is not touched"
