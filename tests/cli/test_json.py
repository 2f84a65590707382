"""What programs get: the API's own numbers, under keys that stay."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from lakebloom import col
from tests.cli.running import ROOT

if TYPE_CHECKING:
    from tests.cli.running import Cli
    from tests.index.lake import Lake


def as_json(value: object) -> object:
    return json.loads(json.dumps(value))


def test_records_are_those_of_the_api(cli: Cli, lake: Lake) -> None:
    api = lake.open()
    assert cli("list", "--output", "json").json == [as_json(asdict(api.index("i")))]
    assert cli("show", "i", "--output", "json").json == as_json(asdict(api.index("i")))
    assert cli("history", "i", "--output=json").json == [as_json(asdict(record)) for record in api.history("i")]


def test_questions_are_answered_as_by_the_api(cli: Cli, lake: Lake) -> None:
    api = lake.open()
    found = cli("candidates", "i", "k = 25", "--output", "json").json
    assert found == {"units": 6, "candidates": api.candidates("i", col("k") == 25).to_pylist()}
    assert len(found["candidates"]) == 1
    rows = cli("lookup", "i", "k IN (1, 59)", "--output", "json").json
    assert rows == {
        "rows": [{"k": 1, "s": "s1", "n": 1}, {"k": 59, "s": "s59", "n": 2}],
        "num_rows": 2,
        "limited": False,
    }
    limited = cli("lookup", "i", "k < 50", "--limit", "3", "--output", "json").json
    assert (limited["num_rows"], len(limited["rows"]), limited["limited"]) == (3, 3, True)


def test_upkeep(cli: Cli, lake: Lake) -> None:
    assert cli("verify", "i", "--output", "json").json["ok"] is True
    assert cli("delete", "i", "--output", "json").json["operation"] == "delete"
    assert cli("list", "--output", "json").json[0]["state"] == "deleted"
    assert cli("restore", "i", "--output", "json").json == {
        "name": "i", "version": 3, "operation": "restore", "committed": True, "segments": 3,
    }  # fmt: skip


def test_keys_are_documented(cli: Cli, lake: Lake) -> None:
    page = (ROOT / "docs" / "CLI.md").read_text()
    shown = [
        cli(*arguments, "--output", "json").json
        for arguments in (["show", "i"], ["verify", "i"], ["candidates", "i", "k = 1"], ["lookup", "i", "k = 1"])
    ]
    shown += [cli("inspect", str(lake.table / "f0.parquet"), "--output", "json").json]
    for keys in shown:
        assert all(f"`{key}`" in page for key in keys), keys


def test_status_is_for_monitoring(cli: Cli, lake: Lake) -> None:
    (status,) = cli("status", "--output", "json").json
    assert (status["name"], status["coverage"], status["lag"], status["stale"]) == ("i", 1.0, 0, False)
    assert (status["refreshed_ms"], status["segments"]) == (lake.entry().timestamp_ms, len(lake.entry().segments))
    assert (status["size_bytes"] > 1000, 0 < status["fpp_measured"] < 0.1) == (True, True)
    head, row = cli("status").out.splitlines()
    assert all(name in head for name in ("coverage", "new", "segments", "size", "measured rate", "refreshed"))
    assert ("kB" in row, "+00:00" in row) == (True, True)
    assert cli("status", "--fail-if-stale").code == 0
    lake.fill([7, 8])
    assert cli("status").code == 0
    stale = cli("status", "i", "--fail-if-stale")
    assert stale.code == 4
    assert "a refresh is due: i" in stale.err
    assert cli("status", "--fail-if-stale", "--max-lag", "2").code == 0
    assert cli("status", "nothing").code == 3
