"""Copies the access rights of a file: mode, owner, group, access lists and other extended attributes.

A file that replaces another one must not be readable by anybody who could not read the other, and must not lose its
attributes. If something cannot be copied, an error is raised before anything is replaced.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["inherit_access", "keep_access"]


def keep_access(descriptor: int, original: int) -> None:
    """Give an open file the mode, owner, group and extended attributes of another. Raises OSError if it cannot."""
    status = os.fstat(original)
    now = os.fstat(descriptor)
    if (now.st_uid, now.st_gid) != (status.st_uid, status.st_gid):
        try:
            # The owner first: changing it clears the set-id bits.
            os.fchown(descriptor, status.st_uid, status.st_gid)
        except PermissionError as error:
            raise _not_kept(f"its owner {status.st_uid} and group {status.st_gid}") from error
    os.fchmod(descriptor, stat.S_IMODE(status.st_mode))
    _keep_attributes(descriptor, original)


def inherit_access(descriptor: int, original: int) -> None:
    """Give a new file as many of another's access rights as this user may give, and never more."""
    try:
        keep_access(descriptor, original)
    except PermissionError:
        # Another group and no access list: give nothing to the group and others.
        os.fchmod(descriptor, stat.S_IMODE(os.fstat(original).st_mode) & stat.S_IRWXU)


def _keep_attributes(descriptor: int, original: int) -> None:
    if not hasattr(os, "listxattr"):
        return
    wanted, there = _attributes(original), _attributes(descriptor)
    for name in there.keys() - wanted.keys():  # such as the default access list of a directory
        with _naming(name):
            os.removexattr(descriptor, name)
    # The access list last: it also sets the mode.
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
