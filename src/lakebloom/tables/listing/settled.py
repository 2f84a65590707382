"""Whether a file is old enough for its identity to change when the file does.

A clock has steps: a file that is written again within the step of its last change looks the same ("racily clean", as
Git calls it). So a file is read for an index only when the step is over. By then a later change gets another time.

    local disk      the time of change of the inode, which nobody can set; kernels count in steps of up to 10 ms, some
                    file systems in whole seconds
    object store    nothing to wait for where the asker knows the ETag; otherwise the second of the last change
    Hadoop          the time of the last change, in milliseconds or, if it shows none, in whole seconds

Waiting takes milliseconds, two seconds at most. What would take longer, such as a time in the future, is not read: the
file is left out with its reason, and the next refresh takes it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from lakebloom.tables.file_identity import is_logged, is_object, local_changed_ns

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lakebloom.tables.file_identity import TableFile

__all__ = ["TOO_NEW", "is_settled", "too_new_reason", "unsettled"]

TOO_NEW = "FILE_TOO_NEW"
"""The code of a file that is left out until it is older."""
_NS_PER_MS, _NS_PER_S = 1_000_000, 1_000_000_000
_TICK_NS = 20 * _NS_PER_MS
"""Twice the longest tick of a kernel's clock (100 Hz)."""
_COARSE_NS = 2 * _NS_PER_S
"""A clock of whole seconds, and a second for the difference between the store's clock and this one."""
_LONGEST_WAIT_NS = _COARSE_NS
_ROUNDS = 3


def is_settled(file: TableFile, *, etag_known: bool = True) -> bool:
    """Tell whether any later change of a file, seen as it is now, will show in its identity.

    ``etag_known`` says whether everyone who compares this identity can know the ETags of objects.
    """
    return time.time_ns() >= _settled_at_ns(file, etag_known=etag_known)


def unsettled(files: Iterable[TableFile], *, etag_known: bool = True) -> Sequence[TableFile]:
    """Wait until files are settled, and return those for which that would take too long."""
    left = [file for file in files if not is_settled(file, etag_known=etag_known)]
    for _ in range(_ROUNDS):  # not once: a clock that is set back, or a sleep that is cut short, is no reason to trust
        waits = [_settled_at_ns(file, etag_known=etag_known) - time.time_ns() for file in left]
        wait_ns = max((wait for wait in waits if wait <= _LONGEST_WAIT_NS), default=None)
        if wait_ns is None:
            break
        time.sleep(max(0, wait_ns) / _NS_PER_S)
        left = [file for file in left if not is_settled(file, etag_known=etag_known)]
    return left


def too_new_reason(file: TableFile) -> str:
    """Tell people why a file is left out."""
    return (
        f"its last change, {file.mtime_ms} ms since 1970, is too close to now or in the future:"
        " another change could look the same; the next refresh takes it"
    )


def _settled_at_ns(file: TableFile, *, etag_known: bool) -> int:
    if is_logged(file):
        return 0  # it is written once
    if file.uri.startswith("file:") and file.tag:
        changed_ns = local_changed_ns(file.tag)
        return changed_ns + (_TICK_NS if changed_ns % _NS_PER_S else _COARSE_NS)
    if is_object(file.uri):
        return 0 if etag_known and file.tag else file.mtime_ms * _NS_PER_MS + _COARSE_NS
    return file.mtime_ms * _NS_PER_MS + (_TICK_NS if file.mtime_ms % 1000 else _COARSE_NS)
