"""Replaces a file only if it is still the file that was read (Linux: renameat2 with RENAME_EXCHANGE).

A rename replaces any file of that name, also a version that another writer has just published. An exchange keeps the
replaced file under the temporary name, so that it can be checked and, if necessary, put back:

    exchange(new, name)     the file that was read comes out: done
                            another file comes out: exchange again. If ours comes out now, the other file has its name
                            back. If a third one comes out, it was published since, and is put back in the same way

Readers may see the new file for that moment. A process that is killed then leaves the other writer's file under the
temporary name.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["replace_if_same"]

_AT_FDCWD, _RENAME_EXCHANGE = -100, 2
_UNSUPPORTED = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP})


def replace_if_same(temporary: Path, target: Path, is_same: Callable[[os.stat_result], bool]) -> bool:
    """Replace the file for which ``is_same`` is true by a new one; return False if another file has the name.

    Afterwards nobody needs the file under the temporary name. If files cannot be exchanged, the name is checked just
    before it is replaced. Raises FileNotFoundError if no file has the name.
    """
    put = _identity(temporary.stat())
    if not _exchanged(temporary, target):
        if not is_same(target.stat()):
            return False
        temporary.replace(target)
        return True
    status = temporary.stat()
    if is_same(status):
        return True
    out = _identity(status)
    while True:  # each file that comes out is newer than the one put in, until ours comes out
        try:
            _exchanged(temporary, target)
        except FileNotFoundError:
            return False  # and another process removed it since
        before, put, out = put, out, _identity(temporary.stat())
        if out == before:
            return False


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _exchanged(one: Path, other: Path) -> bool:
    """Exchange two files; return False if the system or file system cannot. Raises OSError."""
    call = _renameat2()
    if call is None:
        return False
    if call(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in _UNSUPPORTED:
        return False
    raise OSError(number, os.strerror(number), str(other))


@functools.cache
def _renameat2() -> Any:
    """Return the function of the C library, None if there is none."""
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if call is not None:
        call.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
    return call
