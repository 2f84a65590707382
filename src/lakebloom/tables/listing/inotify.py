"""Directories under watch: whether anything in them changed since they were listed, asked in a microsecond.

Linux tells (inotify): files that are created, written, renamed, deleted or touched, by whichever process. It does not
tell about changes that are made elsewhere, so only file systems of this machine are watched, and none with links to
files in other places. Where a watch cannot be had, nothing is promised and the table is listed again.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import os
import struct
import sys
import weakref
from typing import TYPE_CHECKING

from lakebloom.locks import new_lock
from lakebloom.tables.formats.recognise import METADATA, local_markers
from lakebloom.tuning import WATCHES

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Watch"]

_MODIFY, _ATTRIB, _CLOSE_WRITE, _MOVED_FROM, _MOVED_TO = 0x2, 0x4, 0x8, 0x40, 0x80
_CREATE, _DELETE, _DELETE_SELF, _MOVE_SELF, _ONLYDIR = 0x100, 0x200, 0x400, 0x800, 0x0100_0000
_MASK_ADD = 0x2000_0000
_CHANGES = (
    _MODIFY | _ATTRIB | _CLOSE_WRITE | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE | _DELETE_SELF | _MOVE_SELF
) | _ONLYDIR
_ARRIVALS = _CREATE | _MOVED_TO | _ONLYDIR | _MASK_ADD
_EVENT = struct.Struct("iIII")
"""Watch number, what happened, cookie, length of the name that follows."""
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
_clock = itertools.count()
_live: weakref.WeakSet[Watch] = weakref.WeakSet()
_live_lock = new_lock()


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
        self._lock = new_lock()
        self._process = os.getpid()
        self._identities: list[tuple[str, tuple[int, int]]] = []
        self._inside: set[int] = set()
        self._above: dict[int, str] = {}
        self._looked_at_each_time: set[str] = set()
        self.last_used = next(_clock)
        _make_room()
        libc = _libc()
        descriptor = -1 if libc is None else libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        self._descriptor = descriptor
        self._usable = descriptor >= 0
        self._close = weakref.finalize(self, os.close, descriptor) if descriptor >= 0 else None
        if self._usable:
            with _live_lock:
                _live.add(self)

    def give_up(self) -> None:
        """Promise nothing: the listing depends on what cannot be watched. What was watched is free for others."""
        with self._lock:
            self._stop()

    def _stop(self) -> None:
        self._usable = False
        if self._close is not None:
            self._close()
        with _live_lock:
            _live.discard(self)

    def enter(self, directory: str, *, is_root: bool = False) -> None:
        """Watch a directory that is about to be read. Roots are also looked at by name: they may be exchanged."""
        with self._lock:
            number = self._watch(directory, _CHANGES)
            if number is None:
                self._stop()
                return
            self._inside.add(number)
            if is_root:
                self._identities.append((directory, _identity(directory)))

    def look_above(self, directory: str) -> None:
        """Watch a directory above the table, in which only a table format's marker would change what is listed.

        Other changes there do not count: it may be a busy place. Where it cannot be watched it is looked at each time.
        """
        with self._lock:
            for place in (directory, f"{directory.rstrip('/')}/{METADATA}"):
                number = self._watch(place, _ARRIVALS)
                if number is not None:
                    self._above[number] = directory
                elif place == directory:
                    self._looked_at_each_time.add(directory)

    def _watch(self, directory: str, changes: int) -> int | None:
        libc = _libc()
        if not self._usable or libc is None:
            return None
        path = os.fsencode(directory)
        if not _is_own(libc, path):
            return None
        number = int(libc.inotify_add_watch(self._descriptor, path, changes))
        return None if number < 0 else number

    def is_quiet(self) -> bool:
        """Tell whether what was listed is there as it was. False where that is not known, and from then on."""
        with self._lock:
            self.last_used = next(_clock)
            if self._usable and (self._process != os.getpid() or self._has_changes()):
                self._usable = False
            return self._usable

    def _has_changes(self) -> bool:
        seen: set[str] = set(self._looked_at_each_time)
        try:
            while True:
                for number in _watch_numbers(os.read(self._descriptor, 1 << 12)):
                    if number in self._inside or number not in self._above:
                        return True
                    seen.add(self._above[number])
        except BlockingIOError:
            pass
        try:
            exchanged = any(_identity(path) != identity for path, identity in self._identities)
        except OSError:
            return True
        return exchanged or any(self._is_marked(directory) for directory in seen)

    def _is_marked(self, directory: str) -> bool:
        """Tell whether a table format claims a directory, or might without being noticed from here on."""
        if any(local_markers(directory)):
            return True
        # A directory that came since is not watched yet.
        place = f"{directory.rstrip('/')}/{METADATA}"
        return os.path.isdir(place) and self._watch(place, _ARRIVALS) not in self._above  # noqa: PTH112


def _make_room() -> None:
    """Let watches go that were not used for longest, so that one more is not too many."""
    with _live_lock:
        surplus = len(_live) - WATCHES + 1
        oldest = sorted(_live, key=lambda watch: watch.last_used)[: max(0, surplus)]
    for watch in oldest:
        watch.give_up()


def _watch_numbers(events: bytes) -> Iterator[int]:
    """Yield the watch number of each event that the kernel sent; -1 is an overflow."""
    position = 0
    while position < len(events):
        number, _, _, length = _EVENT.unpack_from(events, position)
        yield number
        position += _EVENT.size + length


def _identity(directory: str) -> tuple[int, int]:
    status = os.stat(directory)  # noqa: PTH116 - Path costs more than the call
    return status.st_dev, status.st_ino


def _is_own(libc: ctypes.CDLL, path: bytes) -> bool:
    """Tell whether a directory is on a file system that only this machine changes."""
    facts = ctypes.create_string_buffer(_STATFS_BYTES)
    if libc.statfs(path, facts) != 0:
        return False
    return ctypes.c_long.from_buffer(facts).value & 0xFFFFFFFF in _OWN_FILE_SYSTEMS
