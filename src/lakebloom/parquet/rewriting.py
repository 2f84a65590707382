"""Copies a local file with a new end, and replaces it whole or not at all.

    copy the first bytes -> append -> access rights -> sync -> drop Hadoop's checksum -> exchange -> sync the directory

Until the exchange the old file is unchanged, and after it the new one is complete. A crash can leave a file under a
temporary name that no reader lists; the next embedding into this file removes it. A running process holds a lock on its
copy. If another writer has replaced the file since it was read, that writer's file stays
(``storage/local/exchange.py``).
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import stat
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from lakebloom.parquet.file_access import inherit_access, keep_access
from lakebloom.storage.local.durable import sync_directory
from lakebloom.storage.local.exchange import replace_if_same
from lakebloom.storage.local.temporary import temporary_name
from lakebloom.tuning import COPIED_BYTES, KERNEL_COPIED_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import TracebackType

__all__ = ["Rewriting"]

_MOST_COPIES = 8
_PATIENCE_S, _PAUSE_S = 5.0, 0.005
# Errors of copy_file_range across file systems, on old kernels and on some network mounts.
_CANNOT_COPY = frozenset({errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM})


class Rewriting:
    """A new version of ``source`` for ``target``, which may be the same file.

    ``seen`` is the state of the source when its footer was read. Leaving the block without ``publish`` removes what was
    written. Raises OSError; ESTALE if the source has changed.
    """

    def __init__(self, source: Path, target: Path, seen: os.stat_result) -> None:
        # The name may be a link; its target is replaced.
        self._source, self._target = source.resolve(), target.resolve()
        self._stopped = False
        _remove_left_behind(self._target)
        self._read = os.open(self._source, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self._seen = seen
            _require_same(os.fstat(self._read), seen)
            self._temporary, self._write = _new_copy(self._target)
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
        buffer = memoryview(bytearray(min(COPIED_BYTES, size - copied)))
        while copied < size and not self._stopped:
            count = os.readv(self._read, [buffer[: size - copied]])
            if count == 0:
                raise OSError(errno.EIO, "the file became shorter while it was copied")
            _write_all(self._write, buffer[:count])
            copied += count
        if not self._stopped:
            os.fsync(self._write)

    def stop(self) -> None:
        """Stop a copy that another thread is making."""
        self._stopped = True

    def append(self, parts: Iterable[bytes]) -> None:
        """Append bytes."""
        for part in parts:
            _write_all(self._write, memoryview(part))

    def publish(self) -> int:
        """Give the new file its name and return its size."""
        if self._source == self._target:
            keep_access(self._write, self._read)
        elif not self._target.exists():
            inherit_access(self._write, self._read)
        else:  # an existing target keeps its access rights, as with cp
            with _opened(self._target) as target:
                keep_access(self._write, target)
        os.fsync(self._write)
        size = os.fstat(self._write).st_size
        _require_same(self._source.stat(), self._seen)
        # Hadoop's local file system has a checksum file beside each file and refuses a mismatch; without a checksum it
        # reads. The checksum is removed first: a crash now leaves the old file readable.
        self._target.with_name(f".{self._target.name}.crc").unlink(missing_ok=True)
        with _locked_directory(self._target.parent, fcntl.LOCK_SH):  # a replaced file must not be removed as a leftover
            self._take_name()
            with suppress(FileNotFoundError):
                os.unlink(self._temporary)  # noqa: PTH108 (the step is counted by tests of crashes)
        sync_directory(self._target.parent)
        return size

    def _take_name(self) -> None:
        if self._source != self._target:
            os.replace(self._temporary, self._target)  # noqa: PTH105
        elif not replace_if_same(self._temporary, self._target, lambda status: _is_same(status, self._seen)):
            raise _changed()

    def _copy_in_kernel(self, size: int) -> int:
        if not hasattr(os, "copy_file_range"):
            return 0
        copied = 0
        try:
            while copied < size and not self._stopped:
                most = min(KERNEL_COPIED_BYTES, size - copied)
                count = os.copy_file_range(self._read, self._write, most, copied, copied)
                if count == 0:
                    return copied  # some mounts return 0 instead of failing; reading checks that
                copied += count
        except OSError as error:
            if error.errno not in _CANNOT_COPY:
                raise
        return copied


def _require_same(now: os.stat_result, then: os.stat_result) -> None:
    if not _is_same(now, then) or now.st_ctime_ns != then.st_ctime_ns:
        raise _changed()


def _is_same(now: os.stat_result, then: os.stat_result) -> bool:
    """Tell whether this is the same file with the same content. Changes of its name do not count."""
    return all(getattr(now, name) == getattr(then, name) for name in ("st_dev", "st_ino", "st_size", "st_mtime_ns"))


def _changed() -> OSError:
    return OSError(errno.ESTALE, "the file was changed while filters were made for it")


def _new_copy(target: Path) -> tuple[Path, int]:
    """Create the file to write to, locked, and return its name and descriptor."""
    for temporary in (*_names(target), target.parent / temporary_name()):
        # Nobody else may read it before it has the access rights of the source.
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            descriptor = os.open(temporary, flags, stat.S_IRUSR | stat.S_IWUSR)
        except FileExistsError:
            continue  # locked by a running process
        with suppress(OSError):  # a file system without locks: then no leftovers are removed either
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if temporary.exists():
            return temporary, descriptor
        os.close(descriptor)  # removed as a leftover before it was locked
    raise OSError(errno.EBUSY, "too many processes embed filters into this file")


def _remove_left_behind(target: Path) -> None:
    """Remove leftovers of killed processes for this file: copies that nobody has locked."""
    left = [name for name in _names(target) if os.path.lexists(name)]
    if left:
        with suppress(OSError), _locked_directory(target.parent, fcntl.LOCK_EX, required=True):
            for name in left:
                with suppress(OSError), _opened(name) as descriptor:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    os.unlink(name)  # noqa: PTH108


def _names(target: Path) -> list[Path]:
    """Return the possible names of copies of a file, one for each process. No directory is listed."""
    numbered = (os.fsencode(f"{target.name}/{number}") for number in range(_MOST_COPIES))
    digits = (hashlib.blake2b(name, digest_size=16).hexdigest() for name in numbered)
    return [target.parent / temporary_name(each) for each in digits]


@contextmanager
def _locked_directory(directory: Path, kind: int, *, required: bool = False) -> Iterator[None]:
    """Hold a lock on a directory. Unless ``required``, continue without it if another process holds it for long."""
    with _opened(directory) as descriptor:
        end_s = time.monotonic() + (0 if required else _PATIENCE_S)
        while True:
            try:
                fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
                break
            except OSError:
                if required:
                    raise
                if time.monotonic() >= end_s:
                    break
                time.sleep(_PAUSE_S)
        yield


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _write_all(descriptor: int, view: memoryview) -> None:
    while view:
        view = view[os.write(descriptor, view) :]
