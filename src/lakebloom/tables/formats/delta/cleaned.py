"""A log that is cleaned up while it is read: files that were listed just before are gone, behind a newer checkpoint."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

from lakebloom.errors import NotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Result = TypeVar("Result")

__all__ = ["LogCleanedError", "noticing", "until_stable"]

_ATTEMPTS = 5


class LogCleanedError(NotFoundError):
    """A file of the log is gone that was there before."""


@contextmanager
def noticing() -> Iterator[None]:
    """Raise LogCleanedError where a known file of the log is not found."""
    try:
        yield
    except NotFoundError as error:
        raise LogCleanedError(error.message, found=error.found, hint=error.hint) from error


def until_stable(read: Callable[[], Result]) -> Result:
    """Read a log from its listing on, and again if it is cleaned up meanwhile. Raises LogCleanedError in the end."""
    for _ in range(_ATTEMPTS - 1):
        with suppress(LogCleanedError):
            return read()
    return read()
