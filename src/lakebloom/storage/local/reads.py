"""Reading local files into memory of our own.

Nothing is memory-mapped. A map of a file that is cut short, written over or unreadable ends the whole process (SIGBUS);
a read of it is an error like any other. No descriptor outlives its call, so an index of any number of segments is read
with a single one.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING, TypeAlias

from lakebloom.errors import NotFoundError, StorageError
from lakebloom.storage.checks import check_length
from lakebloom.storage.local.errors import NO_FILE, translation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakebloom.storage.buffers import Views

__all__ = ["FileIdentity", "identity", "read_parts", "read_whole"]

FileIdentity: TypeAlias = tuple[int, int, int, int, int]
# A pipe that somebody put among the files must not be waited for, and a link not be followed.
_FLAGS = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)


def identity(file: str) -> FileIdentity:
    """What changes when a file is replaced or written to. Costs a microsecond. Raises NotFoundError."""
    try:
        status = os.lstat(file)
    except OSError as error:
        raise translation(error, f"could not read {file}", missing=NO_FILE) from error
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def read_whole(file: str) -> memoryview:
    """The whole file. Raises NotFoundError and the other errors of a storage."""
    try:
        descriptor, size_bytes = _open(file)
        try:
            return memoryview(_read_at(descriptor, 0, size_bytes))
        finally:
            os.close(descriptor)
    except (OSError, MemoryError) as error:
        raise _translated(error, file) from error


def read_parts(file: str, ranges: Sequence[tuple[int, int]]) -> Views:
    """The bytes of each (offset, length). Raises as ``read_whole`` does, and StorageError beyond the end."""
    try:
        descriptor, size_bytes = _open(file)
        try:
            # What is asked for may be nonsense, and must not be allocated before the file is known to have it.
            views = [
                memoryview(_read_at(descriptor, offset, max(0, min(length, size_bytes - offset))))
                for offset, length in ranges
            ]
        finally:
            os.close(descriptor)
    except (OSError, MemoryError) as error:
        raise _translated(error, file) from error
    for (offset, length), view in zip(ranges, views, strict=True):
        check_length(file, offset, length, len(view))
    return views


def _open(file: str) -> tuple[int, int]:
    descriptor = os.open(file, _FLAGS)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise NotFoundError(
                f"could not read {file}", found="a directory, a pipe or a device", hint="check what was put there"
            )
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor, status.st_size


def _read_at(descriptor: int, offset: int, length: int) -> bytes:
    """As many of the bytes as there are: the system returns less than asked for at the end, and above 2 GiB."""
    data = os.pread(descriptor, length, offset)
    if len(data) == length or not data:
        return data
    parts, got = [data], len(data)
    while got < length and (data := os.pread(descriptor, length - got, offset + got)):
        parts.append(data)
        got += len(data)
    return b"".join(parts)


def _translated(error: OSError | MemoryError, file: str) -> StorageError:
    if isinstance(error, StorageError):
        return error  # NotFoundError is a FileNotFoundError as well
    if isinstance(error, MemoryError):
        return StorageError(
            f"could not read {file}", found="more than fits into memory", hint="check who wrote the file"
        )
    if error.errno == errno.ELOOP:
        return NotFoundError(f"could not read {file}", found="a symbolic link", hint="put the file itself there")
    return translation(error, f"could not read {file}", missing=NO_FILE)
