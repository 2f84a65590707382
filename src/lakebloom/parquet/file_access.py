"""Who may read a file: mode, owner, group, access lists and other extended attributes, taken over by another file.

A file that takes another's place must not be open to anybody who could not read the other one, and must not lose what
the system keeps beside it. What cannot be taken over is an error, before anything is replaced.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["inherit_access", "keep_access"]


def keep_access(descriptor: int, original: int) -> None:
    """Give an open file the mode, owner, group and extended attributes of another. Raises OSError where it cannot."""
    status = os.fstat(original)
    now = os.fstat(descriptor)
    if (now.st_uid, now.st_gid) != (status.st_uid, status.st_gid):
        try:
            # The owner first: changing it takes set-id bits away.
            os.fchown(descriptor, status.st_uid, status.st_gid)
        except PermissionError as error:
            raise _not_kept(f"its owner {status.st_uid} and group {status.st_gid}") from error
    os.fchmod(descriptor, stat.S_IMODE(status.st_mode))
    _keep_attributes(descriptor, original)


def inherit_access(descriptor: int, original: int) -> None:
    """Give a new file as much of another's access as its maker may give, and never more than that."""
    try:
        keep_access(descriptor, original)
    except PermissionError:
        # Another group and no access list: what the group and others could read there is nobody's here.
        os.fchmod(descriptor, stat.S_IMODE(os.fstat(original).st_mode) & stat.S_IRWXU)


def _keep_attributes(descriptor: int, original: int) -> None:
    if not hasattr(os, "listxattr"):
        return
    wanted, there = _attributes(original), _attributes(descriptor)
    for name in there.keys() - wanted.keys():  # such as the list that a directory gives to its new files
        with _naming(name):
            os.removexattr(descriptor, name)
    # The access list last: it is the mode too.
    for name in sorted(wanted, key=lambda name: (name.startswith("system."), name)):
        if there.get(name) != wanted[name]:
            with _naming(name):
                os.setxattr(descriptor, name, wanted[name])


def _attributes(descriptor: int) -> dict[str, bytes]:
    try:
        names = os.listxattr(descriptor)
    except OSError as error:
        if error.errno in (errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS):
            return {}
        raise
    return {name: os.getxattr(descriptor, name) for name in names}


@contextmanager
def _naming(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _not_kept(f"its attribute {name}") from error


def _not_kept(what: str) -> PermissionError:
    return PermissionError(errno.EPERM, f"the new file cannot keep {what}; its owner or root can do it")
