"""Opening Parquet files, on local disk and on object stores.

Local files are read and not memory-mapped. It is as fast, and a file that is cut short while it is read is an error
here, where a map would end the process.

Column chunks are read through a buffer, so that memory does not grow with their size: on a disk in pieces that the
cache likes, from a store in pieces that are worth a request.
"""

from __future__ import annotations

import os
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakebloom.errors import AccessDeniedError, DataFileError, LakebloomError, NotFoundError
from lakebloom.storage.uri import to_local_path
from lakebloom.tables.listing.listing import is_remote
from lakebloom.tables.parquet.arrow_reader import open_reader
from lakebloom.tables.parquet.pages.local_bytes import local_bytes
from lakebloom.tuning import LOCAL_BUFFER_BYTES, REMOTE_BUFFER_BYTES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    import pyarrow.parquet as pq

    from lakebloom.tables.parquet.footer import ArrowFooter
    from lakebloom.tables.parquet.pages.loading import PageBytes
    from lakebloom.tables.parquet.remote_file import ObjectVersion, RemoteFile

__all__ = ["fetched", "open_source", "page_bytes", "parquet_file", "reading", "row_group_reader", "seen_version"]


_GONE = "check the path; the file may have been removed since it was listed"


def open_source(uri: str, options: Mapping[str, str], version: ObjectVersion | None = None) -> pa.NativeFile:
    """Open the file at a canonical URI for random access; `options` and `version` concern object stores only.

    Of an object whose version is known nothing is read yet; any other version of it is then an error.
    Raises NotFoundError, AccessDeniedError or StorageError, and InvalidArgumentError for a scheme that only Spark
    reaches.
    """
    if is_remote(uri):
        # Here and not above: local tables work without loading obstore.
        from lakebloom.tables.parquet.remote_file import RemoteFile, RemoteSource

        return RemoteSource(RemoteFile(uri, options, version), mode="r")
    with reading(uri):
        # As bytes, because names need not be UTF-8.
        return pa.OSFile(os.fsencode(to_local_path(uri)))


def page_bytes(source: pa.NativeFile) -> PageBytes:
    """Return what reads pieces of an open file."""
    remote: RemoteFile | None = getattr(source, "remote", None)
    return local_bytes(source) if remote is None else remote


def fetched(source: pa.NativeFile, ranges: Iterable[tuple[int, int]]) -> AbstractContextManager[None]:
    """Return a block inside of which some ranges of an object are in memory; of a local file nothing is read ahead."""
    remote: RemoteFile | None = getattr(source, "remote", None)
    return nullcontext() if remote is None else remote.fetched(list(ranges))


def seen_version(source: pa.NativeFile) -> ObjectVersion | None:
    """Return the version of an object that all reads of it are of; None where there is none to be relied on."""
    remote: RemoteFile | None = getattr(source, "remote", None)
    return None if remote is None else remote.version


def parquet_file(
    uri: str, source: pa.NativeFile, footer: ArrowFooter, *, dictionaries: Sequence[str] = ()
) -> pq.ParquetFile:
    """Open a file whose footer was read, to scan it; `dictionaries` are dotted paths of columns to read as such."""
    import pyarrow.parquet as pq  # here and not above: lookups do without it

    return pq.ParquetFile(
        source,
        metadata=footer.metadata,
        read_dictionary=list(dictionaries) or None,
        buffer_size=_buffer_bytes(uri),
        pre_buffer=False,
        coerce_int96_timestamp_unit="us",  # nanoseconds end in 2262
    )


def row_group_reader(uri: str, source: pa.NativeFile, footer: ArrowFooter, dictionaries: Collection[int] = ()) -> Any:
    """Open a file whose footer was read, to read row groups; `dictionaries` are numbers of leaves to read as such."""
    buffer_bytes = _buffer_bytes(uri)
    if footer.largest_chunk_bytes <= buffer_bytes:
        buffer_bytes = 0  # a chunk is read at once, and not copied from the buffer
    return open_reader(source, footer.metadata, dictionaries=dictionaries, buffer_bytes=buffer_bytes)


def _buffer_bytes(uri: str) -> int:
    return REMOTE_BUFFER_BYTES if is_remote(uri) else LOCAL_BUFFER_BYTES


@contextmanager
def reading(uri: str) -> Iterator[None]:
    """Raise what Arrow and the operating system raise in this block as the errors of lakebloom."""
    try:
        yield
    except LakebloomError:
        raise
    except FileNotFoundError as error:
        raise NotFoundError(
            f"could not read {uri}",
            found=_first_line(error),
            hint=_GONE,
        ) from error
    except PermissionError as error:
        raise AccessDeniedError(
            f"could not read {uri}", found=_first_line(error), hint="check who may read the file"
        ) from error
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DataFileError(
            f"could not read {uri} as Parquet",
            found=_first_line(error),
            hint="check that the file is complete; until then it has no filter and queries read it",
        ) from error


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).partition("\n")[0]
