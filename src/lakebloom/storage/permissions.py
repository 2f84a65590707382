"""Permissions of an index on local disk: only users who may read the table may read its index.

A filter tells whether a value is in the table, so an index is as secret as the table. The directory of an index gets
its mode from the table when it is made. Everything written below it, by any process, gets its mode from that
directory, also in builds on other machines and later refreshes. Changing the mode of the directory changes the mode of
later files.

    others, group     may enter if they may enter every directory of the table and read every file of it
    writing           the group may if it may write to the table's directory; others never
    ACLs              a mode cannot express the access control lists of a table: its index is readable by
                      the owner only

Directories above both the table and the index protect both, and are ignored.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from lakebloom.storage.local.errors import translated
from lakebloom.storage.uri import to_local_path

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Permissions", "match_table"]

_ACL = "system.posix_acl_access"
_OWNER_ONLY = 0o700


class Permissions(NamedTuple):
    """The mode of directories, and the group of everything."""

    mode: int
    group: int

    @classmethod
    def of(cls, directory: str) -> Permissions | None:
        """Return the permissions of a directory; None if it does not exist."""
        try:
            status = os.stat(directory)  # noqa: PTH116 (before each write)
        except OSError:
            return None
        return cls(stat.S_IMODE(status.st_mode) & 0o2777 | _OWNER_ONLY, status.st_gid)

    @property
    def file_mode(self) -> int:
        """The mode of files: readable by those who may enter the directory. Files are never changed."""
        return 0o600 | (0o040 if self.mode & 0o010 else 0) | (0o004 if self.mode & 0o001 else 0)

    def set_file(self, descriptor: int) -> None:
        """Apply the permissions to an open, empty file."""
        mode = self.file_mode if _has_group(descriptor, self.group) else self.file_mode & ~0o070
        with suppress(PermissionError):
            os.fchmod(descriptor, mode)

    def set_directory(self, directory: str) -> None:
        """Apply the permissions to a new directory."""
        mode = self.mode if _has_group(directory, self.group) else self.mode & ~0o2070
        with suppress(PermissionError):
            os.chmod(directory, mode)  # noqa: PTH101


def match_table(index_uri: str, file_uris: Iterable[str], locations: Iterable[str]) -> None:
    """Make the directory of an index for a table, or restrict an existing one. Only local ones have modes."""
    files = [uri for uri in file_uris if uri.startswith("file:")]
    if not index_uri.startswith("file:") or not files:
        return
    base = to_local_path(index_uri)
    roots = [to_local_path(uri) for uri in locations if uri.startswith("file:")]
    with translated(f"could not make {base}"):
        try:
            wanted = _of_table([to_local_path(uri) for uri in files], roots, base)
        except OSError:  # another user, such as Spark's, reads the table
            wanted = Permissions(_OWNER_ONLY, os.getgid())
        os.makedirs(os.path.dirname(base), exist_ok=True)  # noqa: PTH103, PTH120
        with suppress(FileExistsError):
            os.mkdir(base, _OWNER_ONLY)  # noqa: PTH102
        if not os.listdir(base):  # noqa: PTH208
            wanted.set_directory(base)
            return
        known = Permissions.of(base)
        if known is not None and known.mode & ~wanted.mode & 0o777:
            with suppress(PermissionError):
                os.chmod(base, known.mode & (wanted.mode | 0o2000))  # noqa: PTH101


def _of_table(files: list[str], roots: list[str], base: str) -> Permissions:
    directories = _directories(files, base)
    inner = min(directories, key=len, default="/")
    root = next((path for path in roots if os.path.isdir(path)), None) or inner  # noqa: PTH112
    status = os.stat(root)  # noqa: PTH116
    group = status.st_gid
    members = others = 0o7
    for path in (*directories, root):
        found = os.stat(path)  # noqa: PTH116
        bits = _bits(found, group)
        # Entering is required; listing is allowed if all directories of the table allow it.
        members &= bits[0] if bits[0] & 1 else 0
        others &= bits[1] if bits[1] & 1 else 0
        if _has_acl(path):
            return Permissions(_OWNER_ONLY, group)
    for path in files:
        with suppress(FileNotFoundError):  # removed since it was listed
            bits = _bits(os.stat(path), group)  # noqa: PTH116
            members, others = members if bits[0] & 4 else 0, others if bits[1] & 4 else 0
            if _has_acl(path):
                return Permissions(_OWNER_ONLY, group)
    return Permissions(_OWNER_ONLY | members << 3 | others & ~2 | status.st_mode & 0o2000, group)


def _bits(status: os.stat_result, group: int) -> tuple[int, int]:
    """Return what members of a group and others may do. For a file of another group, members are others."""
    others = status.st_mode & 7
    return (status.st_mode >> 3 & 7) if status.st_gid == group else others, others


def _directories(files: list[str], base: str) -> set[str]:
    """Return all directories of the files, except those above the index."""
    found: set[str] = set()
    for file in files:
        directory = os.path.dirname(file)  # noqa: PTH120
        while directory not in found and not f"{base}/".startswith(f"{directory.rstrip('/')}/"):
            found.add(directory)
            directory = os.path.dirname(directory)  # noqa: PTH120
    return found


def _has_acl(path: str) -> bool:
    if not hasattr(os, "getxattr"):
        return False
    try:
        return len(os.getxattr(path, _ACL)) > 0
    except OSError:
        return False


def _has_group(target: int | str, group: int) -> bool:
    """Change the group of a file, and tell whether it has this group now."""
    if os.stat(target).st_gid == group:  # noqa: PTH116
        return True
    try:
        os.chown(target, -1, group)
    except OSError:
        return False
    return True
