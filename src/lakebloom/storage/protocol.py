"""The operations on bytes that an index needs, the same for every kind of storage.

Paths are relative to the base of the storage, '/'-separated, without empty, '.' or '..' segments; anything else is an
InvalidArgumentError. There are no directories, only files.

Files are never changed in place. A reader sees one whole version of a file, and what it has read stays valid if the
file is replaced or deleted later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lakebloom.storage.buffers import Buffer, Buffers, Views

__all__ = ["Storage", "StoredFile"]


class StoredFile(msgspec.Struct, frozen=True):
    """A file in a listing."""

    path: str
    size_bytes: int
    mtime_ms: int


@runtime_checkable
class Storage(Protocol):
    """A base location and the files below it.

    Every method may raise StorageError, or AccessDeniedError if the store denies access.
    """

    @property
    def uri(self) -> str:
        """The URI of the base, in canonical form (``lakebloom.storage.uri``)."""
        ...

    def read(self, path: str) -> memoryview:
        """Return the whole file, read-only. Raises NotFoundError."""
        ...

    def read_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> Views:
        """Return the bytes of each (offset, length), read-only, in the same order.

        A range beyond the end is a StorageError, a missing file a NotFoundError. An empty range is
        valid in any file. Without ranges, nothing is read.
        """
        ...

    def write(self, path: str, data: Buffers) -> None:
        """Write `data` to `path`, and replace a file there. Readers see all of it or nothing.

        Several buffers are written one after the other, without a copy in memory if the store can do that.
        """
        ...

    def put_if_absent(self, path: str, data: Buffer) -> None:
        """Write `data` to `path` if there is no file; of any number of writers exactly one succeeds.

        When this returns, the file survives a crash of the machine. Raises AlreadyExistsError if another writer was
        first, StorageError if the store cannot guarantee a single winner, or if the outcome is unknown.
        """
        ...

    def list(self, prefix: str) -> Iterator[StoredFile]:
        """Yield the files below `prefix`, at any depth and in no particular order.

        The prefix is made of whole segments: 'log' finds 'log/7' and not 'logs/7'; '' is the base. A missing prefix
        lists nothing. Unfinished files are omitted.
        """
        ...

    def temporaries(self, prefix: str) -> Iterator[StoredFile]:
        """Yield the unfinished files below `prefix`: those being written now, and those whose writer crashed.

        Only their age tells them apart, so vacuum deletes those whose `mtime_ms` is
        before its grace period. Object stores have no such files: a PUT is all or nothing, and parts of an aborted
        large upload are invisible until a lifecycle rule of the bucket removes them.
        """
        ...

    def delete(self, path: str) -> None:
        """Remove the file. A missing file is not an error.

        On local disk, directories that become empty are removed too, up to the base.
        """
        ...
