"""A local file kept as memory between questions.

Files of an index never change, so a map stays good. But somebody may restore a directory over one that is in use: the
file's identity is looked at before each use, which costs a microsecond, and another file is mapped anew.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pyarrow as pa

from lakebloom.storage.checks import check_path
from lakebloom.storage.local import LocalStorage
from lakebloom.storage.local_errors import NO_FILE, translation
from lakebloom.storage.uri import to_local_path

if TYPE_CHECKING:
    from lakebloom.storage.protocol import Storage

__all__ = ["MappedFile"]


class MappedFile:
    """One file of a local storage. No file descriptor stays open."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._identity: tuple[int, int, int, int] | None = None
        self._view = memoryview(b"")

    @classmethod
    def of(cls, storage: Storage, path: str) -> MappedFile | None:
        """Return a file of a storage; None where it is not one on local disk."""
        if not isinstance(storage, LocalStorage):
            return None
        return cls(f"{to_local_path(storage.uri).rstrip('/')}/{check_path(path)}")

    def view(self) -> tuple[memoryview, object]:
        """Return the whole file and its identity, which is the same object for as long as the file is the same.

        Raises NotFoundError and the other errors of a storage.
        """
        try:
            status = os.stat(self._path)  # noqa: PTH116 (a Path costs as much as the call)
            identity = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
            if identity != self._identity:
                self._view = _mapped(self._path, status.st_size)
                self._identity = identity
        except OSError as error:
            raise translation(error, f"could not read {self._path}", missing=NO_FILE) from error
        return self._view, self._identity


def _mapped(path: str, size_bytes: int) -> memoryview:
    if size_bytes == 0:
        return memoryview(b"")  # an empty map is an error on POSIX
    with pa.memory_map(path) as file:
        return memoryview(file.read_buffer())
