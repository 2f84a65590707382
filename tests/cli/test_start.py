"""Verbs that need no Spark start within a second and never load it."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.cli.running import process
from tests.spark.processes import environment

if TYPE_CHECKING:
    from tests.index.lake import Lake

QUESTIONS = [
    ["list"],
    ["show", "i"],
    ["history", "i"],
    ["candidates", "i", "k = 1"],
    ["lookup", "i", "k = 1"],
    ["verify", "i"],
    ["optimize", "i"],
    ["delete", "i"],
    ["restore", "i"],
    ["vacuum", "i"],
    ["inspect", "<table>/f0.parquet"],
    ["report", "i", "-o", "<table>/../report.html", "--where", "k = 1"],
]


def test_no_question_loads_spark(lake: Lake) -> None:
    arguments = [[part.replace("<table>", str(lake.table)) for part in question] for question in QUESTIONS]
    program = (
        "import sys\nfrom lakebloom.cli.main import main\n"
        f"codes = [int(main([*question, '--location', {lake.location!r}])) for question in {arguments!r}]\n"
        "print(codes, 'pyspark' in sys.modules, 'numba' in sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    # verify hashes all values, with the compiled kernels if it likes.
    assert done.stderr.splitlines()[-1].startswith(f"{[0] * len(QUESTIONS)} False")


@pytest.mark.parametrize("question", [["list"], ["lookup", "i", "k = 1"]], ids=lambda question: question[0])
def test_questions_take_less_than_a_second(lake: Lake, question: list[str]) -> None:
    def seconds() -> float:
        before = os.times()
        with process(*question, "--location", lake.location) as running:
            running.communicate()
        assert running.returncode == 0
        after = os.times()
        return after.children_user + after.children_system - before.children_user - before.children_system

    # The machine may be busy: what counts is the processor's time, and the best of five.
    assert min(seconds() for _ in range(5)) < 1
