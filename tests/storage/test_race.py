"""The race check itself: processes that really compete, and a storage that must not pass it."""

from __future__ import annotations

import multiprocessing
import threading
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pytest

from lakebloom.errors import AlreadyExistsError, NotFoundError
from lakebloom.storage import open_storage

from .race import assert_single_winner, race_threads, run_writer

if TYPE_CHECKING:
    from pathlib import Path

    from lakebloom.storage import Buffer, Storage

NAMES = [f"log/{number:020}" for number in range(20)]


@pytest.mark.slow
def test_processes_on_local_disk_have_one_winner(tmp_path: Path) -> None:
    writers = 3
    context = multiprocessing.get_context("spawn")
    start = context.Barrier(writers)  # no process begins before the last one is up
    with ProcessPoolExecutor(writers, mp_context=context, initializer=start.wait, initargs=(60,)) as pool:
        won = pool.map(partial(run_writer, open_storage(tmp_path), names=NAMES), range(writers))
        assert_single_winner(open_storage(tmp_path), dict(enumerate(won)), NAMES)


@dataclass(frozen=True)
class CheckThenWrite:
    """What is often taken for put-if-absent: look whether the file exists, then rename over it."""

    inner: Storage
    looked: threading.Barrier

    def put_if_absent(self, path: str, data: Buffer) -> None:
        exists = self._exists(path)
        self.looked.wait(timeout=60)  # every writer has looked before any of them writes
        if exists:
            raise AlreadyExistsError(path)
        self.inner.write(path, data)

    def _exists(self, path: str) -> bool:
        try:
            self.inner.read(path)
        except NotFoundError:
            return False
        return True


def test_the_check_catches_an_unsafe_storage(tmp_path: Path) -> None:
    inner = open_storage(tmp_path)
    unsafe = CheckThenWrite(inner, threading.Barrier(2))
    won = race_threads(lambda: unsafe, writers=2, names=NAMES[:2])  # type: ignore[arg-type,return-value]
    with pytest.raises(AssertionError, match="has 2 winners"):
        assert_single_winner(inner, won, NAMES[:2])


def test_the_check_catches_a_name_without_winner(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="has 0 winners"):
        assert_single_winner(open_storage(tmp_path), {0: set(), 1: set()}, NAMES[:1])
