"""Translates Java's exceptions, raised through py4j, to errors of lakebloom.

Neither py4j nor pyspark is imported: an error is recognised by its attributes. py4j's has ``java_exception``; pyspark
converts a few Java classes to its own, which have the Java object in ``_origin``.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from lakebloom.errors import AccessDeniedError, NotFoundError, StorageError
from lakebloom.storage.objects.redaction import cause_of

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["MISSING", "java_class_of", "translated"]

MISSING = frozenset({"java.io.FileNotFoundException", "org.apache.hadoop.fs.ParentNotDirectoryException"})
_REFUSED = frozenset({"org.apache.hadoop.security.AccessControlException", "java.nio.file.AccessDeniedException"})


@contextmanager
def translated(attempt: str) -> Iterator[None]:
    """Translate errors of the JVM in this block to errors of lakebloom."""
    try:
        yield
    except Exception as error:
        java_class = java_class_of(error)
        if java_class is None:
            raise
        text = _text_of(error)
        kind, hint = _classify(java_class, text)
        raise kind(attempt, found=f"{java_class}: {text}", hint=hint) from cause_of(error, {})


def java_class_of(error: Exception) -> str | None:
    """Return the Java class of a Python exception; '' if the JVM was lost, None if it was not involved.

    >>> java_class_of(ValueError("Python's own")) is None
    True
    """
    java = _java_exception(error)
    if java is not None:
        return str(java.getClass().getName())
    return "" if type(error).__module__.startswith("py4j.") else None


def _java_exception(error: Exception) -> Any:
    return getattr(error, "java_exception", None) or getattr(error, "_origin", None)


def _text_of(error: Exception) -> str:
    java = _java_exception(error)
    text = str(java.getMessage()) if java is not None else str(error)
    return text.partition("\n")[0]


def _classify(java_class: str, text: str) -> tuple[type[StorageError], str]:
    # Hadoop's local file system reports a denied access as a missing file.
    if java_class in _REFUSED or text.endswith("(Permission denied)"):
        return AccessDeniedError, "check what the user of the Spark session may do there"
    if java_class in MISSING:
        return NotFoundError, "check the path; the file may have been vacuumed"
    if not java_class:
        return StorageError, "the Spark session has ended: start one and open the storage again"
    return StorageError, "check that Spark itself can reach this location, then try again"
