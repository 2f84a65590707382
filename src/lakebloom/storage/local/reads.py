"""Reads local files into memory.

Nothing is memory-mapped. If a mapped file is truncated, overwritten or unreadable, the whole process ends (SIGBUS); a
read only raises an error. Each call closes its descriptor, so reading an index with many segments needs only one at a
time.
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

__all__ = ["FileIdentity", "identity", "read_one_part_each", "read_parts", "read_whole"]

FileIdentity: TypeAlias = tuple[int, int, int, int, int]
# Do not wait for a pipe among the files, and do not follow a link.
_FLAGS = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)


def identity(file: str) -> FileIdentity:
    """Return what changes if a file is replaced or written to. Takes a microsecond. Raises NotFoundError."""
    try:
        status = os.lstat(file)
    except OSError as error:
        raise translation(error, f"could not read {file}", missing=NO_FILE) from error
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def read_whole(file: str) -> memoryview:
    """Return the whole file. Raises NotFoundError and the other errors of a storage."""
    try:
        descriptor, size_bytes = _open(file)
        try:
            return memoryview(_read_at(descriptor, 0, size_bytes))
        finally:
            os.close(descriptor)
    except (OSError, MemoryError) as error:
        raise _translated(error, file) from error


def read_parts(file: str, ranges: Sequence[tuple[int, int]]) -> Views:
    """Return the bytes of each (offset, length). Raises as ``read_whole`` does, and StorageError beyond the end."""
    try:
        descriptor, size_bytes = _open(file)
        try:
            # Check the ranges against the file's size before allocating: they may be wrong.
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


def read_one_part_each(parts: Sequence[tuple[str, int, int]]) -> Views:
    """Return the bytes of each (file, offset, length), none of them long. Raises StorageError.

    What a file is, is not looked at: a pipe or a directory cannot be read, and bytes of a device fail their checksum.
    """
    views: Views = []
    file = ""
    try:
        for file, offset, length in parts:
            descriptor = os.open(file, _FLAGS)
            try:
                data = os.pread(descriptor, length, offset)
            finally:
                os.close(descriptor)
            check_length(file, offset, length, len(data))
            views.append(memoryview(data))
    except (OSError, MemoryError) as error:
        raise _translated(error, file) from error
    return views


def _open(file: str) -> tuple[int, int]:
    descriptor = os.open(file, _FLAGS)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise NotFoundError(
                f"could not read {file}", found="a directory, a pipe or a device", hint="check the path"
            )
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor, status.st_size


def _read_at(descriptor: int, offset: int, length: int) -> bytes:
    """Read until the buffer is full or the file ends: one call returns at most 2 GiB."""
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
        return error  # NotFoundError is also a FileNotFoundError
    if isinstance(error, MemoryError):
        return StorageError(
            f"could not read {file}", found="more than fits into memory", hint="check who wrote the file"
        )
    if error.errno == errno.ELOOP:
        return NotFoundError(f"could not read {file}", found="a symbolic link", hint="put the file itself there")
    return translation(error, f"could not read {file}", missing=NO_FILE)
