"""Writes local files that appear whole or not at all, and survive a power cut (POSIX).

The bytes are synced before the name exists, the directory after it: a name that survives always has all its bytes.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from typing import TYPE_CHECKING, BinaryIO

from lakebloom.errors import AlreadyExistsError, StorageError
from lakebloom.storage.local.temporary import temporary_name

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from lakebloom.storage.permissions import Permissions

__all__ = ["prove_single_winner", "publish_new", "publish_over", "sync_directory", "write_temporary"]

# FAT and most FUSE mounts of object stores answer link(2) with one of these.
_NO_HARD_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS})
_MOST_ATTEMPTS = 100


def write_temporary(directory: Path, views: Iterable[memoryview], permissions: Permissions | None = None) -> Path:
    """Write these bytes to a new file in `directory`, under a temporary name. Makes the directory if needed.

    The file and new directories get `permissions`; by default, those of the process.
    """
    temporary, stream = _create(directory, permissions)
    try:
        with stream:
            if permissions is not None:
                permissions.set_file(stream.fileno())
            for view in views:
                stream.write(view)
            stream.flush()
            os.fsync(stream.fileno())
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return temporary


def publish_over(temporary: Path, target: Path) -> None:
    """Give the file its name, and replace a file of that name."""
    try:
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    # If a `delete` has already removed the file and its directory, there is nothing to sync.
    with suppress(FileNotFoundError):
        sync_directory(target.parent)


def publish_new(temporary: Path, target: Path) -> None:
    """Give the file its name. Raises AlreadyExistsError if the name exists.

    A hard link is the only POSIX call that fails if the name exists *and* shows the whole content at once: rename
    replaces silently, and O_EXCL shows an empty file first. A file system without hard links is refused.
    """
    try:
        _link(temporary, target)
        sync_directory(target.parent)
    finally:
        temporary.unlink(missing_ok=True)


def prove_single_winner(directory: Path) -> None:
    """Raise StorageError unless a name in `directory` can be created only once. Leaves no file."""
    name = directory / temporary_name()
    try:
        publish_new(write_temporary(directory, [memoryview(b"first")]), name)
        with suppress(AlreadyExistsError):
            publish_new(write_temporary(directory, [memoryview(b"second")]), name)
            raise StorageError(
                f"an index cannot be kept in {directory}",
                found="a file system that let two writers create the same file",
                hint="keep the index on another file system; the table may stay where it is",
            )
    finally:
        name.unlink(missing_ok=True)


def _link(temporary: Path, target: Path) -> None:
    try:
        target.hardlink_to(temporary)
    except FileExistsError as error:
        # On NFS a lost answer makes the client repeat the call, and the second answer is "exists" because of the first
        # link. Only our own link raises the link count.
        if temporary.stat().st_nlink == 1:
            raise AlreadyExistsError(
                f"could not create {target}",
                found="a file that another writer created first",
                hint="read what the other writer stored, then try the next name",
            ) from error
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        raise StorageError(
            f"could not create {target} with exactly one winner",
            found=f"a file system that refuses hard links ({error.strerror})",
            hint="keep the index on a file system with hard links, or address the object store by its own URI",
        ) from error


def _create(directory: Path, permissions: Permissions | None) -> tuple[Path, BinaryIO]:
    temporary = directory / temporary_name()
    attempts = 0
    while True:
        try:
            _make_directories(directory, permissions)
            return temporary, temporary.open("xb")
        except FileNotFoundError:
            # A `delete` removed the empty directory between the two calls. Once the temporary
            # file is in it, the directory stays.
            attempts += 1
            if attempts == _MOST_ATTEMPTS:
                raise


def _make_directories(directory: Path, permissions: Permissions | None = None) -> None:
    if directory.is_dir():
        return
    _make_directories(directory.parent, permissions)
    with suppress(FileExistsError):  # another writer made it meanwhile
        if permissions is None:
            directory.mkdir()
        else:
            directory.mkdir(0o700)
            permissions.set_directory(str(directory))
    sync_directory(directory.parent)


def sync_directory(directory: Path) -> None:
    """Make the names in a directory survive a power cut."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
