"""What people see, word for word."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakebloom.display.tables import sized
from lakebloom.parquet import embed
from tests.cli.running import Cli, assert_golden

if TYPE_CHECKING:
    from pathlib import Path

    from tests.index.lake import Lake


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("list", ["list"]),
        ("show", ["show", "i"]),
        ("history", ["history", "i"]),
        ("candidates", ["candidates", "i", "k = 25 OR s = 's41'"]),
        ("candidates_none", ["candidates", "i", "k = 1000"]),
        ("lookup", ["lookup", "i", "K IN (3, 45) AND n IS NOT NULL OR k = 10"]),
        ("lookup_none", ["lookup", "i", "k = 1000"]),
        ("lookup_limited", ["lookup", "i", "k BETWEEN 5 AND 20", "--columns", "s,k", "--limit", "2"]),
        ("explain", ["explain", "i", "k = 25 AND n > 3"]),
        ("explain_or", ["explain", "i", "k = 25 OR n > 3"]),
        ("verify", ["verify", "i"]),
        ("optimize", ["optimize", "i"]),
        ("delete", ["delete", "i"]),
        ("vacuum", ["vacuum", "i"]),
    ],
)
def test_verbs_print(cli: Cli, lake: Lake, name: str, arguments: list[str]) -> None:
    done = cli(*arguments)
    assert done.code == 0
    sizes = {
        "size": sized(lake.open().index("i").size_bytes),
        "source_size": sized(lake.open().index("i").source_bytes),
    }
    text = re.sub(r"[\d.]+ kB +[\d.]+%", "<size> <share>", f"{done.out}--- stderr\n{done.err}")
    if name.startswith("explain"):
        text = re.sub(r"[\d.]+ (kB|bytes) read|\([^()]*B\)", "<size>", text)
    if name == "candidates":
        text = re.sub(" +", " ", text)  # as wide as the paths of the day
    assert_golden(text, name, table=lake.table, **sizes)


def test_nothing_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = Cli(tmp_path, capsys)("list")
    assert (done.code, done.out) == (0, "(no indexes at this location)\n")


@pytest.mark.slow
def test_inspect_shows_filters_against_dictionaries(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    columns = {"user": [f"user-{i % 500}" for i in range(2000)], "id": range(2000), "x": [0.5] * 2000}
    pq.write_table(pa.table(columns), path, row_group_size=1000, use_dictionary=["user"], compression="none")
    embed(path, columns=["user", "id"])
    done = cli("inspect", str(path))
    assert done.code == 0
    assert_golden(
        re.sub(r"by parquet-cpp.*", "by <writer>", f"{done.out}--- stderr\n{done.err}"), "inspect", home=tmp_path
    )
    only = cli("inspect", str(path), "--column", "id")
    assert "user" not in only.out + only.err


def test_embed_says_what_it_did(cli: Cli, tmp_path: Path) -> None:
    path, target = tmp_path / "a.parquet", tmp_path / "b.parquet"
    pq.write_table(pa.table({"id": range(100)}), path)
    before = path.read_bytes()
    done = cli("embed", str(path), "-c", "id", "--target", str(target))
    assert done.code == 0
    assert re.search(r"^filters +1$", done.out, re.MULTILINE)
    assert path.read_bytes() == before
    assert "id" in cli("inspect", str(target)).out


@pytest.mark.parametrize("arguments", [["--help"], ["create", "--help"], ["lookup", "-h"]])
def test_help_has_examples(cli: Cli, capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    from lakebloom.cli.main import main

    assert main(arguments) == 0
    shown = capsys.readouterr().out
    assert "docs/CLI.md" in shown if arguments == ["--help"] else re.search(r"Examples:\s+lakebloom", shown)


def test_every_verb_of_the_design_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    from lakebloom.cli.main import main

    assert main(["--help"]) == 0
    listed = set(re.findall(r"^[│ ]+(\w+) ", capsys.readouterr().out, re.MULTILINE))
    verbs = "create refresh optimize delete restore vacuum status verify list show history lookup explain inspect embed"
    assert {*verbs.split(), "demo", "report", "advise", "candidates"} <= listed


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    from lakebloom import __version__
    from lakebloom.cli.main import main

    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"lakebloom {__version__}\n"
