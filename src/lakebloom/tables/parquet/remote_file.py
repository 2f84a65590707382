"""One object of a store as a file that Arrow can read ranges of.

The first request fetches the end of the object, which holds the footer of all but the largest Parquet files, and tells
its size. Every later one asks for the same version of the object: if it is replaced meanwhile, reading fails instead of
mixing the two.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import obstore
from obstore.exceptions import NotSupportedError

from lakebloom.storage.objects.errors import translated
from lakebloom.tables.listing.objects import client_and_key
from lakebloom.tuning import TAIL_BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from obstore import GetOptions, GetResult

__all__ = ["RemoteFile"]

# Arrow looks for a footer in as many bytes.
_REPLACED = "the object may have been replaced while it was read; list the table again"


class RemoteFile(io.RawIOBase):
    """The object at a canonical URI. Raises NotFoundError, AccessDeniedError or StorageError."""

    def __init__(self, uri: str, options: Mapping[str, str]) -> None:
        super().__init__()
        self._uri, self._options = uri, options
        self._store, self._key = client_and_key(uri, options)
        self._at = 0
        with translated(f"could not read {uri}", options):
            tail = self._get_tail()
            self._size_bytes, self._version = tail.meta["size"], tail.meta["e_tag"]
            self._tail_start = tail.range[0]
            self._tail = memoryview(tail.bytes())

    def readable(self) -> bool:
        """See io.IOBase."""
        return True

    def seekable(self) -> bool:
        """See io.IOBase."""
        return True

    def tell(self) -> int:
        """See io.IOBase."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """See io.IOBase."""
        origin = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size_bytes}[whence]
        self._at = max(0, origin + offset)
        return self._at

    def read(self, size: int = -1) -> memoryview:
        """Return up to `size` bytes as a view, which Arrow takes without a copy."""
        start = min(self._at, self._size_bytes)
        end = self._size_bytes if size < 0 else min(start + size, self._size_bytes)
        self._at = end
        if start >= self._tail_start:
            return self._tail[start - self._tail_start : end - self._tail_start]
        options: GetOptions = {"range": (start, end)}
        if self._version is not None:
            options["if_match"] = self._version
        with translated(f"could not read {end - start} bytes at {start} of {self._uri}", self._options, hint=_REPLACED):
            return memoryview(obstore.get(self._store, self._key, options=options).bytes())

    def _get_tail(self) -> GetResult:
        try:
            return obstore.get(self._store, self._key, options={"range": {"suffix": TAIL_BYTES}})
        except NotSupportedError:  # Azure cannot count from the end
            size_bytes = obstore.head(self._store, self._key)["size"]
            start = max(0, size_bytes - TAIL_BYTES)
            return obstore.get(self._store, self._key, options={"range": (start, size_bytes)})
