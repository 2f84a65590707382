"""Translates errors of obstore to errors of lakebloom."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from obstore.exceptions import BaseError, NotSupportedError, PermissionDeniedError, UnauthenticatedError

from lakebloom.errors import AccessDeniedError, LakebloomError, NotFoundError, StorageError
from lakebloom.storage.forks import require_own_process
from lakebloom.storage.objects.redaction import cause_of, redacted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["translated"]

_TRY_AGAIN = "check that the store can be reached, then try again"


@contextmanager
def translated(attempt: str, options: Mapping[str, str], *, hint: str = _TRY_AGAIN) -> Iterator[None]:
    """Translate errors of obstore in this block to errors of lakebloom, without the values of secret options.

    Raises StorageError at once in a fork of a process that has used an object store.
    """
    require_own_process(attempt)
    try:
        yield
    except LakebloomError:
        raise  # NotFoundError is also a FileNotFoundError
    except BaseException as error:
        if not _comes_from_obstore(error):
            raise
        kind, what_to_do = _classify(error, hint)
        raise kind(attempt, found=redacted(error, options), hint=what_to_do) from cause_of(error, options)


def _comes_from_obstore(error: BaseException) -> bool:
    # A range beyond the end of an object, if fetched together with its neighbours, panics in Rust. The panic
    # is a BaseException that cannot be imported, and no `except Exception` catches it.
    return (
        isinstance(error, (BaseError, OSError, ValueError, NotImplementedError))
        or type(error).__name__ == "PanicException"
    )


def _classify(error: BaseException, hint: str) -> tuple[type[StorageError], str]:
    if isinstance(error, FileNotFoundError):
        return NotFoundError, "check the bucket and the path; the file may have been vacuumed"
    if isinstance(error, (PermissionDeniedError, UnauthenticatedError)):
        return (
            AccessDeniedError,
            "check the credentials in the options or the environment, and what they may do",
        )
    if isinstance(error, (NotSupportedError, NotImplementedError)):
        return StorageError, "use a store that has conditional writes, and do not disable them in the options"
    return StorageError, hint
