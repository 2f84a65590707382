"""Every JSON struct that crosses between Java and Python, and how files are sent.

``Wire.java`` has the same structs under the same names; ``STRUCTS`` lists them, and a test compares their fields. Some
are what the index itself works with: ``Reading``, ``DescribedScan`` and ``Written``. A field that is missing, unknown
or of another type is an error when a struct is parsed, on both sides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from lakebloom.index.maintain.auto_refresh import Written
from lakebloom.index.query.explain import DescribedScan, Note, Seen, UnprunedJoin
from lakebloom.index.query.scans import IcebergTable, Reading
from lakebloom.tables.file_columns import text_scalar, whole_numbers

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lakebloom.tables.file_columns import FileColumns

__all__ = [
    "STRUCTS",
    "CatalogTable",
    "DescribedJoin",
    "DescribedScan",
    "FinishedJoin",
    "FinishedQuery",
    "FinishedScan",
    "IcebergSource",
    "JoinFilesReply",
    "JoinFilter",
    "JoinFilterReply",
    "JoinRequest",
    "KeptFiles",
    "ListPickle",
    "PruneReply",
    "PruneRequest",
    "PublishedIndex",
    "RuleSettings",
    "dump",
    "file_lines",
    "parse",
]

T = TypeVar("T")


def parse(text: str, kind: type[T]) -> T:
    """Return what Java sent. Raises msgspec.ValidationError where it is not of this kind."""
    return msgspec.json.decode(text, type=kind)


def dump(struct: object) -> str:
    """Return a struct, or a list of them, as Java reads it."""
    return msgspec.json.encode(struct).decode()


class _Struct(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pass


class ListPickle(_Struct, frozen=True):
    """What PySpark sends to its workers to pass on the rows of a list, but for the bytes at ``free``."""

    pickle: bytes
    free: tuple[int, ...]


class RuleSettings(_Struct, frozen=True):
    """What Java needs to know once."""

    defaults: dict[str, str]
    """Of the settings that Java reads, by their keys."""
    reader_keys: dict[str, list[str]]
    """For each format the settings that change what is read."""
    list_pickles: tuple[ListPickle, ...]


class PublishedIndex(_Struct, frozen=True):
    """An index: the rule calls Python only for its table and its columns."""

    name: str
    locations: tuple[str, ...]
    columns: tuple[tuple[str, ...], ...]
    global_filter: bool
    is_logged: bool = False
    """Whether the log of its table says which files count."""


class PruneRequest(Reading, frozen=True, kw_only=True):
    """A scan to prune by these indexes, and the fingerprints of the files that Java has."""

    indexes: tuple[str, ...]
    known: dict[str, str]


class KeptFiles(_Struct, frozen=True):
    """Which files of an index can match: a bit for each, by its number. Only files that are new are sent."""

    name: str
    fingerprint: str
    bits: bytes
    files: str | None
    after: int
    """How many of the files Java has already; ``files`` are those after them."""
    changed: list[int]
    """The numbers of files that changed since they were indexed, though Spark's listing may not show it."""


class PruneReply(_Struct, frozen=True):
    """What the indexes decided. Java keeps the note with the plan, and does not read it."""

    kept: tuple[KeptFiles, ...]
    note: Note
    reason: str | None
    """Why an index decided nothing; None if all did."""


class JoinRequest(Reading, frozen=True, kw_only=True):
    """A request about the global filter of a column: first, without ``missing``, for its files, then for the filter."""

    index: str
    column: tuple[str, ...]
    mark: str
    """What the SQL of the filter calls the block of a row."""
    known: str
    """The fingerprint of the files that Java has."""
    missing: tuple[tuple[str, int, int, str | None], ...] | None = None
    """The files that the index does not know: path, size, modification time, ETag."""
    filter: str = ""
    """The fingerprint of the filter that Java has."""


class JoinFilesReply(_Struct, frozen=True, omit_defaults=True):
    """The files that a global filter knows, or only the reason why the join is not filtered."""

    reason: str | None = None
    fingerprint: str = ""
    files: str | None = None
    """None if Java has them."""
    after: int = 0
    """How many of the files Java has already; ``files`` are those after them."""


class JoinFilterReply(_Struct, frozen=True, omit_defaults=True):
    """A filter and how to test it, or only the reason why the join is not filtered."""

    reason: str | None = None
    fingerprint: str = ""
    words: bytes | None = None
    """32-bit words, little-endian; None if Java has them."""
    sql: str = ""
    rate: float = 0.0
    size_bytes: int = 0
    merged: int = 0
    """How many files were added to the filter for this query."""


class JoinFilter(_Struct, frozen=True):
    """A filter that is part of a plan."""

    index: str
    column: str
    rate: float
    size_bytes: int
    merged: int


class DescribedJoin(_Struct, frozen=True):
    """A join key with a global filter: the filter of its side, or the reason why there is none."""

    index: str
    column: str
    key: str
    side: str
    join: str
    filter: JoinFilter | None = None
    reason: str | None = None


class FinishedScan(_Struct, frozen=True):
    """What a scan counted. A number that is None is not known."""

    table: str | None = None
    roots: tuple[str, ...] = ()
    files_read: int | None = None
    bytes_read: int | None = None
    rows: int | None = None
    files: int | None = None
    files_kept: int | None = None
    tasks: tuple[bytes, ...] | None = None
    """The pickled tasks of lakebloom's own data source; empty if there are too many."""


class FinishedJoin(_Struct, frozen=True):
    """What a join filter counted, by the name of its column."""

    mark: str
    rows: int
    rows_passed: int


class FinishedQuery(_Struct, frozen=True):
    """The last query of the session."""

    action: str
    seconds: float
    failed: bool
    scans: tuple[FinishedScan, ...]
    joins: tuple[FinishedJoin, ...]


class IcebergSource(_Struct, frozen=True):
    """A table of Iceberg's connector as the source of an index."""

    metadata: str | None = None
    """The metadata file that describes the table now."""
    directory: str | None = None
    """Where the table is, if its directory tells which metadata is the newest."""
    is_fixed: bool = False
    """Whether it was opened from its metadata file, and never has a newer one."""
    name: tuple[str, ...] | None = None
    """Its name in the session's catalogs, the catalog first."""
    part: str | None = None
    """What is read instead of the newest version of the whole table."""


class CatalogTable(_Struct, frozen=True):
    """A table of the session's catalog."""

    location: str
    provider: str
    schema: str
    columns: tuple[str, ...]
    partitions: list[tuple[str | None, ...]] | None = None
    """The location and the values of each; None if the table is all that lies at its location."""


STRUCTS: dict[str, type[msgspec.Struct]] = {
    struct.__name__: struct
    for struct in (
        CatalogTable,
        DescribedJoin,
        DescribedScan,
        FinishedJoin,
        FinishedQuery,
        FinishedScan,
        IcebergSource,
        IcebergTable,
        JoinFilesReply,
        JoinFilter,
        JoinFilterReply,
        JoinRequest,
        KeptFiles,
        ListPickle,
        PruneReply,
        PruneRequest,
        PublishedIndex,
        Reading,
        RuleSettings,
        Seen,
        UnprunedJoin,
        Written,
    )
}


def file_lines(runs: Iterable[FileColumns]) -> str:
    """Return URI, size, modification time and ETag of each file, separated by tabs and ended by a zero character."""
    return "".join(map(_lines, runs))


def _lines(files: FileColumns) -> str:
    etags = pc.if_else(pc.starts_with(files.uris, "file:"), text_scalar(""), files.tags)  # Hadoop knows no inodes
    sizes, times = (whole_numbers(column).cast(pa.large_string()) for column in (files.sizes, files.times))
    ended = pc.binary_join_element_wise(etags, text_scalar(""), text_scalar("\0"))
    lines = pc.binary_join_element_wise(files.uris, sizes, times, ended, text_scalar("\t"))
    return "".join(lines.to_pylist())
