"""A storage that counts what is read from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lakebloom.storage.several import read_each

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lakebloom.storage.buffers import Buffer, Buffers, Views
    from lakebloom.storage.protocol import Storage, StoredFile

__all__ = ["Metered"]


class Metered:
    """Delegates to another storage."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self.bytes_read = 0

    @property
    def uri(self) -> str:
        """The base of the other storage."""
        return self._storage.uri

    def read(self, path: str) -> memoryview:
        """Read, and count the bytes."""
        data = self._storage.read(path)
        self.bytes_read += data.nbytes
        return data

    def read_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> Views:
        """Read, and count the bytes."""
        self.bytes_read += sum(length for _, length in ranges)
        return self._storage.read_ranges(path, ranges)

    def read_each(self, requests: Sequence[tuple[str, int, int]], seen: set[str] | None = None) -> Views:
        """Read, and count the bytes."""
        self.bytes_read += sum([length for _, _, length in requests])
        return read_each(self._storage, requests, seen)

    def __getattr__(self, name: str) -> Any:
        """Return any other attribute of the other storage."""
        if name == "_storage":  # not set yet
            raise AttributeError(name)
        return getattr(self._storage, name)

    def write(self, path: str, data: Buffers) -> None:
        """Pass on."""
        self._storage.write(path, data)

    def put_if_absent(self, path: str, data: Buffer) -> None:
        """Pass on."""
        self._storage.put_if_absent(path, data)

    def list(self, prefix: str) -> Iterator[StoredFile]:
        """Pass on."""
        return self._storage.list(prefix)

    def temporaries(self, prefix: str) -> Iterator[StoredFile]:
        """Pass on."""
        return self._storage.temporaries(prefix)

    def delete(self, path: str) -> None:
        """Pass on."""
        self._storage.delete(path)
