"""create, refresh, explain and embed with a real Spark, and a real Ctrl-C."""

from __future__ import annotations

import json
import signal
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from lakebloom import Lakebloom
from tests.cli.running import process
from tests.spark import processes
from tests.spark.support import write

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return processes.run("tests.cli.on_spark", str(tmp_path_factory.mktemp("verbs")))


pytestmark = pytest.mark.spark


def test_the_price_tag_comes_first_and_is_honoured(runs: dict[str, Any]) -> None:
    price, built = json.loads(runs["dry"]["out"]), json.loads(runs["create"]["out"])
    assert (price["files"], price["units"], price["rows"], price["fpp"]) == (3, 3, 3000, 0.01)
    assert price["expected_skip"] == pytest.approx(2 / 3 * 0.99)
    assert built["price"] == price
    assert price["bytes_to_read"] == pytest.approx(built["bytes_read"], rel=0.2)
    assert runs["dry_text"]["out"].splitlines()[-1] == (
        "one key     skips 66.00% of 3 files if one holds it; 0.02 read in vain"
    )


def test_a_dry_run_builds_nothing(runs: dict[str, Any]) -> None:
    assert runs["none_yet"]["out"] == "(no indexes here)\n"


def test_errors_of_builds(runs: dict[str, Any]) -> None:
    assert (runs["again"]["code"], runs["no_column"]["code"], runs["no_table"]["code"]) == (4, 3, 3)
    assert "`lakebloom refresh by_k` brings it up to date" in runs["again"]["err"]
    assert "did you mean k?" in runs["no_column"]["err"]
    for run in runs.values():
        assert "Traceback" not in run["err"]


def test_refresh(runs: dict[str, Any]) -> None:
    assert runs["refresh"]["code"] == 0
    assert "files          1" in runs["refresh"]["out"]


def test_explain(runs: dict[str, Any]) -> None:
    (scan,) = json.loads(runs["explain"]["out"])["scans"]
    assert (scan["use"], scan["files"], scan["files_kept"]) == ("FULL", 3, 1)
    assert scan["indexes"][0]["name"] == "by_k"
    assert (runs["no_sql"]["code"], runs["no_sql"]["out"]) == (2, "")
    assert "PARSE_SYNTAX_ERROR" in runs["no_sql"]["err"]


def test_advise(runs: dict[str, Any]) -> None:
    (advice,) = json.loads(runs["advise"]["out"])
    assert (advice["column"], advice["type"], advice["verdict"]) == ("k", "bigint", "no")
    assert "clustered" in advice["why"]


def test_embed_a_directory(runs: dict[str, Any]) -> None:
    assert json.loads(runs["embed"]["out"])["files"] == 1
    assert [f["column"] for f in json.loads(runs["inspect"]["out"])["filters"]] == ["id"]


@pytest.mark.slow
def test_ctrl_c_leaves_nothing_half_done(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    for number in range(40):
        write(tmp_path / f"t/{number}.parquet", {"k": rng.integers(0, 1 << 60, 100_000)}, use_dictionary=False)
    place = ["--location", str(tmp_path / "indexes"), "--master", "local[1]"]
    with process("create", "by_k", str(tmp_path / "t"), "-c", "k", *place) as running:
        try:
            while not list(tmp_path.glob("indexes/by_k/segments/*/*")):  # one task of two has begun to write
                assert running.poll() is None, running.communicate()
                time.sleep(0.005)
            running.send_signal(signal.SIGINT)
            _, err = running.communicate(timeout=60)
        finally:
            running.kill()
    assert running.returncode == 130
    assert err.splitlines()[-1] == "error INTERRUPTED: stopped by Ctrl-C; nothing is left half done."
    assert "Traceback" not in err
    assert [path for path in tmp_path.glob("indexes/**/*") if path.is_file()] == []
    assert len(Lakebloom(location=tmp_path / "indexes").indexes()) == 0
