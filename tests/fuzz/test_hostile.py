"""A stranger's index, table and filters: a typed error or an answer, in bounded memory and time.

``make fuzz`` asks 10,000 cases (``MINUTES=`` bounds it); a failure prints the seed, number and kind of its case.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.processes import environment

pytest.importorskip("lance", reason="part of the cases are Lance files")
pytestmark = pytest.mark.slow

CASES = int(os.environ.get("LAKEBLOOM_HOSTILE", "300"))
MINUTES = float(os.environ.get("LAKEBLOOM_MINUTES", "60"))
SEED = int(os.environ.get("LAKEBLOOM_SEED", "20240607"))
ROOT = Path(__file__).parents[2]


def test_hostile_files(tmp_path: Path) -> None:
    home = tmp_path / "home"
    command = [sys.executable, "-m", "tests.fuzz.hostile", str(home), str(SEED), str(CASES), str(MINUTES)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment(), check=False)
    if done.returncode not in (0, 1) or not done.stdout:
        case = (home / "case").read_text() if (home / "case").exists() else "none"
        pytest.fail(f"the process ended with {done.returncode} in case {case}:\n{done.stderr[-2000:]}")
    found = json.loads(done.stdout)
    assert not found["failures"], "\n\n".join(found["failures"])
    assert sum(found["done"].values()) > 0
