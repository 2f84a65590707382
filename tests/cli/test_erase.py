"""erase-plan on the command line: keys from everywhere, text, JSON and a page, and exit codes."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakebloom.cli.exit_codes import ExitCode
from tests.cli.running import ROOT, Cli, assert_golden
from tests.index.delta_lake import DeltaIndexes
from tests.index.logged_lake import NAME
from tests.tables.formats.delta.hand_table import HandTable, field

if TYPE_CHECKING:
    from pathlib import Path


DOCUMENTED = set(
    re.findall(
        r"`(\w+)`",
        re.sub(r"\([^)]*\)", "", (ROOT / "docs/CLI.md").read_text().split("| `erase-plan` | `name`")[1].split("\n")[0]),
    )
)
CHECKED = {"erased", "evidence", "leftover_files"}
KEYS = DOCUMENTED - CHECKED | {"name"}


@pytest.fixture
def table(tmp_path: Path) -> HandTable:
    """Two files with texts, of which one row is deleted in the newest version."""
    made = HandTable(tmp_path / "t", [field("k", "string")])
    first = made.add("a.parquet", pa.table({"k": ["007", "7", "x"]}))
    made.commit(first, made.add("b.parquet", pa.table({"k": ["7", "y"]})))
    DeltaIndexes(tmp_path, tmp_path / "t").create("k")
    made.commit(made.remove(first), made.again(first, made.inline([0])))
    return made


@pytest.fixture
def cli(tmp_path: Path, table: HandTable, capsys: pytest.CaptureFixture[str]) -> Cli:
    return Cli(tmp_path / "indexes", capsys)


def test_text_and_json_of_a_plan(cli: Cli, tmp_path: Path) -> None:
    run = cli("erase-plan", NAME, "007", "7")
    assert run.code == 0
    # Paths are of different lengths: columns are not compared by their widths, and times not at all.
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", "<time>", run.out.replace(str(tmp_path), "<home>"))
    assert_golden(re.sub(r"  +", "  ", text), "erase_plan")
    assert cli("erase-plan", NAME, "7", "--output", "json").json.keys() == KEYS
    assert cli("erase-plan", NAME, "7", "--check", "--output", "json").json.keys() == KEYS | CHECKED
    data = cli("erase-plan", NAME, "007", "7", "--output", "json").json
    assert (data["rows"], data["rows_hidden"], data["keys"], data["keys_found"]) == (2, 1, 2, 1)
    assert [file["rows"] for file in data["held_by"]] == [1, 1]
    assert [(each["first_version"], each["rows"]) for each in data["snapshots"]] == [(2, 2), (1, 3)]
    assert data["steps"][0]["statement"].startswith("DELETE FROM delta.`")


def test_keys_from_files(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ids.txt").write_text("7\r\n\n007\n")
    (tmp_path / "ids.csv").write_text('id,user\n1,007\n2,"7"\n')
    pq.write_table(pa.table({"user": ["7", "007"], "id": [1, 2]}), tmp_path / "ids.parquet")
    with pa.ipc.new_file(str(tmp_path / "ids.arrow"), pa.schema({"user": pa.string()})) as writer:
        writer.write_table(pa.table({"user": ["7", "007"]}))
    for arguments in (
        ("--keys-from", str(tmp_path / "ids.txt")),
        ("007", "--keys-from", str(tmp_path / "ids.txt")),
        ("--keys-from", str(tmp_path / "ids.csv"), "--keys-column", "user"),
        ("--keys-from", str(tmp_path / "ids.parquet"), "--keys-column", "user"),
        ("--keys-from", str(tmp_path / "ids.arrow")),
    ):
        assert cli("erase-plan", NAME, *arguments, "--output", "json").json["rows"] == 2
    monkeypatch.setattr("sys.stdin", io.StringIO("7\n"))
    assert cli("erase-plan", NAME, "--keys-from", "-", "--output", "json").json["keys"] == 1


def test_what_is_refused(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "ids.csv").write_text("id,user\n1,7\n")
    (tmp_path / "broken.parquet").write_bytes(b"no Parquet")
    (tmp_path / "binary.txt").write_bytes(b"\xff\xfe\xfd")
    cases = [
        ((), ExitCode.USAGE, "at least one key"),
        (("--keys-from", str(tmp_path / "none.txt")), ExitCode.NOT_FOUND, "cannot read keys"),
        (("--keys-from", str(tmp_path / "binary.txt")), ExitCode.STORAGE, "cannot read keys"),
        (("--keys-from", str(tmp_path / "broken.parquet")), ExitCode.STORAGE, "cannot read keys"),
        (("--keys-from", str(tmp_path / "ids.csv")), ExitCode.USAGE, "--keys-column"),
        (("--keys-from", str(tmp_path / "ids.csv"), "--keys-column", "x"), ExitCode.USAGE, "no single column x"),
        (("7", "--keys-from", str(tmp_path / "ids.csv"), "--keys-column", "id"), ExitCode.USAGE, "not both"),
        (("7", "--keys-column", "id"), ExitCode.USAGE, "--keys-column"),
        (("7", "--column", "m"), ExitCode.NOT_FOUND, "m"),
    ]
    for arguments, code, words in cases:
        run = cli("erase-plan", NAME, *arguments)
        assert (run.code, words in run.err) == (code, True), run.err
    assert cli("erase-plan", "none", "7").code == ExitCode.NOT_FOUND


def test_a_check_and_its_exit_code(cli: Cli, tmp_path: Path) -> None:
    assert cli("erase-plan", NAME, "7", "--check").code == ExitCode.STATE
    assert cli("erase-plan", NAME, "007", "--check", "--evidence", "index").code == ExitCode.STATE
    run = cli("erase-plan", NAME, "8", "--check", "--output", "json")
    assert run.code == ExitCode.OK
    assert run.json["erased"] is True
    assert run.json["evidence"] == "data"
    assert run.json["files_read"] == 2


def test_keys_in_a_file_and_a_page(cli: Cli, tmp_path: Path) -> None:
    keys, page = tmp_path / "keys.parquet", tmp_path / "page.html"
    odd = "it's <b>\\"
    run = cli("erase-plan", NAME, "7", odd, "--write-keys", str(keys), "--page", str(page), "--output", "json")
    assert sorted(pq.read_table(keys)["key"].to_pylist()) == sorted(["7", odd])
    assert str(keys) in run.json["steps"][0]["statement"]
    assert run.json["steps"][0]["statement"].count("MERGE INTO") == 1
    text = page.read_text()
    assert 'data-fact="Rows" data-value="2"' in text
    assert "<script" not in text
    assert cli("erase-plan", NAME, "7", "--page", str(tmp_path / "no" / "page.html")).code == ExitCode.STORAGE
