"""Running the command line: in this process with its output captured, or as a process of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lakebloom.cli.main import main
from tests.spark.processes import environment

ROOT = Path(__file__).parents[2]
GOLDEN = Path(__file__).parent / "golden"
_TIME = re.compile(r"\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d(\.\d{3}\+00:00)?)?")
_READ = re.compile(r"bytes read [\d,]+( \([\d.]+ [kM]B\))?")


@dataclass(frozen=True)
class Run:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def error(self) -> dict[str, Any]:
        return json.loads(self.err)["error"]


class Cli:
    """The command line over the indexes of one place."""

    def __init__(self, location: str | Path | None, capsys: pytest.CaptureFixture[str]) -> None:
        self._location = location
        self._capsys = capsys

    def __call__(self, *arguments: str) -> Run:
        self._capsys.readouterr()
        place = [] if self._location is None else ["--location", str(self._location)]
        code = main([arguments[0], *place, *arguments[1:]])
        captured = self._capsys.readouterr()
        return Run(code, captured.out, captured.err)


def process(*arguments: str) -> subprocess.Popen[str]:
    """Start a command in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "lakebloom.cli.main", *arguments],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # a group of its own, as a command in a terminal has
    )


def assert_golden(text: str, name: str, **hidden: object) -> None:
    """Compare with a golden file; values that differ from run to run are replaced by their names first."""
    for what, value in hidden.items():
        text = text.replace(str(value), f"<{what}>")
    text = _READ.sub("bytes read <n>", _TIME.sub("<time>", text))
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("LAKEBLOOM_GOLDEN") == "write":
        path.write_text(text)
    assert text == path.read_text()
