"""Locks that are open in the child of a fork: a thread that held one does not exist in the child."""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any

__all__ = ["new_lock"]

_made: weakref.WeakSet[Any] = weakref.WeakSet()


def new_lock() -> threading.Lock:
    """Return a lock. The data that it guards must be usable at any moment of a fork."""
    lock = threading.Lock()
    _made.add(lock)
    return lock


def _open_all() -> None:
    for lock in list(_made):
        lock._at_fork_reinit()  # as the standard library does with its own


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_open_all)
