"""Errors: one paragraph on stderr, nothing on stdout, an exit code for each kind, no traceback."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lakebloom import errors
from lakebloom.cli.error_message import ErrorMessage
from lakebloom.cli.exit_codes import ExitCode, code_of
from tests.cli.running import ROOT, Cli, assert_golden

if TYPE_CHECKING:
    from pathlib import Path

    from tests.index.lake import Lake

CASES = {
    "no_index": (["show", "nope"], 3),
    "no_verb": (["frobnicate"], 2),
    "no_argument": (["delete"], 2),
    "no_option": (["list", "--colour"], 2),
    "bad_value": (["lookup", "i", "k = 1", "--limit", "0"], 2),
    "bad_pair": (["list", "--store-option", "region"], 2),
    "no_column": (["lookup", "i", "kk = 1"], 2),
    "bad_condition": (["candidates", "i", "k = 1 AND AND s = 'x'"], 2),
    "bad_literal": (["lookup", "i", "n = 1 OR k = 'one'"], 2),
    "bad_name": (["show", "a/b"], 2),
    "restored_twice": (["restore", "i"], 4),
    "no_file": (["inspect", "/no/such.parquet"], 3),
}


@pytest.mark.parametrize("name", CASES)
def test_errors_are_one_paragraph(cli: Cli, lake: Lake, name: str) -> None:
    arguments, code = CASES[name]
    done = cli(*arguments)
    assert (done.code, done.out) == (code, "")
    assert "Traceback" not in done.err
    assert_golden(done.err, f"error_{name}", location=lake.location)


def test_errors_as_json(cli: Cli) -> None:
    done = cli("lookup", "i", "k = ", "--output", "json")
    assert (done.code, done.out) == (2, "")
    assert done.error["code"] == "PREDICATE_SYNTAX"
    assert (done.error["text"], done.error["position"]) == ("k = ", 3)
    assert cli("lookup", "--output=json").error["code"] == "USAGE"


def test_deleted_and_damaged_indexes(cli: Cli, lake: Lake) -> None:
    assert cli("delete", "i").code == 0
    deleted = cli("lookup", "i", "k = 1")
    assert deleted.code == ExitCode.STATE
    assert "`lakebloom restore i`" in deleted.err
    assert cli("restore", "i").code == 0
    for tile in [path for path in lake.stored() if path.endswith(".tile")]:
        lake.catalog().index("i").storage.delete(tile)
    assert cli("verify", "i").code == ExitCode.DAMAGED
    assert cli("lookup", "i", "k = 1 OR s = 's1'").code == ExitCode.DAMAGED


def test_no_location(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, lake: Lake) -> None:
    bare = Cli(None, capsys)
    monkeypatch.delenv("LAKEBLOOM_LOCATION", raising=False)
    done = bare("list")
    assert done.code == ExitCode.USAGE
    assert "LAKEBLOOM_LOCATION" in done.err
    monkeypatch.setenv("LAKEBLOOM_LOCATION", lake.location)
    assert bare("show", "i").code == 0


def test_no_spark_is_said_before_anything_starts(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyspark.sql", None)
    done = cli("create", "j", str(tmp_path), "-c", "k")
    assert done.code == ExitCode.UNSUPPORTED
    assert "pip install 'lakebloom[spark]'" in done.err


def test_debug_shows_the_traceback(cli: Cli) -> None:
    done = cli("show", "nope", "--debug")
    assert done.code == 3
    assert done.err.startswith("Traceback")
    assert "IndexNotFoundError" in done.err


def test_what_nobody_foresaw_is_said_too(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: object) -> None:
        raise ZeroDivisionError("by zero\nand more")

    monkeypatch.setattr("lakebloom.lake.Lakebloom.indexes", broken)
    done = cli("list")
    assert done.code == ExitCode.UNEXPECTED
    assert done.err == (
        "error UNEXPECTED: this is a bug in lakebloom or in one of its libraries. Found: ZeroDivisionError: by zero. "
        "What to do: run the command again with --debug, and report what it prints.\n"
    )


def test_interruption(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("lakebloom.lake.Lakebloom.indexes", interrupted)
    assert cli("list").code == ExitCode.INTERRUPTED


@pytest.mark.parametrize("name", [name for name in errors.__all__ if name != "LakebloomError"])
def test_every_error_has_an_exit_code(name: str) -> None:
    assert code_of(getattr(errors, name)("tried")) is not ExitCode.UNEXPECTED


def test_every_exit_code_is_documented() -> None:
    page = (ROOT / "docs" / "CLI.md").read_text()
    for code in ExitCode:
        assert f"| {code.value} | {code.meaning} |" in page


def test_hints_name_commands() -> None:
    error = errors.IndexExistsError("x", hint="refresh_index('i') brings it up to date; delete_index frees the name")
    assert (
        ErrorMessage.of(error).hint == "`lakebloom refresh i` brings it up to date; `lakebloom delete` frees the name"
    )


def test_long_conditions_are_shown_around_the_place(cli: Cli) -> None:
    condition = " OR ".join([*[f"k = {number}" for number in range(50)], "k = oops", *["k = 1"] * 20])
    *_, text, arrow = cli("lookup", "i", condition).err.splitlines()
    assert len(text) < 80
    assert text[arrow.index("^") :].startswith("oops")
