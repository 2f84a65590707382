"""Writers that are killed at any moment, several at once: the index answers as a full scan does, and nothing is lost.

``make fuzz`` goes on for ``MINUTES=``; ``make test`` kills a few.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from lakebloom import BloomIndexConfig
from lakebloom.errors import IndexNotFoundError, IndexStateError, LakebloomError
from tests.fuzz.stress import TYPES
from tests.index.lake import NAME, Lake, assert_answers, questions
from tests.spark.processes import environment

ROUNDS = int(os.environ.get("LAKEBLOOM_ROUNDS", "3"))
MINUTES = float(os.environ.get("LAKEBLOOM_MINUTES", "60"))
SEED = int(os.environ.get("LAKEBLOOM_SEED", "20240607"))
WRITERS = 3
CONFIG = BloomIndexConfig(NAME, ["k", "s", "n"], fpp=1e-4, granularity="row_group")
ROOT = Path(__file__).parents[2]
EXPECTED = {"INDEX_STATE", "COMMIT_CONFLICT", "STALE_INDEX", "NOT_FOUND", "CORRUPT_INDEX", "DATA_FILE", "NO_FILES"} | {
    "INDEX_NOT_FOUND"  # a vacuum came between deleting and restoring
}
"""What a writer may be told while others work: another was first, or removed what it was about to read."""


def killed_after(home: Path, seed: int, rng: random.Random) -> list[str]:
    """Let several writers work, kill each after some successes, in the middle of what it does next."""
    writers = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.fuzz.stress", str(home), str(seed * WRITERS + number)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=environment(),
        )
        for number in range(WRITERS)
    ]
    said: list[str] = []
    try:
        for writer in writers:
            assert writer.stdout is not None
            assert writer.stderr is not None
            for _ in range(rng.randrange(1, 12)):
                line = writer.stdout.readline()
                if not line:
                    raise AssertionError(writer.stderr.read()[-3000:])
                said.append(line.strip())
            writer.send_signal(signal.SIGKILL)
    finally:
        for writer in writers:
            with suppress(ProcessLookupError):
                writer.kill()
            writer.communicate()
    return said


def versions(lake: Lake) -> list[int]:
    return [record.version for record in lake.open().history(NAME)]


@pytest.mark.slow
def test_kills_and_rivals(tmp_path: Path) -> None:
    lake = Lake(tmp_path, TYPES)
    lake.fill(range(3))
    lake.create(CONFIG)
    rng = random.Random(SEED)
    newest = lake.entry().version
    started = time.monotonic()
    for number in range(ROUNDS):
        if time.monotonic() - started > 60 * MINUTES:
            break
        said = killed_after(tmp_path, number + 1, rng)
        codes = {line.partition(": ")[2] for line in said if ": " in line}
        assert codes <= EXPECTED, said
        try:
            lake.open().restore_index(NAME)  # killed between deleting and restoring
        except IndexStateError:
            pass
        except IndexNotFoundError:
            lake.create(CONFIG)  # removed by a vacuum; the numbers go on
        for hidden in lake.table.glob(".*"):
            hidden.unlink()
        stored = versions(lake)
        assert stored == sorted(set(stored)) or stored == sorted(set(stored), reverse=True)
        assert max(stored) >= newest, "no version goes back"
        newest = max(stored)
        assert_answers(lake, questions([5, 45, 1000 * 20 + 7]))
        report = lake.open().verify_index(NAME)
        assert not report.corrupt, report
        with suppress(LakebloomError):
            lake.refresh()
        assert_answers(lake, questions([5, 45]))
