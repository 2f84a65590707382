"""Translates errors of the operating system to errors of lakebloom."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from lakebloom.errors import AccessDeniedError, LakebloomError, NotFoundError, StorageError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["NO_FILE", "translated", "translation"]

# A storage has no directories: a directory in the place of a file means that there is no file.
NO_FILE = (FileNotFoundError, NotADirectoryError, IsADirectoryError)


@contextmanager
def translated(attempt: str, *, missing: tuple[type[OSError], ...] = (FileNotFoundError,)) -> Iterator[None]:
    """Translate errors of the operating system in this block to errors of lakebloom."""
    try:
        yield
    except LakebloomError:
        raise  # NotFoundError is also a FileNotFoundError
    except OSError as error:
        raise translation(error, attempt, missing=missing) from error


def translation(
    error: OSError, attempt: str, *, missing: tuple[type[OSError], ...] = (FileNotFoundError,)
) -> StorageError:
    """Return the error of lakebloom for an error of the operating system."""
    if isinstance(error, missing):
        return NotFoundError(attempt, found=_reason(error), hint="check the path; it may have been vacuumed")
    if isinstance(error, PermissionError):
        return AccessDeniedError(
            attempt, found=_reason(error), hint="check the owner and mode of the file and its directories"
        )
    return StorageError(attempt, found=_reason(error), hint="check the disk and try again")


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
