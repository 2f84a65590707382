"""`make compat` runs every file of tests that needs Spark, and its page says what was run twice."""

from __future__ import annotations

import re
import runpy
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def compat(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """All names of the script, which finds its modules beside it."""
    monkeypatch.syspath_prepend(ROOT / "tools")
    return runpy.run_path(str(ROOT / "tools/compat"))


def test_every_file_with_spark_is_in_one_area(compat: dict[str, Any]) -> None:
    from compatibility.targets import ALL, LEFT_OUT

    files = Counter(compat["test_files"](ALL))
    assert [file for file, count in files.items() if count > 1] == []
    assert [file for file in files if not (ROOT / file).is_file()] == []
    found = {str(path.relative_to(ROOT)) for path in ROOT.glob("tests/**/test_*.py") if needs_spark(path)}
    assert found - files.keys() - set(LEFT_OUT) == set()


def needs_spark(path: Path) -> bool:
    return bool(path.is_relative_to(ROOT / "tests/spark") or re.search(r"spark: SparkSession[,)]", path.read_text()))


def test_the_page_says_what_was_run_twice(compat: dict[str, Any]) -> None:
    target, outcome_of = compat["TARGETS"][0], compat["Outcome"]
    first = outcome_of(target, {"tests/a.py::x": ("failed", "why"), "tests/b.py::y": ("passed", "")}, commit="1111111")
    text = compat["page"]([first], "17", 1.0)
    assert "| pyspark 3.5.9 | 1 | 1 | 0 |" in text
    assert "`tests/a.py::x` (why)" in text
    assert "once more" not in text
    first.replace(["tests/a.py"], outcome_of(target, {"tests/a.py::x": ("passed", "")}, commit="2222222"))
    text = compat["page"]([first], "17", 1.0)
    assert "| pyspark 3.5.9 | 2 | 0 | 0 |" in text
    assert "Commit 1111111" in text
    assert "- 3.5.9, commit 2222222: `tests/a.py`" in text
