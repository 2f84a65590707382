"""What makes a file the same file: its URI, size and time of last change, and what else its place can tell.

A filter is trusted only for the file it was built from, so whoever lists a table (Spark, obstore, plain Python) has to
write these down in the same way:

    uri         the canonical, decoded form of ``lakebloom.storage.uri``
    size_bytes  as listed
    mtime_ms    rounded down, as Java does: to milliseconds on disks and HDFS, to whole seconds on object stores
    tag         on object stores the ETag; on local disks inode, time of change of the inode, and the nanoseconds of
                mtime_ms; empty where the asker cannot know it; ``LOGGED`` for a file that a table's log lists: then
                time and size are those of the log, which is the only one that is asked

Object stores tell seconds only: S3 and Azure always, GCS and MinIO when asked for one object. Their listings may show
milliseconds of the same moment, and Hadoop's connectors pass on the one or the other, so the milliseconds cannot be
part of what a file is.

Size and time alone cannot tell a file from one of the same length that was written in the same second, or that was
given the same time (``cp -p``, ``rsync -t``). The tag can. Hadoop shows no inode, and Spark drops most ETags, so files
are compared by what both sides know: always with ``is_same`` or ``unlike``, never with ``==``.
docs/FILE_IDENTITY.md says what is left.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from lakebloom.storage.uri import from_decoded

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping, Sequence

__all__ = [
    "LOGGED",
    "NS_PER_MS",
    "OBJECT_SCHEMES",
    "TableFile",
    "comparable_mtime_ms",
    "etag_tag",
    "is_logged",
    "is_object",
    "is_reachable",
    "is_same",
    "local_changed_ns",
    "local_file",
    "local_tag",
    "spark_file",
    "unlike",
]

OBJECT_SCHEMES = frozenset({"s3", "gs", "az", "abfs", "memory"})
"""The schemes that obstore serves."""
LOGGED = "log"
"""The tag of a file of a table with a log. Such files are written once, and the log's time is not that of the disk."""
_WEAK_ETAG = "W/"
NS_PER_MS = 1_000_000


class _Identity(NamedTuple):
    uri: str
    size_bytes: int
    mtime_ms: int
    tag: str


class TableFile(_Identity):
    """A file's identity. A tuple, because there may be millions, and what is done most is to compare them.

    >>> TableFile("s3://lake/t/a.parquet", 10, 1_700_000_000_123).mtime_ms
    1700000000000
    """

    __slots__ = ()

    def __new__(cls, uri: str, size_bytes: int, mtime_ms: int, tag: str = "") -> TableFile:
        """Take a file as it was listed."""
        # Here and not with the listers, so that none of them forgets it.
        return tuple.__new__(cls, (uri, size_bytes, comparable_mtime_ms(uri, mtime_ms), tag))

    @classmethod
    def listed(cls, root_uri: str, files: Sequence[tuple[str, int, int, str]]) -> list[TableFile]:
        """Take files at or below a place as they were listed: URI, size, time and tag of each."""
        if is_object(root_uri):
            return [cls(*file) for file in files]
        return list(map(partial(tuple.__new__, cls), files))

    @classmethod
    def stored(
        cls, uris: Iterable[str], sizes: Iterable[int], times: Iterable[int], tags: Iterable[str]
    ) -> list[TableFile]:
        """Return files as they were written down: their times are comparable already."""
        return list(map(partial(tuple.__new__, cls), zip(uris, sizes, times, tags, strict=True)))


def is_same(known: TableFile | None, now: TableFile | None) -> bool:
    """Tell whether a file is the one that is known, by everything that both sides know. No file is like None.

    >>> indexed = TableFile("file:///t/a", 10, 5, "7f.1.0")
    >>> is_same(indexed, TableFile("file:///t/a", 10, 5)), is_same(indexed, TableFile("file:///t/a", 10, 5, "80.1.0"))
    (True, False)
    """
    if known is None or now is None:
        return False
    return known == now or (known[:3] == now[:3] and not (known.tag and now.tag))


def is_logged(file: TableFile) -> bool:
    """Tell whether a log lists the file, so that it must not be compared with what its store says."""
    return file.tag == LOGGED


def unlike(known: Mapping[str, TableFile], listed: Iterable[TableFile]) -> list[TableFile]:
    """Return those of the listed files that are not known, by URI, as they are listed: new or changed."""
    # Most are equal, and that is found out without a call.
    return [file for file in listed if (before := known.get(file[0])) != file and not is_same(before, file)]


def local_file(uri: str, status: os.stat_result) -> TableFile:
    """Return the identity of a file on local disk. ``local_changed_ns`` reads the tag."""
    return TableFile(uri, status.st_size, status.st_mtime_ns // NS_PER_MS, local_tag(status))


def local_tag(status: os.stat_result) -> str:
    """Return the tag of a file on local disk."""
    return f"{status.st_ino:x}.{status.st_ctime_ns:x}.{status.st_mtime_ns % NS_PER_MS:x}"


def local_changed_ns(tag: str) -> int:
    """Return when an inode was last changed, by the clock of its file system.

    >>> local_changed_ns("7f.3e8.0")
    1000
    """
    return int(tag.split(".")[1], 16)


def changed_ms(file: TableFile) -> int:
    """Return when a file was last changed, by the clock of its store: on local disk also its inode counts.

    >>> changed_ms(TableFile("file:///t/a", 10, 5, "7f.f4240.0")), changed_ms(TableFile("s3://b/a", 10, 5000, "9b2cf"))
    (5, 5000)
    """
    has_inode = file.tag and file.uri.startswith("file:") and not is_logged(file)
    inode_ms = local_changed_ns(file.tag) // NS_PER_MS if has_inode else 0
    return max(file.mtime_ms, inode_ms)


def spark_file(path: str, size_bytes: int, mtime_ms: int, etag: str | None) -> TableFile:
    """Return the identity of a file as Spark lists it: the path as Hadoop prints it, the ETag where Spark kept it."""
    return TableFile(from_decoded(path), size_bytes, mtime_ms, etag_tag(etag))


def etag_tag(etag: str | None) -> str:
    """Return an ETag without what only some ways of asking put around it.

    >>> etag_tag('"9b2cf"'), etag_tag('W/"9b2cf"'), etag_tag(None)
    ('9b2cf', '9b2cf', '')
    """
    plain = (etag or "").strip().removeprefix(_WEAK_ETAG).strip('"')
    return plain if plain.isprintable() else ""


def comparable_mtime_ms(uri: str, mtime_ms: int) -> int:
    """The modification time of the file at a canonical URI, as far as all listers agree on it.

    >>> comparable_mtime_ms("file:///t/a.parquet", 1_700_000_000_123)
    1700000000123
    """
    return mtime_ms - mtime_ms % 1000 if is_object(uri) else mtime_ms


def is_object(uri: str) -> bool:
    """Tell whether obstore serves the file at a canonical URI."""
    return not uri.startswith("file:") and uri.partition(":")[0] in OBJECT_SCHEMES


def is_reachable(uri: str) -> bool:
    """Tell whether a file can be read without Spark.

    >>> is_reachable("s3://lake/t/a.parquet"), is_reachable("hdfs://nn/t/a.parquet")
    (True, False)
    """
    return uri.startswith("file:") or is_object(uri)
