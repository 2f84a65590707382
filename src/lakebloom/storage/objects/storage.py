"""S3, Google Cloud Storage, Azure and process memory, through obstore.

A PUT shows its object whole or not at all, so temporary objects are not needed. `put_if_absent` is a conditional PUT;
``conditional_proof.py`` proves before the first one that the store honours If-None-Match. Reads are plain GETs of the
key: no listing, and no request for metadata.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import obstore

from lakebloom.storage.buffers import as_views
from lakebloom.storage.checks import check_length, check_new_path, check_path, check_prefix, check_ranges
from lakebloom.storage.local.temporary import is_temporary
from lakebloom.storage.objects.clients import connect
from lakebloom.storage.objects.conditional_proof import prove_single_winner, prove_writable
from lakebloom.storage.objects.conditional_put import OUTCOME_UNKNOWN, create_object
from lakebloom.storage.objects.errors import translated
from lakebloom.storage.objects.ranges import fetch_ranges
from lakebloom.storage.objects.redaction import StorageOptions
from lakebloom.storage.objects.versions import ObjectVersion, read_version, replace_version
from lakebloom.storage.protocol import StoredFile
from lakebloom.storage.uri import split
from lakebloom.tuning import LISTED_AT_ONCE, PUT_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from lakebloom.storage.buffers import Buffer, Buffers, Views

__all__ = ["ObjectStorage"]

# Up to here one request is cheaper than the three or more of an upload in parts.
_MOST_PARTS = 10_000
"""Of an upload to S3."""
_RANGE_HINT = (
    "if the store can be reached, the file is shorter than it was: verify the index and rebuild what is damaged"
)
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MILLISECOND = timedelta(milliseconds=1)


class ObjectStorage:
    """The objects below a canonical URI.

    Pickles as its URI and options, and connects again when it is unpickled. A ``memory:`` storage has its data only
    in the process that wrote it.
    """

    __slots__ = ("_base", "_options", "_store", "_uri")

    def __init__(self, uri: str, options: Mapping[str, str] | None = None) -> None:
        self._uri = uri
        self._options = StorageOptions(options or {})
        self._base = split(uri)[2].strip("/")
        self._store = connect(uri, self._options)

    @property
    def uri(self) -> str:
        """See Storage.uri."""
        return self._uri

    def __repr__(self) -> str:
        return f"ObjectStorage({self._uri!r})"  # without the options, which are secret

    def __reduce__(self) -> tuple[Any, ...]:
        return (ObjectStorage, (self._uri, self._options))

    def read(self, path: str) -> memoryview:
        """See Storage.read."""
        key = self._key(check_path(path))
        with translated(f"could not read {self._shown(path)}", self._options):
            return memoryview(obstore.get(self._store, key).bytes())

    def read_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> Views:
        """See Storage.read_ranges. Ranges less than 256 KiB apart are fetched by one request."""
        key = self._key(check_path(path))
        check_ranges(ranges)
        wanted = [(offset, length) for offset, length in ranges if length]  # obstore refuses empty ranges
        attempt = f"could not read {_described(ranges)} of {self._shown(path)}"
        with translated(attempt, self._options, hint=_RANGE_HINT):
            if wanted:
                fetched = iter(fetch_ranges(self._store, key, wanted))
            elif ranges:
                obstore.head(self._store, key)  # raises for a missing object, although nothing is read
        views = [memoryview(next(fetched)) if length else memoryview(b"") for _, length in ranges]
        for (offset, length), view in zip(ranges, views, strict=True):
            check_length(self._shown(path), offset, length, len(view))
        return views

    def write(self, path: str, data: Buffers) -> None:
        """See Storage.write."""
        key = self._key(check_new_path(path))
        views = as_views(data)
        size_bytes = sum(view.nbytes for view in views)
        with translated(f"could not write {self._shown(path)}", self._options):
            obstore.put(
                self._store,
                key,
                views,
                use_multipart=size_bytes > PUT_BYTES,
                chunk_size=max(PUT_BYTES, -(-size_bytes // _MOST_PARTS)),
            )

    def read_version(self, path: str) -> tuple[memoryview, ObjectVersion]:
        """Return a whole object, and its version."""
        key = self._key(check_path(path))
        with translated(f"could not read {self._shown(path)}", self._options):
            return read_version(self._store, key)

    def replace_version(self, path: str, data: Buffers, seen: ObjectVersion) -> None:
        """Replace a version of an object. Raises StorageError if the object has another version now."""
        scheme, authority, _ = split(self._uri)
        key = self._key(check_new_path(path))
        replace_version(self._store, f"{scheme}://{authority}", key, as_views(data), seen, self._options)

    def put_if_absent(self, path: str, data: Buffer) -> None:
        """See Storage.put_if_absent."""
        key = self._key(check_new_path(path))
        (view,) = as_views(data)
        shown = self._shown(path)
        self.prove_single_winner()
        with translated(f"could not create {shown}", self._options, hint=OUTCOME_UNKNOWN):
            create_object(self._store, key, view, shown_as=shown, options=self._options)

    def prove_single_winner(self) -> None:
        """Raise StorageError if the store lets two writers create the same object. Tests it once in a process."""
        scheme, authority, _ = split(self._uri)
        prove_single_winner(self._store, f"{scheme}://{authority}", self._base, self._options)

    def prove_writable(self) -> None:
        """Raise StorageError if no object can be put, or as ``prove_single_winner``."""
        scheme, authority, _ = split(self._uri)
        prove_writable(self._store, f"{scheme}://{authority}", self._base, self._options)

    def list(self, prefix: str) -> Iterator[StoredFile]:
        """See Storage.list."""
        return (file for file in self._below(check_prefix(prefix)) if not is_temporary(file.path))

    def temporaries(self, prefix: str) -> Iterator[StoredFile]:
        """See Storage.temporaries. There are some only in a copy of a local index."""
        return (file for file in self._below(check_prefix(prefix)) if is_temporary(file.path))

    def delete(self, path: str) -> None:
        """See Storage.delete."""
        key = self._key(check_path(path))
        with translated(f"could not delete {self._shown(path)}", self._options):
            try:
                obstore.delete(self._store, key)
            except FileNotFoundError:
                return  # GCS and Azure report a missing object, S3 does not

    def _below(self, prefix: str) -> Iterator[StoredFile]:
        root = self._key(prefix) if prefix else self._base
        start = len(self._base) + 1 if self._base else 0
        with translated(f"could not list {self._shown(prefix)}", self._options):
            for batch in obstore.list(self._store, root, chunk_size=LISTED_AT_ONCE):
                for found in batch:
                    mtime_ms = (found["last_modified"] - _EPOCH) // _MILLISECOND
                    yield StoredFile(found["path"][start:], found["size"], mtime_ms)

    def _key(self, path: str) -> str:
        return f"{self._base}/{path}" if self._base else path

    def _shown(self, path: str) -> str:
        return f"{self._uri}/{path}"


def _described(ranges: Sequence[tuple[int, int]]) -> str:
    first = ", ".join(f"{length} bytes at {offset}" for offset, length in ranges[:3])
    return first if len(ranges) <= 3 else f"{first} and {len(ranges) - 3} more ranges"
