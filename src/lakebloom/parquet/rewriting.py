"""A local file's copy with another end, which takes its place whole or not at all.

    copy the first bytes -> append -> sync -> permissions -> drop Hadoop's checksum -> rename -> sync the directory

Until the rename the old file is untouched, and after it the new one is complete; what a crash can leave behind is a
file under a temporary name that no reader lists.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from lakebloom.storage.durable import sync_directory
from lakebloom.storage.temporary import temporary_name

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType

__all__ = ["Rewriting"]

_PIECE_BYTES = 32 << 20
_BUFFER_BYTES = 4 << 20
# Other file systems, old kernels and some network mounts cannot copy by themselves.
_CANNOT_COPY = frozenset({errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM})


class Rewriting:
    """A new version of ``source`` that is going to be ``target``, which may be the same file.

    ``seen`` is what the source was when its footer was read. Leaving the block without ``publish`` removes what was
    written. Raises OSError, ESTALE where the source has changed.
    """

    def __init__(self, source: Path, target: Path, seen: os.stat_result) -> None:
        # The name may be a link; the file it leads to is what is replaced.
        self._source, self._target = source.resolve(), target.resolve()
        self._temporary = self._target.parent / temporary_name()
        self._stopped = False
        self._read = os.open(self._source, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self._seen = seen
            _require_same(os.fstat(self._read), seen)
            # Nobody else reads it before it has the permissions of the source.
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            self._write = os.open(self._temporary, flags, stat.S_IRUSR | stat.S_IWUSR)
        except BaseException:
            os.close(self._read)
            raise

    def __enter__(self) -> Rewriting:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._read)
        os.close(self._write)
        self._temporary.unlink(missing_ok=True)

    def copy(self, size: int) -> None:
        """Copy the first bytes of the source and start to sync them."""
        copied = self._copy_in_kernel(size)
        os.lseek(self._write, copied, os.SEEK_SET)
        os.lseek(self._read, copied, os.SEEK_SET)
        buffer = memoryview(bytearray(min(_BUFFER_BYTES, size - copied)))
        while copied < size and not self._stopped:
            count = os.readv(self._read, [buffer[: size - copied]])
            if count == 0:
                raise OSError(errno.EIO, "the file became shorter while it was copied")
            _write_all(self._write, buffer[:count])
            copied += count
        if not self._stopped:
            os.fsync(self._write)

    def stop(self) -> None:
        """End a copy that another thread is making; what it made is of no use any more."""
        self._stopped = True

    def append(self, parts: Iterable[bytes]) -> None:
        """Write to the end."""
        for part in parts:
            _write_all(self._write, memoryview(part))

    def publish(self) -> int:
        """Give the new file its name and return its size."""
        # A target that exists keeps its own, as with cp; a new one is like its source.
        self._take_permissions(self._target.stat() if self._target.exists() else self._seen)
        os.fsync(self._write)
        size = os.fstat(self._write).st_size
        _require_same(self._source.stat(), self._seen)
        # Hadoop's local file system keeps a checksum beside each file and refuses one that differs; without it, it
        # reads. It goes first: a crash now leaves the old file readable.
        self._target.with_name(f".{self._target.name}.crc").unlink(missing_ok=True)
        self._temporary.replace(self._target)
        sync_directory(self._target.parent)
        return size

    def _copy_in_kernel(self, size: int) -> int:
        if not hasattr(os, "copy_file_range"):
            return 0
        copied = 0
        try:
            while copied < size and not self._stopped:
                count = os.copy_file_range(self._read, self._write, min(_PIECE_BYTES, size - copied), copied, copied)
                if count == 0:
                    return copied  # some mounts say so instead of failing; reading finds out
                copied += count
        except OSError as error:
            if error.errno not in _CANNOT_COPY:
                raise
        return copied

    def _take_permissions(self, status: os.stat_result) -> None:
        # The owner first: changing it takes set-id bits away. Only root may; others own what they write.
        with suppress(PermissionError):
            os.fchown(self._write, status.st_uid, status.st_gid)
        os.fchmod(self._write, stat.S_IMODE(status.st_mode))


def _require_same(now: os.stat_result, then: os.stat_result) -> None:
    if any(getattr(now, name) != getattr(then, name) for name in ("st_dev", "st_ino", "st_size", "st_mtime_ns")):
        raise OSError(errno.ESTALE, "the file was changed while filters were made for it")


def _write_all(descriptor: int, view: memoryview) -> None:
    while view:
        view = view[os.write(descriptor, view) :]
