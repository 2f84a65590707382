"""A storage that lets others act between two operations: races that happen every time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakebloom.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Sequence

    from lakebloom.storage import Buffer, Buffers, Storage, StoredFile, Views

__all__ = ["ANY", "Doubled", "Meanwhile", "Passing", "Unanswered"]

ANY = ("read_ranges", "write", "put_if_absent", "delete")


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
class Meanwhile:
    """Another writer, who acts before an operation of the storage that this wraps: the first time, or more often.

    >>> refresh = Meanwhile(lambda: lake.refresh())  # doctest: +SKIP
    >>> lake.vacuum(catalog=lake.catalog(refresh))  # doctest: +SKIP
    """

    act: Callable[[], object]
    before: Container[str] = ("put_if_absent",)
    times: float = 1
    acted: int = 0

    def __call__(self, storage: Storage) -> Storage:
        return _Meddled(storage, self)

    def at(self, operation: str) -> None:
        if operation in self.before and self.acted < self.times:
            self.acted += 1
            self.act()


@dataclass
class _Meddled(Passing):
    other: Meanwhile

    def read_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> Views:
        self.other.at("read_ranges")
        return super().read_ranges(path, ranges)

    def write(self, path: str, data: Buffers) -> None:
        self.other.at("write")
        super().write(path, data)

    def put_if_absent(self, path: str, data: Buffer) -> None:
        self.other.at("put_if_absent")
        super().put_if_absent(path, data)

    def delete(self, path: str) -> None:
        self.other.at("delete")
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
