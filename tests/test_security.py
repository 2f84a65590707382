"""docs/SECURITY.md is true: each promise names tests, and the tests are there."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1]
PAGE = (PROJECT / "docs/SECURITY.md").read_text()
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)))
PROMISES = [
    row for table in PAGE.split("| promise | test |\n|---|---|\n")[1:] for row in table.split("\n\n")[0].splitlines()
]


@pytest.mark.parametrize(("file", "name"), NAMED, ids=lambda text: text)
def test_each_named_test_exists(file: str, name: str) -> None:
    assert re.search(rf"^\s*def {name}\(", (PROJECT / file).read_text(), re.MULTILINE)


def test_each_promise_names_a_test() -> None:
    assert len(PROMISES) > 10
    assert [row for row in PROMISES if not re.search(r"\| `tests/[\w/]+\.py::\w+`", row)] == []


QUIET = """
    import sys
    opened = []
    sys.addaudithook(lambda event, _: opened.append(event) if event in {"socket.bind", "socket.listen"} else None)

    from pathlib import Path
    from lakebloom import col
    from lakebloom.cli.main import main
    from tests.index.lake import NAME, Lake

    lake = Lake(Path(sys.argv[1]), {"k": "bigint", "s": "string", "n": "int"})
    lake.fill(range(2))
    lake.create()
    assert lake.open().lookup(NAME, col("k") == 5).num_rows == 1
    assert main(["list", "--location", lake.location]) == 0
    assert opened == [], opened
"""


@pytest.mark.slow
def test_no_module_opens_a_port(tmp_path: Path) -> None:
    asked = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(QUIET), str(tmp_path)], capture_output=True, text=True, cwd=PROJECT
    )
    assert asked.returncode == 0, asked.stderr
    listens = re.compile(r"\.listen\(|\.bind\(|http\.server|socketserver|start_server|callback_server_started")
    sources = (PROJECT / "src/lakebloom").rglob("*.py")
    assert {path.relative_to(PROJECT).parts[2] for path in sources if listens.search(path.read_text())} == {"spark"}
