"""create, refresh, explain and embed with a real Spark, and a real Ctrl-C."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np
import pytest

from lakebloom import Lakebloom
from tests.cli.running import Cli, process
from tests.spark.support import keys, write

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return keys(tmp_path / "t", range(1000), range(1000, 2000), range(2000, 3000))


@pytest.fixture
def cli(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Cli:
    """The command line, whose verbs take the session that is there."""
    return Cli(tmp_path / "indexes", capsys)


def test_the_price_tag_comes_first_and_is_honoured(cli: Cli, table: Path) -> None:
    create = ["create", "by_k", str(table), "-c", "k"]
    text = cli(*create, "--dry-run")
    assert text.out.splitlines()[-1] == "one key     skips 66.00% of 3 files if one holds it; 0.02 unnecessary reads"
    price = cli(*create, "--dry-run", "--output", "json").json
    assert (price["files"], price["units"], price["rows"], price["fpp"]) == (3, 3, 3000, 0.01)
    assert price["expected_skip"] == pytest.approx(2 / 3 * 0.99)
    assert cli("list").out == "(no indexes at this location)\n"  # a dry run builds nothing
    done = cli(*create)
    assert (done.code, done.err) == (0, text.out)
    built = cli("create", "again", *create[2:], "--output", "json").json
    assert built["price"] == {**price, "name": "again"}
    assert price["bytes_to_read"] == pytest.approx(built["bytes_read"], rel=0.2)
    twice = cli(*create)
    assert twice.code == 4
    assert "`lakebloom refresh by_k` brings it up to date" in twice.err
    keys(table, range(3000, 4000), first=3)
    refreshed = cli("refresh", "by_k")
    assert refreshed.code == 0
    assert "files          1" in refreshed.out
    everything = cli("refresh", "--all", "--output", "json").json
    assert [(report["name"], report["files"]) for report in everything] == [("again", 1), ("by_k", 0)]
    assert cli("refresh").code == cli("refresh", "by_k", "--all").code == 2


def test_an_index_is_replaced(cli: Cli, table: Path) -> None:
    assert cli("create", "by_k", str(table), "-c", "k").code == 0
    again = cli("create", "by_k", str(table), "-c", "k", "--fpp", "1e-5")
    assert (again.code, "--replace" in again.err) == (4, True)
    assert cli("create", "by_k", str(table), "-c", "k", "--replace", "--dry-run").code == 0
    assert cli("show", "by_k", "--output", "json").json["version"] == 1
    assert cli("create", "by_k", str(table), "-c", "k", "--fpp", "1e-5", "--replace").code == 0
    assert [entry["operation"] for entry in cli("history", "by_k", "--output", "json").json] == ["replace", "create"]
    assert cli("lookup", "by_k", "k = 1500", "--output", "json").json["num_rows"] == 1


def test_a_table_that_lost_its_files(cli: Cli, table: Path, tmp_path: Path) -> None:
    """One index of three is over a table that is gone: the others are refreshed, and the exit code says so."""
    other = keys(tmp_path / "u", range(10), range(10, 20))
    for name, path in (("a", table), ("gone", tmp_path / "u"), ("z", table)):
        assert cli("create", name, str(path), "-c", "k").code == 0
    keys(table, range(3000, 4000), first=3)
    for path in other.iterdir():
        path.unlink()
    run = cli("refresh", "--all")
    assert run.code == 4
    assert [line.split()[-1] for line in run.out.splitlines()[1:]] == ["committed", "TABLE_SHRUNK", "committed"]
    assert "the table has no files any more; the index has 2 in" in run.err
    assert "`lakebloom refresh gone --allow-shrink`" in run.err
    found = cli("refresh", "--all", "--output", "json")
    assert found.code == 4
    assert [(each["name"], each.get("error", {}).get("code")) for each in found.json] == [
        ("a", None), ("gone", "TABLE_SHRUNK"), ("z", None),
    ]  # fmt: skip
    (status,) = cli("status", "gone", "--output", "json").json
    assert (status["stale"], status["problem"]) == (True, "the table has no files any more; the index has 2")
    assert cli("refresh", "gone").code == 4
    assert cli("refresh", "gone", "--allow-shrink").code == 0
    quiet = cli("refresh", "gone")
    assert (quiet.code, quiet.out.splitlines()[-1]) == (0, "result   nothing to do: the index is up to date")
    assert cli("refresh", "--all").code == 0


def test_repair(cli: Cli, table: Path, tmp_path: Path) -> None:
    assert cli("create", "by_k", str(table), "-c", "k").code == 0
    sound = cli("repair", "by_k")
    assert (sound.code, sound.err) == (0, "nothing is damaged\n")
    log = Lakebloom(location=tmp_path / "indexes").catalog.index("by_k").log
    for without, left in (("--without-spark", True), (None, False)):
        (tmp_path / "indexes/by_k" / log.newest().segments[0].tiles[0].parts[0].file.path).write_bytes(b"damaged")
        assert cli("verify", "by_k").code == 5
        run = cli("repair", "by_k", *([without] if without else []))
        assert run.code == 0
        assert "dropped" in run.out
        assert ("built again" in run.out) != left
        assert ("build again what was dropped" in run.err) == left
        assert cli("verify", "by_k").code == 0
        assert cli("lookup", "by_k", "k = 1500", "--output", "json").json["rows"] == [{"k": 1500}]
        assert cli("refresh", "by_k").code == 0
    missing = cli("repair", "quite_another")
    assert (missing.code, missing.out) == (3, "")
    assert "`lakebloom list`" in missing.err


def test_errors_of_builds(cli: Cli, table: Path) -> None:
    no_column = cli("create", "i", str(table), "-c", "kk")
    no_table = cli("create", "i", f"{table}-missing", "-c", "k")
    other_format = cli("create", "i", f"{table}-missing", "-c", "k", "--format", "orc")
    no_rate = cli("create", "i", str(table), "-c", "k", "--fpp", "low")
    assert [no_column.code, no_table.code, other_format.code, no_rate.code] == [3, 3, 3, 2]
    assert "did you mean k?" in no_column.err
    assert "cannot read" in other_format.err
    for run in (no_column, no_table, other_format, no_rate):
        assert (run.out, run.err.count("\n")) == ("", 1)


def test_explain(cli: Cli, table: Path) -> None:
    assert cli("create", "by_k", str(table), "-c", "k").code == 0
    query = f"SELECT * FROM parquet.`{table}` WHERE k = 1500"
    (scan,) = cli("explain", query, "--output", "json").json["scans"]
    assert (scan["use"], scan["files"], scan["files_kept"]) == ("FULL", 3, 1)
    assert scan["indexes"][0]["name"] == "by_k"
    assert "2 of 3 files skipped; 1 file to read" in cli("explain", query).out
    wrong = cli("explain", "SELEKT 1")
    assert (wrong.code, wrong.out) == (2, "")
    assert "PARSE_SYNTAX_ERROR" in wrong.err


def test_advise(cli: Cli, table: Path) -> None:
    (advice,) = cli("advise", str(table), "--output", "json").json
    assert (advice["column"], advice["type"], advice["verdict"]) == ("k", "bigint", "no")
    text = cli("advise", str(table), "-c", "k")
    assert text.out.split()[:2] == ["column", "type"]
    assert "clustered" in text.out


def test_embed_a_directory(cli: Cli, tmp_path: Path) -> None:
    write(tmp_path / "bare/a.parquet", {"id": range(100)})
    assert cli("embed", str(tmp_path / "bare"), "-c", "id", "--output", "json").json["files"] == 1
    filters = cli("inspect", str(tmp_path / "bare/a.parquet"), "--output", "json").json["filters"]
    assert [found["column"] for found in filters] == ["id"]


@pytest.mark.spark
@pytest.mark.slow
def test_ctrl_c_leaves_nothing_half_done(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    for number in range(24):
        write(tmp_path / f"t/{number}.parquet", {"k": rng.integers(0, 1 << 60, 100_000)}, use_dictionary=False)
    place = ["--location", str(tmp_path / "indexes"), "--master", "local[1]"]
    with process("create", "by_k", str(tmp_path / "t"), "-c", "k", *place) as running:
        try:
            while not list(tmp_path.glob("indexes/by_k/segments/*/*")):  # one task of two has begun to write
                assert running.poll() is None, running.communicate()
                time.sleep(0.005)
            os.killpg(running.pid, signal.SIGINT)  # a terminal sends it to Spark's processes, too
            _, err = running.communicate(timeout=60)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)
    assert running.returncode == 130, err
    assert err.splitlines()[-1] == "error INTERRUPTED: stopped by Ctrl-C; no partial changes remain."
    assert "Traceback" not in err
    assert [path for path in tmp_path.glob("indexes/**/*") if path.is_file()] == []
    assert len(Lakebloom(location=tmp_path / "indexes").indexes()) == 0
