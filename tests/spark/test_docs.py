"""Every page that shows code can be pasted into a fresh shell, in order, and nothing else is needed.

The pages are found, not listed: one that is new is tested. Where a page needs something else, such as a bucket, it says
so in bold, **Needs**, above its code, and `NEEDS` says how the test gives it.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.pasting import blocks
from tests.spark.processes import SHORT_LIVED
from tests.storage.conftest import s3_endpoint, s3_options_for  # noqa: F401  (a fixture)

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]
PAGES = {
    page.name: page
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    if "```" in page.read_text()
}
RUN = ("python", "sh")
LANGUAGES = {*RUN, "crontab", "json", "sql", "text", ""}
"""The others show what is not typed into a shell. Those of a crontab are run by test_operations."""


def _bucket(endpoint: str) -> dict[str, str]:
    with urllib.request.urlopen(urllib.request.Request(f"{endpoint}/lake", method="PUT")):
        options = s3_options_for(endpoint)
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": options["access_key_id"],
        "AWS_SECRET_ACCESS_KEY": options["secret_access_key"],
        "AWS_ALLOW_HTTP": "true",
    }


NEEDS: dict[str, Callable[[str], dict[str, str]]] = {"OBJECT_STORES.md": _bucket}
"""What pages say they need, as an environment: a server of the tests is no part of the page."""


OWN = {
    "README.md": {"spark-warehouse", "spark-warehouse-lakebloom"},
    "CONTRIBUTING.md": set[str](),
    "DATA_SOURCE.md": {"source"},
    "FILTERS.md": {"bare.parquet", "file.parquet"},
    "LANCE.md": {"users", "users-indexes", "users.lance"},
    "OBJECT_STORES.md": {"stores"},
}
"""What a page writes in the reader's directory, where that is not a folder of the page's own name."""


def environment(**further: str) -> dict[str, str]:
    """That of someone who has activated the virtual environment, and has nothing set for Spark."""
    found = {key: value for key, value in os.environ.items() if not key.startswith(("PYSPARK_", "PYTHON", "LAKEBLOOM"))}
    return {**found, "PATH": f"{Path(sys.executable).parent}:{found['PATH']}", **further}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty directory."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def pasted(home: Path, s3_endpoint: str) -> dict[str, dict[str, Any]]:  # noqa: F811
    """What all pages with code print, each in shells of its own."""
    pages = [page for page in PAGES.values() if blocks(page, *RUN)]
    needed = {key: value for page in pages for key, value in _needed(page, s3_endpoint).items()}
    done = subprocess.run(
        [sys.executable, ROOT / "tests/pasting.py", *pages],
        cwd=home,
        env=environment(**needed, **SHORT_LIVED),
        capture_output=True,
        text=True,
        timeout=1200,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    return {Path(page).name: outcome for page, outcome in json.loads(done.stdout).items()}


def _needed(page: Path, endpoint: str) -> dict[str, str]:
    assert ("**Needs** " in page.read_text()) == (page.name in NEEDS), f"{page.name}: what it needs is not in NEEDS"
    return NEEDS[page.name](endpoint) if page.name in NEEDS else {}


@pytest.mark.parametrize("page", [page.name for page in PAGES.values() if blocks(page, *RUN)])
def test_a_page_can_be_pasted(pasted: dict[str, dict[str, Any]], page: str) -> None:
    assert pasted[page]["error"] is None
    assert "Warning" not in (pasted[page]["said"] or "")


def test_pages_keep_their_promises(pasted: dict[str, dict[str, Any]], home: Path) -> None:
    printed = {page: outcome["printed"] or "" for page, outcome in pasted.items()}
    # Keys are random, and now and then a filter says perhaps for one that it does not hold.
    assert re.search("3[6-9] of 40 files skipped", printed["QUICKSTART.md"])
    assert printed["SQL.md"].count("by_user") >= 3
    assert re.search(r"path\|\n\+-+\+\n\|/", printed["SQL.md"])  # a file that can hold the user
    assert "200 rows to erase, in at most 10 files" in printed["LOOKUPS.md"]
    shown = (ROOT / "README.md").read_text()
    explained = re.search(r"^spark_catalog.default.events: .*?\n\n?(?=\S|\Z)", printed["README.md"], re.S | re.M)
    assert explained is not None, printed["README.md"]
    for line in explained[0].splitlines()[1:]:
        if "#" not in line and "read" not in line:  # sizes and the order of files differ between machines
            assert line in shown
    folders = {path.name for path in home.iterdir()}
    assert {"quickstart", "sql", "lookups", "joins", "source", "stores", "cli", "operations"} <= folders
    assert not (home / "operations/indexes").exists()  # the page ends with their removal


def test_pages_write_into_their_own_folders_only(pasted: dict[str, dict[str, Any]]) -> None:
    for page, outcome in pasted.items():
        assert {*outcome["wrote"]} <= OWN.get(page, {Path(page).stem.lower()}), page


def test_code_says_what_it_is() -> None:
    for page in PAGES.values():
        fences = [line.removeprefix("```").strip() for line in page.read_text().splitlines() if line.startswith("```")]
        assert {*fences[::2]} <= LANGUAGES, page
        assert not any(fences[1::2]), f"{page}: a block that does not end"
        quiet = [text for _, text in blocks(page, "") if re.search(r"^(import|from) \w|^lakebloom \w", text, re.M)]
        assert not quiet, f"{page}: code that nobody runs: {quiet[0]}"


def test_a_page_that_cannot_be_pasted_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nfor i in range(3):\n    print(i)\nprint('end')\n```\n```python\nprint(1 / 0)\n```\n")
    unknown = tmp_path / "unknown.md"
    unknown.write_text("```python\nx = 1\n```\n```python\nprint(x, spark)\n```\n")
    done = subprocess.run(
        [sys.executable, ROOT / "tests/pasting.py", page, unknown], capture_output=True, text=True, check=True
    )
    first, second = json.loads(done.stdout).values()
    assert "SyntaxError" in first["error"]  # the loop needs an empty line behind it
    assert "NameError" in second["error"]
    assert "spark" in second["error"]
