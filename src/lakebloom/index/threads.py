"""Threads for work that waits for files or runs outside of Python: made once, shared by all questions."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

__all__ = ["CORES", "REQUESTS", "pool"]

CORES = os.cpu_count() or 1
REQUESTS = 16
"""How many things are read from an object store at a time: each waits for the network."""


@lru_cache(maxsize=4)
def pool(workers: int) -> ThreadPoolExecutor:
    """Return a pool of so many threads. What runs in it must not wait for it."""
    return ThreadPoolExecutor(workers, thread_name_prefix="lakebloom")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=pool.cache_clear)  # a fork has no threads but its own
