"""Guards against obstore after a fork: an immediate error instead of a call that never returns.

obstore's requests run in its own threads, which a fork does not copy. Nothing can start them again in the child, so a
child of a process that has used an object store cannot use one.
"""

from __future__ import annotations

import os

from lakebloom.errors import StorageError

__all__ = ["require_own_process"]

_used_by: int | None = None


def require_own_process(attempt: str) -> None:
    """Raise StorageError in a fork of a process that has used an object store. `attempt` starts the message."""
    global _used_by
    process = os.getpid()
    if _used_by is None:
        _used_by = process
    elif _used_by != process:
        raise StorageError(
            attempt,
            found=f"process {process}, forked from process {_used_by}, which had used an object store before",
            hint="start workers with multiprocessing's 'spawn' or 'forkserver' method, or fork before the first use",
        )
