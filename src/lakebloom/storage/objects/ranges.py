"""Ranges of an object: those that are close come with one request, and all requests are under way at the same time.

obstore could do the same, but reads up to a megabyte between two ranges, and sends ten requests at a time.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import obstore

from lakebloom.locks import new_lock
from lakebloom.tuning import REQUESTS, SHARED_GAP_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["fetch_ranges"]

_lock = new_lock()
_threads: list[ThreadPoolExecutor] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_threads.clear)  # threads do not exist in the child of a fork


def fetch_ranges(store: Any, key: str, ranges: Sequence[tuple[int, int]]) -> list[memoryview]:
    """Return the bytes of each (offset, length), in the same order. None of them may be empty."""
    order = sorted(range(len(ranges)), key=ranges.__getitem__)
    groups = list(_groups(ranges, order))
    starts = [ranges[group[0]][0] for group in groups]
    ends = [max(sum(ranges[i]) for i in group) for group in groups]

    def fetch(start: int, end: int) -> memoryview:
        return memoryview(obstore.get_range(store, key, start=start, end=end))

    fetched = [fetch(starts[0], ends[0])] if len(groups) == 1 else _pool().map(fetch, starts, ends)
    found = [memoryview(b"")] * len(ranges)
    for group, start, data in zip(groups, starts, fetched, strict=True):
        for i in group:
            offset, length = ranges[i]
            found[i] = data[offset - start : offset - start + length]
    return found


def _groups(ranges: Sequence[tuple[int, int]], order: Sequence[int]) -> Iterator[list[int]]:
    """Yield the numbers of ranges, which are in the order of their offsets, that share a request."""
    group: list[int] = []
    end = 0
    for i in order:
        offset, length = ranges[i]
        if group and offset - end > SHARED_GAP_BYTES:
            yield group
            group = []
        end = max(end, offset + length) if group else offset + length
        group.append(i)
    yield group


def _pool() -> ThreadPoolExecutor:
    with _lock:
        if not _threads:
            _threads.append(ThreadPoolExecutor(REQUESTS, thread_name_prefix="lakebloom-ranges"))
        return _threads[0]
