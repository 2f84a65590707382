"""After a fork: an object store that the parent has used is an error at once, local disk goes on."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import traceback
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lakebloom import col, locks
from tests.index.lake import NAME, Lake

from .conftest import BUCKET

if TYPE_CHECKING:
    from collections.abc import Callable

PROJECT = Path(__file__).parents[2]
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")

# In a process of its own: the parent's other threads must not be those of a whole test run.
CHILDREN = """
    import os, signal, sys, threading
    from lakebloom.errors import StorageError
    from lakebloom.storage import open_storage

    location, options = sys.argv[1], dict(pair.split("=", 1) for pair in sys.argv[2:])
    before = os.fork()  # a fork before the first use may use it
    storage = open_storage(location, options)
    storage.write(f"a{before > 0}", b"1")
    assert bytes(storage.read(f"a{before > 0}")) == b"1"
    if before == 0:
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(before, 0)[1]) == 0

    calls = [
        lambda opened: opened.read("aTrue"),
        lambda opened: opened.read_ranges("aTrue", [(0, 1)]),
        lambda opened: list(opened.list("")),
        lambda opened: opened.write("b", b"2"),
        lambda opened: opened.put_if_absent("c", b"3"),
        lambda opened: opened.delete("aTrue"),
    ]
    after = os.fork()
    if after == 0:
        try:
            for opened in (storage, open_storage(location, options)):
                for call in calls:
                    try:
                        call(opened)
                    except StorageError as error:
                        assert "forked" in str(error) and "spawn" in error.hint, error
                    else:
                        raise AssertionError("a call that should have been refused")
        except BaseException as error:
            os.write(2, repr(error).encode())
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(after, 0)[1]) == 0
    assert bytes(storage.read("aTrue")) == b"1"
    print("done")
"""


@pytest.mark.slow
@needs_fork
def test_a_child_of_a_process_that_used_an_object_store_is_told_so(s3_options: dict[str, str]) -> None:
    options = [f"{key}={value}" for key, value in s3_options.items()]
    command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(CHILDREN), f"s3://{BUCKET}/forks", *options]
    asked = subprocess.run(command, capture_output=True, text=True, cwd=PROJECT)
    assert (asked.returncode, asked.stdout.strip()) == (0, "done"), asked.stderr


def in_child(check: Callable[[], None]) -> int:
    """Run a check in a fork and return its exit code."""
    child = os.fork()
    if child == 0:
        try:
            check()
        except BaseException:
            os.write(2, traceback.format_exc().encode())
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@needs_fork
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_what_keeps_rows_and_pools_works_in_a_child(tmp_path: Path) -> None:
    from lakebloom.index.threads import pool
    from lakebloom.store import kept_pieces

    assert list(pool(2).map(abs, [-1])) == [1]

    def check() -> None:
        assert list(pool(2).map(abs, [-1, -2, -3])) == [1, 2, 3]
        assert not kept_pieces._LIMIT.lock.locked()
        kept_pieces.KeptPieces((0, 0, 0, 0, 0), 4, 32)

    with kept_pieces._LIMIT.lock:  # as if another thread were keeping a piece at the moment of the fork
        assert in_child(check) == 0


@pytest.mark.slow
@needs_fork
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_child_looks_up_while_a_thread_of_its_parent_lists(tmp_path: Path) -> None:
    lake = Lake(tmp_path, {"k": "bigint", "s": "string", "n": "int"})
    lake.fill(range(2))
    lake.create()
    opened = lake.open()
    assert opened.lookup(NAME, col("k") == 5).num_rows == 1

    def check() -> None:
        assert opened.lookup(NAME, col("k") == 6).num_rows == 1

    with ExitStack() as held:
        for lock in list(locks._made):
            held.enter_context(lock)
        assert in_child(check) == 0


def test_shared_state_has_locks_that_a_fork_opens() -> None:
    folders = [Path(locks.__file__).parent / name for name in ("display", "index", "storage", "store", "tables")]
    sources = (path for folder in folders for path in folder.rglob("*.py"))
    assert [path.name for path in sources if "threading.Lock()" in path.read_text()] == []
