"""What makes a file the same file: its URI, its size and the time of its last change.

A filter is trusted only for the file it was built from, so whoever lists a table (Spark, obstore, plain Python) has to
write these three down in the same way:

    uri         the canonical, decoded form of ``lakebloom.storage.uri``
    size_bytes  as listed
    mtime_ms    rounded down, as Java does: to milliseconds on disks and HDFS, to whole seconds on object stores

Object stores tell seconds only: S3 and Azure always, GCS and MinIO when asked for one object. Their listings may show
milliseconds of the same moment, and Hadoop's connectors pass on the one or the other, so the milliseconds cannot be
part of what a file is.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Self

__all__ = ["OBJECT_SCHEMES", "TableFile", "comparable_mtime_ms", "is_reachable"]

OBJECT_SCHEMES = frozenset({"s3", "gs", "az", "abfs", "memory"})
"""The schemes that obstore serves."""


class _Identity(NamedTuple):
    uri: str
    size_bytes: int
    mtime_ms: int


class TableFile(_Identity):
    """A file's identity. A tuple, because there may be millions, and what is done most is to compare them.

    >>> TableFile("s3://lake/t/a.parquet", 10, 1_700_000_000_123).mtime_ms
    1700000000000
    """

    __slots__ = ()

    def __new__(cls, uri: str, size_bytes: int, mtime_ms: int) -> Self:
        """Take a file as it was listed."""
        # Here and not with the listers, so that none of them forgets it.
        return tuple.__new__(cls, (uri, size_bytes, comparable_mtime_ms(uri, mtime_ms)))

    @classmethod
    def stored(cls, uris: Iterable[str], sizes: Iterable[int], times: Iterable[int]) -> list[Self]:
        """Return files as they were written down: their times are comparable already."""
        return list(map(partial(tuple.__new__, cls), zip(uris, sizes, times, strict=True)))


def comparable_mtime_ms(uri: str, mtime_ms: int) -> int:
    """The modification time of the file at a canonical URI, as far as all listers agree on it.

    >>> comparable_mtime_ms("file:///t/a.parquet", 1_700_000_000_123)
    1700000000123
    """
    if not uri.startswith("file:") and uri.partition(":")[0] in OBJECT_SCHEMES:
        return mtime_ms - mtime_ms % 1000
    return mtime_ms


def is_reachable(uri: str) -> bool:
    """Tell whether a file can be read without Spark.

    >>> is_reachable("s3://lake/t/a.parquet"), is_reachable("hdfs://nn/t/a.parquet")
    (True, False)
    """
    scheme = uri.partition(":")[0]
    return scheme == "file" or scheme in OBJECT_SCHEMES
