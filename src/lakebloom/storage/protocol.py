"""The few operations on bytes that an index needs, whichever system stores them.

Paths are relative to the base of the storage, '/'-separated, without empty, '.' or '..' segments; anything else is an
InvalidArgumentError. There are no directories: a file exists, or nothing does.

Files are never changed in place. What a reader sees under a path is one whole version, and what it has read stays
valid whatever happens to the path afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lakebloom.storage.buffers import Buffer, Buffers, Views

__all__ = ["Storage", "StoredFile"]


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file as a listing shows it."""

    path: str
    size_bytes: int
    mtime_ms: int


@runtime_checkable
class Storage(Protocol):
    """A base location and the files below it.

    Every method may raise StorageError, or AccessDeniedError where the store refuses.
    """

    @property
    def uri(self) -> str:
        """The base, in the form that ``lakebloom.storage.uri.normalise`` gives."""
        ...

    def read(self, path: str) -> memoryview:
        """The whole file, read-only. Raises NotFoundError."""
        ...

    def read_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> Views:
        """The bytes of each (offset, length), read-only, in the order asked for.

        A range that reaches beyond the end is a StorageError, a missing file a NotFoundError. An empty range is
        satisfied by any file; no ranges at all touch nothing.
        """
        ...

    def write(self, path: str, data: Buffers) -> None:
        """Store `data` under `path`, replacing what is there. Readers see all of it or nothing.

        Several buffers are stored one after the other, without being joined in memory first where the store can do so.
        """
        ...

    def put_if_absent(self, path: str, data: Buffer) -> None:
        """Store `data` if nothing is stored under `path`; of any number of writers exactly one succeeds.

        When this returns, the file survives a crash of the machine. Raises AlreadyExistsError if another writer was
        first, StorageError where the store cannot promise a single winner or where the outcome could not be learnt.
        """
        ...

    def list(self, prefix: str) -> Iterator[StoredFile]:
        """The files below `prefix`, at any depth and in no particular order.

        The prefix is made of whole segments: 'log' finds 'log/7' and not 'logs/7'; '' is the base. A missing prefix
        lists nothing. Unfinished files are left out.
        """
        ...

    def temporaries(self, prefix: str) -> Iterator[StoredFile]:
        """The unfinished files below `prefix`: those being written now, and those whose writer crashed.

        Nothing tells them apart but their age, so a vacuum passes to `delete` those whose `mtime_ms` lies
        before its grace period. Object stores keep no such files: a PUT is all or nothing, and parts of an aborted
        large upload are invisible until a lifecycle rule of the bucket removes them.
        """
        ...

    def delete(self, path: str) -> None:
        """Remove the file; one that is not there is no error.

        On local disk, directories that became empty go too, up to the base.
        """
        ...
