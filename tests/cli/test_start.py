"""Verbs that need no Spark never load it. How long they take, `make bench-start` measures."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

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


@pytest.mark.slow
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
