"""Thread pools for work that waits for files or runs outside of Python, shared by all queries."""

from __future__ import annotations

import os
import weakref
from typing import TYPE_CHECKING

from lakebloom.locks import new_lock

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

__all__ = ["CORES", "closed", "opened", "pool"]

CORES = os.cpu_count() or 1


_pools: dict[int, ThreadPoolExecutor] = {}
_users: weakref.WeakSet[object] = weakref.WeakSet()
_lock = new_lock()


def pool(workers: int) -> ThreadPoolExecutor:
    """Return a pool of this many threads. Tasks must not submit to this pool and wait: that deadlocks."""
    with _lock:
        if workers not in _pools:
            from concurrent.futures import ThreadPoolExecutor  # here and not above: a lookup of one file needs none

            _pools[workers] = ThreadPoolExecutor(workers, thread_name_prefix="lakebloom")
        return _pools[workers]


def opened(user: object) -> None:
    """Register a user of the threads."""
    with _lock:
        _users.add(user)


def closed(user: object) -> None:
    """Unregister a user; the last one ends the threads."""
    with _lock:
        _users.discard(user)
        ended = [] if _users else [_pools.popitem()[1] for _ in range(len(_pools))]
    for each in ended:
        each.shutdown(wait=True)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pools.clear)  # threads do not exist in the child of a fork
