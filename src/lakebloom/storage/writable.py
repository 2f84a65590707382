"""Tests before a build whether an index can be written to a location: it writes a file there and removes it.

A job of an hour must not end with "permission denied". The test leaves no files, even if it fails.
"""

from __future__ import annotations

import errno
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from lakebloom.errors import AccessDeniedError, LocationNotWritableError, NotFoundError, StorageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakebloom.storage.protocol import Storage

__all__ = ["leaving_no_directories", "require_writable", "unwritable_path"]

_CHOOSE = "choose another location"
_METADATA_SERVICE = ("169.254.169.254", "latest/api/token", "metadata.google.internal")
"""The address of the metadata service from which machines in the cloud get their credentials."""


def require_writable(storage: Storage) -> None:
    """Raise LocationNotWritableError if no file can be written, StorageError if two writers could both commit."""
    prove = getattr(storage, "prove_writable", None)
    if prove is None:
        return
    try:
        prove()
    except LocationNotWritableError:
        raise
    except StorageError as error:
        raise _refusal(storage.uri, error) from error


def unwritable_path(path: object, error: OSError) -> LocationNotWritableError:
    """Return the error of a local directory for an error of the operating system."""
    if isinstance(error, (NotADirectoryError, FileExistsError)):
        found = f"a file where a directory should be ({_in_the_way(Path(str(path))) or error.filename or path})"
        hint = f"{_CHOOSE}, or move that file"
    elif isinstance(error, PermissionError):
        found, hint = error.strerror or str(error), f"{_CHOOSE}, or let this user write to it (ls -ld shows who may)"
    elif error.errno in (errno.ENOSPC, errno.EDQUOT):
        found, hint = error.strerror or str(error), f"{_CHOOSE}, or free some space"
    elif isinstance(error, FileNotFoundError):
        found, hint = f"directories that cannot be made ({error.strerror})", _CHOOSE
    else:
        found, hint = error.strerror or str(error), _CHOOSE
    return LocationNotWritableError(f"no index can be written to {path}", found=found, hint=hint)


def _in_the_way(path: Path) -> Path | None:
    """Return the part of a path that is not a directory."""
    return next((part for part in (path, *path.parents) if part.exists() and not part.is_dir()), None)


def _refusal(uri: str, error: StorageError) -> StorageError:
    attempt = f"no index can be written to {uri}"
    if isinstance(error, NotFoundError):
        hint = f"create the bucket, or {_CHOOSE}" if "://" in uri else _CHOOSE
        return LocationNotWritableError(attempt, found=error.found, hint=hint)
    if isinstance(error, AccessDeniedError):
        return LocationNotWritableError(attempt, found=error.found, hint=f"{error.hint}; or {_CHOOSE}")
    if any(place in error.found for place in _METADATA_SERVICE):
        return LocationNotWritableError(
            attempt,
            found="no credentials in the options, in the environment or from the machine's metadata service",
            hint="set the store's variables, such as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or pass options "
            "(docs/OBJECT_STORES.md)",
        )
    return error


@contextmanager
def leaving_no_directories(base: Path) -> Iterator[None]:
    """If the block fails, remove the empty directories that it made at and above ``base``."""
    missing = [directory for directory in (base, *base.parents) if not directory.exists()]
    try:
        yield
    except BaseException:
        for directory in missing:  # the deepest first
            with suppress(OSError):
                directory.rmdir()
        raise
