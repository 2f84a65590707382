"""The contents of a commit as typed records. They are the JSON of docs/FORMAT.md, field by field.

Decoding is strict: an unknown field is an error. A reader that ignored it could skip data that it must read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

import msgspec

from lakebloom.tables.access import TableAccess
from lakebloom.tables.column_mapping import ColumnMapping
from lakebloom.tables.column_spec import ColumnSpec
from lakebloom.tables.columns import ColumnPath
from lakebloom.tables.schema import TableSchema

FORMAT_VERSION = 2
LINEAGE = 32
"""How many ancestors a commit names."""
FOLDERS = ("segments", "global", "partitions")
"""The directories of the files that a commit names."""
REPAIR = "`lakebloom repair NAME` or lake.repair_index(name) repairs it; until then queries read all files"
"""The hint of every error about damage."""

State: TypeAlias = Literal["active", "deleted", "removed"]
"""``removed``: the index is gone and its name is free. The commit stays so that version numbers go on from it."""
Operation: TypeAlias = Literal["create", "replace", "refresh", "optimize", "delete", "restore", "repair", "remove"]
Granularity: TypeAlias = Literal["auto", "file", "row_group", "page"] | int
"""What one filter covers. "auto": pages where files have several units of them, otherwise files."""


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base of all records."""


class FileRecord(Record, frozen=True):
    """A file of the index. The path is relative to the index's directory."""

    path: str
    size_bytes: int
    crc32: int


class BatchedRecord(FileRecord, frozen=True):
    """A table of a segment in batches, of which a query reads only some (``batched_file``)."""

    head_bytes: int
    """The size of the head, which describes the batches."""
    head_crc32: int


class ColumnRecord(Record, frozen=True, omit_defaults=True):
    """An indexed column: the parts of its name, and its Spark type at the time the index was created."""

    path: tuple[str, ...]
    type: str
    physical: tuple[str, ...] = ()
    """What files call it, where that is another name. It stays when the column is renamed."""
    ids: tuple[int, ...] = ()
    """The ids of its parts, where files are read by ids."""

    @property
    def spec(self) -> ColumnSpec:
        """How it is found in files, with the type that it had when the index was created."""
        return self.spec_as(self.type)

    def spec_as(self, kind: str) -> ColumnSpec:
        """How it is found in files, to be read as a type."""
        return ColumnSpec(self.physical_path, kind, self.ids)

    @property
    def physical_path(self) -> tuple[str, ...]:
        """What files call it: a column is the same as long as this is."""
        return self.physical or self.path


class PartitionsRecord(Record, frozen=True):
    """The partitions of a catalog table, listed in a file of the index."""

    count: int
    places: tuple[str, ...]
    """A few directories that contain all partitions outside the table's location."""
    file: FileRecord


class CatalogRecord(Record, frozen=True):
    """A table of a catalog."""

    name: tuple[str, ...]
    """The database and the table's name; of an Iceberg table the name of the session's catalog before them."""
    partitions: PartitionsRecord | None = None
    """Null if the table consists of all files below its location."""


class SnapshotRecord(Record, frozen=True):
    """The version of a table with a log of its own that was last indexed."""

    format: Literal["delta", "iceberg"]
    table_id: str
    version: int
    """The number of a Delta table's version, the id of an Iceberg table's snapshot (0: it has none yet)."""
    mapping: ColumnMapping = ColumnMapping.NONE
    """How files call the columns."""
    metadata: str | None = None
    """The metadata file of an Iceberg table that describes this version."""
    catalog: str | None = None
    """The name of an Iceberg table in a catalog of pyiceberg, as catalog.namespace.table; null if it has a path."""
    fixed: bool = False
    """Whether an Iceberg table was named by its metadata file: then it never has a newer version."""
    name_mapping: str | None = None
    """Which ids the names of files without ids mean, as an Iceberg table has it in JSON."""


class TableRecord(Record, frozen=True):
    """Where the table is and how it is read."""

    format: str
    locations: tuple[str, ...]
    options: dict[str, str] = {}
    name: str | None = None
    schema_json: str | None = None
    """The table's schema as Spark writes it in JSON."""
    partition_columns: tuple[str, ...] = ()
    case_sensitive: bool = False
    """Whether names of columns are case-sensitive."""
    settings: dict[str, str] = {}
    """Reader settings that differ from Spark's defaults and change the values that are read from such files."""
    catalog: CatalogRecord | None = None
    """Null for a table given by its path."""
    snapshot: SnapshotRecord | None = None
    """Null for a table that consists of the files in its directories, without a log that says which of them count."""

    @property
    def is_of_session(self) -> bool:
        """Whether only a catalog of Spark's session knows the newest version of a table with a log."""
        return self.catalog is not None and self.snapshot is not None

    @property
    def mapping(self) -> ColumnMapping:
        """How files call the columns."""
        return ColumnMapping.NONE if self.snapshot is None else self.snapshot.mapping

    @property
    def schema(self) -> TableSchema:
        """The table's columns; none where they are not recorded."""
        return TableSchema.parse(
            self.schema_json,
            case_sensitive=self.case_sensitive,
            mapping=self.mapping,
            name_mapping=self.name_mapping,
        )

    @property
    def name_mapping(self) -> str | None:
        """Which ids the names of files without ids mean."""
        return None if self.snapshot is None else self.snapshot.name_mapping

    def spec(self, path: ColumnPath, kind: str) -> ColumnSpec:
        """Return how a column is found in files, to be read as a type."""
        column = self.schema.physical[path]
        return ColumnSpec(column.path, kind, column.ids)

    def access(self, options: Mapping[str, str]) -> TableAccess:
        """Return how the table's files are read. ``options`` are those of its object store."""
        return TableAccess(options, self.case_sensitive, self.name_mapping)

    @property
    def file_schema(self) -> TableSchema:
        """The columns that files have: all but those of partitions."""
        return TableSchema.parse(
            self.schema_json,
            case_sensitive=self.case_sensitive,
            without=self.partition_columns,
            mapping=self.mapping,
            name_mapping=self.name_mapping,
        )

    @property
    def partitions(self) -> PartitionsRecord | None:
        """The partitions that a catalog lists; None if the table consists of all files below its locations."""
        return None if self.catalog is None else self.catalog.partitions

    def with_partitions(self, partitions: PartitionsRecord | None) -> TableRecord:
        """Return a copy with these partitions."""
        if self.catalog is None:
            return self
        return msgspec.structs.replace(self, catalog=msgspec.structs.replace(self.catalog, partitions=partitions))


class ConfigRecord(Record, frozen=True):
    """The configuration that the user gave."""

    name: str
    columns: tuple[ColumnRecord, ...]
    fpp: float | None
    """The false-positive rate; null if it follows from the number of units."""
    expected_items: int | None
    granularity: Granularity
    global_filter: bool
    allow_plaintext_filters: bool = False
    """Whether columns that are encrypted in the files may be indexed."""


class PartRecord(Record, frozen=True):
    """A file with some rows of a tile, which follow those of the part before."""

    num_blocks: int
    """How many rows: one for each block number."""
    file: FileRecord


class TileRecord(Record, frozen=True):
    """The filters of some units of a segment, for one column and one layer, as bit planes."""

    column: int
    """The column's position in the configuration."""
    number: int
    """The tile's number within the column. Its units are those that name this number, in their order."""
    layer: int
    """0: a filter over the hash; n: a filter over the hash that was mixed n times."""
    num_blocks: int
    num_units: int
    parts: tuple[PartRecord, ...]

    @property
    def size_bytes(self) -> int:
        """The size of all parts."""
        return sum(part.file.size_bytes for part in self.parts)


class PagesRecord(Record, frozen=True):
    """Where pages of the table's files lie, for files that do not say so themselves."""

    table: BatchedRecord
    """One row for each file of the segment."""
    parts: tuple[FileRecord, ...]


class SegmentRecord(Record, frozen=True, omit_defaults=True):
    """An immutable set of units and their filters."""

    id: str
    types: tuple[str, ...]
    """The Spark type of each column when it was hashed."""
    fpp: float
    num_files: int
    num_units: int
    num_rows: int
    data_bytes: int
    uris: tuple[str, str]
    """The smallest and the largest URI of its files. Segments that do not overlap have no file in common."""
    table_files: BatchedRecord
    """The table's files: one row for each."""
    units: BatchedRecord
    """One row for each unit: which rows it covers."""
    facts: tuple[BatchedRecord, ...]
    """For each column, one row for each unit: NULLs, bounds, and the tile of its filter."""
    tiles: tuple[TileRecord, ...]
    pages: PagesRecord | None = None
    """Where pages lie; absent if it is recorded for no file."""

    @property
    def tables(self) -> tuple[BatchedRecord, ...]:
        """The files that describe its units."""
        return (self.table_files, self.units, *self.facts)

    @property
    def page_files(self) -> tuple[FileRecord, ...]:
        """The files that say where pages lie."""
        return () if self.pages is None else (self.pages.table, *self.pages.parts)

    @property
    def files(self) -> tuple[FileRecord, ...]:
        """All its files."""
        return (*self.tables, *self.page_files, *(part.file for tile in self.tiles for part in tile.parts))

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
    """Its number of distinct values, estimated from its bits; null for a full filter, which allows no estimate."""
    segments: tuple[str, ...]
    """The segments whose values it contains."""
    file: FileRecord


class Commit(Record, frozen=True):
    """One commit: the whole state of an index."""

    version: int
    timestamp_ms: int
    operation: Operation
    state: State
    writer: str
    config: ConfigRecord
    table: TableRecord
    segments: tuple[SegmentRecord, ...] = ()
    global_filters: tuple[GlobalRecord, ...] = ()
    summary: dict[str, int | float] = {}
    """What the operation did, for people to read."""
    id: str = ""
    """Random for each commit, so that two writers never put the same bytes."""
    lineage: tuple[str, ...] = ()
    """The ids of the versions before this one, the newest first, at most ``LINEAGE``."""
    origin: str = ""
    """The id of the commit that created or replaced the index. What was built for another origin is not added."""
    files_gone: int = 0
    """How many indexed files the table no longer had at the last refresh."""

    def descends_from(self, other: Commit) -> bool | None:
        """Tell whether another version is an ancestor; None if the lineage does not reach back that far."""
        generation = self.version - other.version - 1
        return self.lineage[generation] == other.id if 0 <= generation < len(self.lineage) else None

    @property
    def files(self) -> tuple[FileRecord, ...]:
        """All files that this version needs."""
        of_segments = [file for segment in self.segments for file in segment.files]
        partitions = self.table.partitions
        of_table = () if partitions is None else (partitions.file,)
        return (*of_segments, *(record.file for record in self.global_filters), *of_table)

    @property
    def paths(self) -> frozenset[str]:
        """The paths of all files that this version needs."""
        return frozenset(file.path for file in self.files)
