"""One object of a store as a file that Arrow can read ranges of, and pieces of which are read at the same time.

The first request fetches the end of the object, which holds the footer of all but the largest Parquet files, and tells
its size and version. Every later one asks for the same version of the object: if it is replaced meanwhile, reading
fails instead of mixing the two. Where the version is known from before, nothing is fetched to begin with.
"""

from __future__ import annotations

import io
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import obstore
import pyarrow as pa
from obstore.exceptions import NotSupportedError

from lakebloom.storage.objects.errors import translated
from lakebloom.tables.listing.objects import client_and_key, file_of
from lakebloom.tables.parquet.pages.chosen import Piece
from lakebloom.tuning import FETCHED_BYTES, GAP_BYTES, REQUESTS, TAIL_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from obstore import GetOptions, GetResult

    from lakebloom.tables.file_identity import TableFile

__all__ = ["ObjectVersion", "RemoteFile", "RemoteSource"]

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")

# Arrow looks for a footer in as many bytes.
_REPLACED = "the object may have been replaced while it was read; list the table again"


class ObjectVersion(NamedTuple):
    """One version of an object."""

    file: TableFile
    e_tag: str


class RemoteSource(pa.PythonFile):  # type: ignore[misc]  # PyArrow has no types
    """A remote file for Arrow."""

    def __init__(self, remote: RemoteFile, mode: str) -> None:
        self.remote = remote


class RemoteFile(io.RawIOBase):
    """The object at a canonical URI. Raises NotFoundError, AccessDeniedError or StorageError."""

    is_remote = True

    def __init__(self, uri: str, options: Mapping[str, str], version: ObjectVersion | None = None) -> None:
        super().__init__()
        self._uri, self._options = uri, options
        self._store, self._key = client_and_key(uri, options)
        self._at = 0
        self._fetched: list[tuple[int, memoryview]] = []
        if version is not None:
            self.version: ObjectVersion | None = version
            self.size_bytes = self._tail_start = version.file.size_bytes
            self._tail = memoryview(b"")
            return
        with translated(f"could not read {uri}", options):
            tail = self._get_tail()
            file, e_tag = file_of(uri, tail.meta), tail.meta["e_tag"]
            self.version = None if e_tag is None else ObjectVersion(file, e_tag)
            self.size_bytes = file.size_bytes
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
        origin = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self.size_bytes}[whence]
        self._at = max(0, origin + offset)
        return self._at

    def read(self, size: int = -1) -> memoryview:
        """Return up to `size` bytes as a view, which Arrow takes without a copy."""
        start = min(self._at, self.size_bytes)
        end = self.size_bytes if size < 0 else min(start + size, self.size_bytes)
        self._at = end
        return self._range(start, end)

    @contextmanager
    def fetched(self, ranges: Sequence[tuple[int, int]]) -> Iterator[None]:
        """Fetch some ranges of the object, all at once; inside the block they are read from memory.

        Arrow reads one column chunk after the other, and each would wait for a request of its own.
        """
        missing = [Piece(start, end - start, 0) for start, end in ranges if 0 <= start < min(end, self._tail_start)]
        if len(missing) > 1 and sum(piece.length for piece in missing) <= FETCHED_BYTES:
            groups = _close_together(missing)
            starts = [group[0].offset for group in groups]
            views = _at_once(lambda group: self._range(*_extent(group)), groups)
            self._fetched = list(zip(starts, views, strict=True))
        try:
            yield
        finally:
            self._fetched = []

    def fill(self, target: memoryview, pieces: Sequence[Piece]) -> None:
        """See PageBytes. Pieces that lie close to each other are fetched by one request, all requests at once."""
        _at_once(lambda group: self._fill(target, group), _close_together(pieces))

    def _fill(self, target: memoryview, pieces: Sequence[Piece]) -> None:
        start, end = _extent(pieces)
        data = self._range(start, end)
        if len(data) < end - start:
            raise OSError(f"{self._uri} ends {end - start - len(data)} bytes before the end of a page")
        for offset, length, position in pieces:
            target[position : position + length] = data[offset - start : offset - start + length]

    def _range(self, start: int, end: int) -> memoryview:
        if start >= self._tail_start:
            return self._tail[start - self._tail_start : end - self._tail_start]
        for offset, view in self._fetched:
            if offset <= start and end <= offset + len(view):
                return view[start - offset : end - offset]
        options: GetOptions = {"range": (start, end)}
        if self.version is not None:
            options["if_match"] = self.version.e_tag
        with translated(f"could not read {end - start} bytes at {start} of {self._uri}", self._options, hint=_REPLACED):
            return memoryview(obstore.get(self._store, self._key, options=options).bytes())

    def _get_tail(self) -> GetResult:
        try:
            return obstore.get(self._store, self._key, options={"range": {"suffix": TAIL_BYTES}})
        except NotSupportedError:  # Azure cannot count from the end
            size_bytes = obstore.head(self._store, self._key)["size"]
            start = max(0, size_bytes - TAIL_BYTES)
            return obstore.get(self._store, self._key, options={"range": (start, size_bytes)})


def _at_once(call: Callable[[ItemT], ResultT], items: Sequence[ItemT]) -> list[ResultT]:
    """Return what a call that waits for the store gives for each of some items."""
    if len(items) == 1:
        return [call(items[0])]
    with ThreadPoolExecutor(min(len(items) or 1, REQUESTS), thread_name_prefix="lakebloom") as threads:
        return list(threads.map(call, items))


def _extent(pieces: Sequence[Piece]) -> tuple[int, int]:
    """Return where the first of some pieces begins and the last one ends."""
    return pieces[0].offset, max(piece.offset + piece.length for piece in pieces)


def _close_together(pieces: Sequence[Piece]) -> list[list[Piece]]:
    groups: list[list[Piece]] = []
    end = 0
    for piece in sorted(pieces):
        if groups and piece.offset - end <= GAP_BYTES:
            groups[-1].append(piece)
            end = max(end, piece.offset + piece.length)
        else:
            groups.append([piece])
            end = piece.offset + piece.length
    return groups
