"""Checks of arguments that all backends share.

A path is relative to the base of its storage and made of segments: ``log/00000000000000000007.json``. One that passes
these checks names exactly one file on every backend and cannot lead out of the base.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from lakebloom.errors import InvalidArgumentError, StorageError
from lakebloom.storage.local.temporary import is_temporary
from lakebloom.tuning import CACHED_ANSWERS

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["check_length", "check_new_path", "check_path", "check_prefix", "check_ranges"]

_HINT = "give a path relative to the storage's base, such as 'log/7.json'"
# Object stores refuse control characters, and a NUL ends a path on POSIX.
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@lru_cache(maxsize=CACHED_ANSWERS)
def check_path(path: str) -> str:
    """Return `path` if it names a file below the base."""
    if any(segment in {"", ".", ".."} for segment in path.split("/")):
        raise InvalidArgumentError(
            "a storage path must not have empty, '.' or '..' segments", found=path or "''", hint=_HINT
        )
    if _CONTROL.search(path):
        raise InvalidArgumentError("a storage path must not have control characters", found=repr(path), hint=_HINT)
    return path


def check_new_path(path: str) -> str:
    """Return `path` if a file may be written there."""
    if is_temporary(check_path(path)):
        raise InvalidArgumentError(
            "this name is reserved for unfinished files",
            found=path,
            hint="choose another name",
        )
    return path


def check_prefix(prefix: str) -> str:
    """Return `prefix` if it names a directory; the empty prefix is the base."""
    return check_path(prefix) if prefix else prefix


def check_ranges(ranges: Sequence[tuple[int, int]]) -> None:
    """Refuse offsets and lengths that no file can have."""
    for offset, length in ranges:
        if offset < 0 or length < 0:
            raise InvalidArgumentError(
                "a byte range starts at 0 or later and is not negative",
                found=f"offset {offset}, length {length}",
                hint="give (offset, length) pairs",
            )


def check_length(uri: str, offset: int, length: int, got: int) -> None:
    """Raise for a read that ended early: the file was longer when the range was recorded."""
    if got != length:
        raise StorageError(
            f"could not read {length} bytes at offset {offset} of {uri}",
            found=f"a file that ends after {got} of them",
            hint="the file was cut short or replaced; verify the index and rebuild what is damaged",
        )
