"""Locks that the child of a fork finds open: a thread that held one at that moment does not exist in the child."""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any

__all__ = ["new_lock"]

_made: weakref.WeakSet[Any] = weakref.WeakSet()


def new_lock() -> threading.Lock:
    """Return a lock. What it guards must be usable whenever a fork happens."""
    lock = threading.Lock()
    _made.add(lock)
    return lock


def _open_all() -> None:
    for lock in list(_made):
        lock._at_fork_reinit()  # as the standard library does with its own


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_open_all)
