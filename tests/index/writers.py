"""Writers that compete for one log, each in a process of its own. Imports little, because each process pays for it."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from lakebloom.errors import CommitConflictError
from lakebloom.storage import open_storage
from lakebloom.store.log import Log

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakebloom.store.records import Commit


def marked(base: Commit, writer: int) -> Commit:
    """Count one more commit of this writer, on top of all that others counted."""
    mark = f"writer {writer}"
    return msgspec.structs.replace(base, summary={**base.summary, mark: base.summary.get(mark, 0) + 1})


def run_writer(writer: int, uri: str, options: Mapping[str, str], commits: int) -> list[int]:
    """Commit so many times and return the versions that were this writer's. A typed conflict is tried again."""
    log = Log(open_storage(uri, options), "i")
    versions: list[int] = []
    while len(versions) < commits:
        try:
            entry = log.commit(partial(marked, writer=writer))
        except CommitConflictError:
            continue
        assert entry is not None
        versions.append(entry.version)
    return versions


def race(uri: str, options: Mapping[str, str], writers: int, commits: int) -> list[list[int]]:
    """What each of several processes committed. None begins before the last one is up."""
    context = multiprocessing.get_context("spawn")
    start = context.Barrier(writers)
    run = partial(run_writer, uri=uri, options=options, commits=commits)
    with ProcessPoolExecutor(writers, mp_context=context, initializer=start.wait, initargs=(120,)) as pool:
        return list(pool.map(run, range(writers)))
