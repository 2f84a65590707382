"""A storage that lets others act between two operations: races that happen every time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakebloom.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from lakebloom.storage import Buffer, Buffers, Storage, StoredFile, Views

__all__ = ["Doubled", "Meddled", "Unanswered"]


@dataclass
class Passing:
    """Passes everything on to another storage."""

    inner: Storage

    @property
    def uri(self) -> str:
        return self.inner.uri

    def read(self, path: str) -> memoryview:
        return self.inner.read(path)

    def read_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> Views:
        return self.inner.read_ranges(path, ranges)

    def write(self, path: str, data: Buffers) -> None:
        self.inner.write(path, data)

    def put_if_absent(self, path: str, data: Buffer) -> None:
        self.inner.put_if_absent(path, data)

    def list(self, prefix: str) -> Iterator[StoredFile]:
        return self.inner.list(prefix)

    def temporaries(self, prefix: str) -> Iterator[StoredFile]:
        return self.inner.temporaries(prefix)

    def delete(self, path: str) -> None:
        self.inner.delete(path)


@dataclass
class Meddled(Passing):
    """Calls ``meddle`` with the name of an operation before it is done."""

    meddle: Callable[[str], None]

    def read_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> Views:
        self.meddle("read_ranges")
        return super().read_ranges(path, ranges)

    def write(self, path: str, data: Buffers) -> None:
        self.meddle("write")
        super().write(path, data)

    def put_if_absent(self, path: str, data: Buffer) -> None:
        self.meddle("put_if_absent")
        super().put_if_absent(path, data)

    def delete(self, path: str) -> None:
        self.meddle("delete")
        super().delete(path)


@dataclass
class Doubled(Passing):
    """Lists every file twice, as object stores may while they are written to."""

    def list(self, prefix: str) -> Iterator[StoredFile]:
        files = [*super().list(prefix)]
        return iter([*files, *files])


@dataclass
class Unanswered(Passing):
    """Does not tell whether a put-if-absent has taken effect; it has if ``stores``."""

    stores: bool

    def put_if_absent(self, path: str, data: Buffer) -> None:
        if self.stores:
            super().put_if_absent(path, data)
        raise StorageError(f"could not create {path}", found="no answer", hint="look for it before trying again")
