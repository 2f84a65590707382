"""Reads one range of each of several files, at the least cost for each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakebloom.storage.buffers import Views
    from lakebloom.storage.protocol import Storage

__all__ = ["read_each"]


def read_each(storage: Storage, requests: Sequence[tuple[str, int, int]], seen: set[str] | None = None) -> Views:
    """Return the bytes of each (path, offset, length), read-only, in the same order. Raises as ``read_ranges`` does.

    Local storages do it in one call, and add the directories that they looked at to ``seen``: for the same query
    they do not look at them again.
    """
    at_once = getattr(storage, "read_each", None)
    if at_once is not None:
        found: Views = at_once(requests, seen)
        return found
    return [storage.read_ranges(path, [(offset, length)])[0] for path, offset, length in requests]
