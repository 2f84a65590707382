"""A file that stays open while filters are read from it one by one."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from lakebloom.errors import DataFileError, InvalidArgumentError
from lakebloom.parquet.footer import RandomAccess, Tail, read_tail
from lakebloom.storage.uri import normalise
from lakebloom.tables.parquet.open import open_source, reading

if TYPE_CHECKING:
    from lakebloom.parquet.footer import Source

__all__ = ["OpenFile", "open_file"]


class OpenFile:
    """Reads ranges of a file, one thread at a time. A file opened here is closed with the last reference."""

    def __init__(self, name: str, file: RandomAccess) -> None:
        self.name = name
        self._file, self._lock = file, threading.Lock()

    def tail(self) -> Tail:
        """Read the footer."""
        with self._lock, reading(self.name):
            return read_tail(self._file, self.name)

    def read(self, offset: int, length: int) -> bytes:
        """Read a range that was checked against the file's size. Raises DataFileError if the file is shorter now."""
        with self._lock, reading(self.name):
            self._file.seek(offset)
            data = bytes(self._file.read(length))
        if len(data) != length:
            raise DataFileError(
                f"could not read {length} bytes at {offset} of {self.name}",
                found=f"{len(data)} bytes",
                hint="the file became shorter while it was read; try again",
            )
        return data


def open_file(source: Source) -> OpenFile:
    """Open a path or a URI, or use an open file.

    Raises NotFoundError, AccessDeniedError or StorageError, and InvalidArgumentError for another object.
    """
    if isinstance(source, RandomAccess):
        name = getattr(source, "name", None)
        return OpenFile(name if isinstance(name, str) else "the open file", source)
    if not isinstance(source, str) and not hasattr(source, "__fspath__"):
        raise InvalidArgumentError("a Parquet file must be a path, a URI or an open file", found=source)
    uri = normalise(source)
    return OpenFile(uri, open_source(uri, {}))
