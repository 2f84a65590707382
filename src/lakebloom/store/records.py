"""What a log entry holds, as typed records. They are the JSON of docs/FORMAT.md, field by field.

Entries are read strictly: an unknown field is an error, because a reader that ignores what it does not know could skip
what it should not.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

FORMAT_VERSION = 1
LINEAGE = 32
"""How many ancestors a log entry names."""
FOLDERS = ("segments", "global", "partitions")
"""Where the files are that an entry names."""
REPAIR = "`lakebloom repair NAME` or lake.repair_index(name) mends it; until then queries read all files"
"""The hint of every error about damage."""

State: TypeAlias = Literal["active", "deleted", "removed"]
"""``removed``: the index is gone for good and its name is free; the entry keeps the numbers from starting anew."""
Operation: TypeAlias = Literal["create", "replace", "refresh", "optimize", "delete", "restore", "repair", "remove"]
Granularity: TypeAlias = Literal["file", "row_group"] | int


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base of all records."""


class FileRecord(Record, frozen=True):
    """A file of the index, relative to the index's own directory."""

    path: str
    size_bytes: int
    crc32: int


class ColumnRecord(Record, frozen=True):
    """An indexed column: the parts of its name, and its Spark type when the index was created."""

    path: tuple[str, ...]
    type: str


class PartitionsRecord(Record, frozen=True):
    """The partitions of a catalog table, which are in a file of the index."""

    count: int
    places: tuple[str, ...]
    """A few directories outside the table's location in or below which the other partitions lie."""
    file: FileRecord


class CatalogRecord(Record, frozen=True):
    """The table of a catalog."""

    name: tuple[str, ...]
    """Its database and its name."""
    partitions: PartitionsRecord | None = None
    """Null where the table is all that is in its location."""


class SourceRecord(Record, frozen=True):
    """Where the table is and how it is read."""

    format: str
    locations: tuple[str, ...]
    options: dict[str, str] = {}
    table: str | None = None
    schema_json: str | None = None
    """The table's schema as Spark writes it in JSON."""
    partition_columns: tuple[str, ...] = ()
    case_sensitive: bool = False
    """Whether names in files are compared with regard to case."""
    settings: dict[str, str] = {}
    """The settings that change what is read of such files, where they were not Spark's defaults."""
    catalog: CatalogRecord | None = None
    """Null for a table that is a path."""

    @property
    def partitions(self) -> PartitionsRecord | None:
        """The partitions that a catalog lists; None where the table is all that is in its locations."""
        return None if self.catalog is None else self.catalog.partitions

    def with_partitions(self, partitions: PartitionsRecord | None) -> SourceRecord:
        """Return the record of the same table with these partitions."""
        if self.catalog is None:
            return self
        return msgspec.structs.replace(self, catalog=msgspec.structs.replace(self.catalog, partitions=partitions))


class ConfigRecord(Record, frozen=True):
    """What the user asked for."""

    name: str
    columns: tuple[ColumnRecord, ...]
    fpp: float | None
    """The false-positive rate; null follows the number of units."""
    expected_items: int | None
    granularity: Granularity
    global_filter: bool
    allow_plaintext_filters: bool = False
    """Whether columns that are encrypted in the files may be indexed."""


class TileRecord(Record, frozen=True):
    """The filters of some units of a segment, for one column and one layer, block-major."""

    column: int
    """Which column, by its place in the configuration."""
    number: int
    """Which of the column's tiles: the units that name this number, in their order."""
    layer: int
    """0: an ordinary filter over the hash; 1: one over the mixed hash."""
    num_blocks: int
    num_units: int
    blocks_offset: int
    """Where the blocks start in the file."""
    checks_offset: int
    """Where the checksum of each block starts in the file."""
    file: FileRecord


class SegmentRecord(Record, frozen=True):
    """An immutable set of units and their filters."""

    id: str
    types: tuple[str, ...]
    """The Spark type under which each column was hashed here."""
    fpp: float
    num_files: int
    num_units: int
    num_rows: int
    source_bytes: int
    units: FileRecord
    tiles: tuple[TileRecord, ...]

    @property
    def files(self) -> tuple[FileRecord, ...]:
        """All its files."""
        return (self.units, *(tile.file for tile in self.tiles))

    @property
    def size_bytes(self) -> int:
        """The size of all its files."""
        return sum(file.size_bytes for file in self.files)


class GlobalRecord(Record, frozen=True):
    """One filter over a whole column."""

    column: int
    num_blocks: int
    fpp: float
    """Its rate, estimated from its bits."""
    ndv: float | None
    """How many distinct values it holds, estimated from its bits; null for a full one, of which no one can tell."""
    segments: tuple[str, ...]
    """The segments whose values it holds."""
    file: FileRecord


class Entry(Record, frozen=True):
    """One commit: the whole state of an index."""

    version: int
    timestamp_ms: int
    operation: Operation
    state: State
    writer: str
    config: ConfigRecord
    source: SourceRecord
    segments: tuple[SegmentRecord, ...] = ()
    global_filters: tuple[GlobalRecord, ...] = ()
    summary: dict[str, int | float] = {}
    """What the operation did, for people."""
    id: str = ""
    """Made anew for each commit: two writers never put the same bytes."""
    lineage: tuple[str, ...] = ()
    """The ids of the versions before this one, the nearest first, up to ``LINEAGE`` of them."""
    origin: str = ""
    """The id of the commit that created the index, or put it in the place of another: what was built for one is not
    added to the other."""
    files_gone: int = 0
    """How many of the files that it knows the table had no more when it was last refreshed."""

    def descends_from(self, other: Entry) -> bool | None:
        """Tell whether another version is an ancestor; None where the lineage does not reach back so far."""
        generation = self.version - other.version - 1
        return self.lineage[generation] == other.id if 0 <= generation < len(self.lineage) else None

    @property
    def files(self) -> tuple[FileRecord, ...]:
        """All files that this version needs."""
        of_segments = [file for segment in self.segments for file in segment.files]
        partitions = self.source.partitions
        of_table = () if partitions is None else (partitions.file,)
        return (*of_segments, *(record.file for record in self.global_filters), *of_table)

    @property
    def paths(self) -> frozenset[str]:
        """The paths of all files that this version needs."""
        return frozenset(file.path for file in self.files)
