"""Which version of a table with a log a call means."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["NEWEST", "AsOf"]


class AsOf(NamedTuple):
    """A version by its number, or the newest at a time. Neither: the newest."""

    version: int | None = None
    timestamp_ms: int | None = None


NEWEST = AsOf()
