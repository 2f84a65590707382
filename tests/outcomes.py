"""A plugin of pytest that writes each outcome down as it comes: `-p tests.outcomes`, to the file LAKEBLOOM_OUTCOMES.

`tools/compat` reads it. What was written stays where the process ends before pytest does.
"""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

_OUT = os.open(os.environ["LAKEBLOOM_OUTCOMES"], os.O_WRONLY | os.O_APPEND)
"""Open from the start: a test may be without the right to open it."""


def _write(**facts: Any) -> None:
    os.write(_OUT, json.dumps(facts).encode() + b"\n")


def pytest_runtest_logstart(nodeid: str) -> None:
    _write(test=nodeid, outcome="started")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """A test has three reports: what failed or was skipped in any of them, and what passed where it ran."""
    if report.failed or report.skipped or report.when == "call":
        why = report.longrepr[2] if report.skipped and isinstance(report.longrepr, tuple) else ""
        outcome = "skipped" if report.skipped else report.outcome
        _write(test=report.nodeid, outcome=outcome, why=str(why).removeprefix("Skipped: "))


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        _write(test=report.nodeid, outcome="failed", why="it could not be imported")
    elif report.skipped and isinstance(report.longrepr, tuple):
        _write(test=report.nodeid, outcome="skipped", why=str(report.longrepr[2]).removeprefix("Skipped: "))


def pytest_sessionfinish() -> None:
    _write(test="", outcome="finished")
