"""A crash at every step of replacing a file leaves the old file or the new one, and nothing that a reader would see."""

from __future__ import annotations

import itertools
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from lakebloom.errors import StorageError
from lakebloom.parquet import embed
from lakebloom.storage.local.temporary import is_temporary
from tests.parquet.files import write
from tests.storage.faults import SimulatedCrash

STEPS = ("open", "copy_file_range", "fsync", "write", "fchown", "fchmod", "unlink", "replace", "close")


class Steps:
    """Counts the calls that change a disk; the one numbered ``fail_at`` fails, and for a crash all that follow."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, fail_at: int, failure: BaseException, *, dead: bool) -> None:
        self.done = 0
        self.failed = False
        self._fail_at, self._failure, self._dead = fail_at, failure, dead
        for name in STEPS:
            monkeypatch.setattr(os, name, self._counting(getattr(os, name), name))

    def _counting(self, call: Any, name: str) -> Any:
        def counted(*arguments: Any, **options: Any) -> Any:
            if name != "close":  # a dead process closes too
                self.done += 1
                if self.done == self._fail_at or (self._dead and self.failed):
                    self.failed = True
                    raise self._failure
            return call(*arguments, **options)

        return counted


@pytest.mark.slow
@pytest.mark.parametrize("dead", [True, False])
def test_every_step(tmp_path: Path, dead: bool) -> None:
    source = write(tmp_path / "source.parquet")
    before = source.read_bytes()
    embed(source, tmp_path / "target.parquet", ["text", "int64"])
    after = (tmp_path / "target.parquet").read_bytes()
    seen = set()
    for fail_at in itertools.count(1):
        folder = tmp_path / f"{fail_at}"
        folder.mkdir()
        path = folder / "a.parquet"
        path.write_bytes(before)
        failure = SimulatedCrash() if dead else OSError(28, "No space left on device")
        with pytest.MonkeyPatch.context() as patch:
            steps = Steps(patch, fail_at, failure, dead=dead)
            with suppress(SimulatedCrash, StorageError):
                embed(path, columns=["text", "int64"])
        content = path.read_bytes()
        assert content in (before, after)
        seen.add(content)
        left = [file.name for file in folder.iterdir() if file != path]
        assert all(map(is_temporary, left)), left
        if not steps.failed:
            break
    assert fail_at > 8
    assert seen == {before, after}
    assert content == after
    assert left == []
