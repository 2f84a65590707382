"""Directories under watch: whether anything in them changed since they were listed, asked in a microsecond.

Linux tells (inotify): files that are created, written, renamed, deleted or touched, by whichever process. It does not
tell about changes that are made elsewhere, so only file systems of this machine are watched, and none with links to
files in other places. Where a watch cannot be had, nothing is promised and the table is listed again.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
import threading
import weakref

__all__ = ["Watch"]

_MODIFY, _ATTRIB, _CLOSE_WRITE, _MOVED_FROM, _MOVED_TO = 0x2, 0x4, 0x8, 0x40, 0x80
_CREATE, _DELETE, _DELETE_SELF, _MOVE_SELF, _ONLYDIR = 0x100, 0x200, 0x400, 0x800, 0x0100_0000
_CHANGES = (
    _MODIFY | _ATTRIB | _CLOSE_WRITE | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE | _DELETE_SELF | _MOVE_SELF
) | _ONLYDIR
_OWN_FILE_SYSTEMS = frozenset(
    {
        0xEF53,  # ext2, ext3, ext4
        0x58465342,  # xfs
        0x9123683E,  # btrfs
        0x2FC12FC1,  # zfs
        0xF2F52010,  # f2fs
        0x01021994,  # tmpfs
        0x794C7630,  # overlayfs
    }
)
"""Where every change is made by this machine's kernel."""
_STATFS_BYTES = 256


@functools.cache
def _libc() -> ctypes.CDLL | None:
    if sys.platform != "linux":
        return None
    libc = ctypes.CDLL(None, use_errno=True)
    return libc if hasattr(libc, "inotify_init1") else None


class Watch:
    """Watches the directories that a listing enters: each before it is read, so that no change is missed.

    A watch is for one process: events that a fork reads would be lost to its parent.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._identities: list[tuple[str, tuple[int, int]]] = []
        libc = _libc()
        descriptor = -1 if libc is None else libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        self._descriptor = descriptor
        self._usable = descriptor >= 0
        self._close = weakref.finalize(self, os.close, descriptor) if descriptor >= 0 else None

    def give_up(self) -> None:
        """Promise nothing: the listing depends on what cannot be watched. What was watched is free for others."""
        self._usable = False
        if self._close is not None:
            self._close()

    def enter(self, directory: str, *, is_root: bool = False) -> None:
        """Watch a directory that is about to be read. Roots are also looked at by name: they may be exchanged."""
        libc = _libc()
        if not self._usable or libc is None:
            return
        path = os.fsencode(directory)
        if not _is_own(libc, path) or libc.inotify_add_watch(self._descriptor, path, _CHANGES) < 0:
            self.give_up()
        elif is_root:
            self._identities.append((directory, _identity(directory)))

    def is_quiet(self) -> bool:
        """Tell whether what was listed is there as it was. False where that is not known, and from then on."""
        with self._lock:
            if self._usable and (self._process != os.getpid() or self._has_changes()):
                self._usable = False
            return self._usable

    def _has_changes(self) -> bool:
        try:
            os.read(self._descriptor, 1 << 12)
        except BlockingIOError:
            pass
        else:
            return True
        try:
            return any(_identity(path) != identity for path, identity in self._identities)
        except OSError:
            return True


def _identity(directory: str) -> tuple[int, int]:
    status = os.stat(directory)  # noqa: PTH116 - Path costs more than the call
    return status.st_dev, status.st_ino


def _is_own(libc: ctypes.CDLL, path: bytes) -> bool:
    """Tell whether a directory is on a file system that only this machine changes."""
    facts = ctypes.create_string_buffer(_STATFS_BYTES)
    if libc.statfs(path, facts) != 0:
        return False
    return ctypes.c_long.from_buffer(facts).value & 0xFFFFFFFF in _OWN_FILE_SYSTEMS
