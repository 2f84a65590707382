"""The table of an index as its owner describes it now: where it is, its columns, and the partitions of a catalog.

The owner of a path is the file system. The owner of a catalog table is the catalog, which only Spark can query; without
Spark it is what the catalog said when the index was built or refreshed (docs/LOOKUPS.md). The owner of a table with a
log is the log alone. The log of an Iceberg table in a catalog of Spark's session begins where that catalog says: the
session tells it each time, and without one nothing is assumed.
"""

from __future__ import annotations

import base64
import zlib
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

import msgspec

from lakebloom.errors import NotFoundError, UnsupportedSourceError
from lakebloom.index.as_of import NEWEST, AsOf
from lakebloom.storage.uri import from_decoded
from lakebloom.store.partition_lists import write_partitions
from lakebloom.store.records import CatalogRecord, SnapshotRecord, TableRecord
from lakebloom.tables.formats.logs import delta_log, iceberg_table
from lakebloom.tables.formats.partition_list import PartitionList, Values
from lakebloom.tables.listing.glob import escape, fixed_part
from lakebloom.tables.listing.listing import list_files, require_plain_locations
from lakebloom.tables.spark_schema import parse_struct

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from lakebloom.index.snapshot import Snapshot
    from lakebloom.storage import Storage
    from lakebloom.tables.file_identity import TableFile
    from lakebloom.tables.formats.iceberg.table import IcebergTable, Source
    from lakebloom.tables.formats.table_snapshot import DataFile, TableSnapshot
    from lakebloom.tables.listing.inotify import Watch

__all__ = [
    "NEWEST",
    "AsOf",
    "CurrentTable",
    "delta_record",
    "described",
    "iceberg_log",
    "iceberg_record",
    "logged_table",
    "pinned_table",
    "places_of",
    "recorded_table",
    "table_at",
]


class _Travelling(msgspec.Struct, frozen=True):
    record: TableRecord
    values: dict[str, Values] | None


class CurrentTable(NamedTuple):
    """A table. ``partitions`` and ``snapshot`` are None if it consists of all files below its locations."""

    record: TableRecord
    partitions: PartitionList | None = None
    snapshot: TableSnapshot | None = None
    """The version of a table with a log."""

    @property
    def locations(self) -> tuple[str, ...]:
        """Its locations: glob patterns."""
        return self.record.locations

    @property
    def values(self) -> Mapping[str, Values] | None:
        """The partition values of each directory; None if they are in the names of directories."""
        return None if self.partitions is None else self.partitions.values

    def list_files(
        self, options: Mapping[str, str], watch: Watch | None = None, *, look_above: bool = True
    ) -> Sequence[TableFile]:
        """Return its files, sorted by URI. Raises what ``lakebloom.tables.listing.listing.list_files`` raises.

        The location of a catalog table may not exist yet: then it has no files.
        """
        if self.snapshot is not None:
            return self.snapshot.files
        if self.partitions is not None:
            return self.partitions.list_files(options, watch, look_above=look_above)
        try:
            return list_files(self.locations, options, watch, look_above=look_above)
        except NotFoundError:
            if self.record.catalog is None:
                raise
            if watch is not None:
                watch.give_up()
            return []

    def require_plain(self, options: Mapping[str, str] | None) -> None:
        """Raise UnsupportedSourceError if it belongs to Delta Lake, Iceberg or Hudi by now. Lists only markers."""
        if self.snapshot is None:
            require_plain_locations(self.locations, options)

    @property
    def metadata_uri(self) -> str:
        """The metadata file that describes an Iceberg table; empty for any other table."""
        return getattr(self.snapshot, "metadata_uri", "")

    @property
    def logged(self) -> Mapping[str, DataFile] | None:
        """The files of a table with a log, by URI; None for any other table."""
        return None if self.snapshot is None else self.snapshot.data_files

    @property
    def holds_all(self) -> bool:
        """Whether every indexed file can be one of the table's: all are below its locations."""
        return self.snapshot is None and self.partitions is None and self.record.catalog is None

    def may_hold(self, uri: str) -> bool:
        """Tell by its name whether an indexed file can be one of the table's. A log knows; a name may mislead."""
        if self.snapshot is not None:
            return uri in self.snapshot.data_files
        if self.holds_all:
            return True
        if self.partitions is not None:
            return uri in self.partitions
        return any(uri == place or uri.startswith(f"{place}/") for place in map(fixed_part, self.locations))

    def to_text(self) -> str:
        """Return the table as text, to send it with a query."""
        values = None if self.partitions is None else self.partitions.values
        return base64.b64encode(zlib.compress(msgspec.json.encode(_Travelling(self.record, values)))).decode()

    @classmethod
    def from_text(cls, text: str) -> CurrentTable:
        """Return the table from such a text."""
        found = msgspec.json.decode(zlib.decompress(base64.b64decode(text)), type=_Travelling)
        if found.values is None:
            return cls(found.record)
        return cls(found.record, PartitionList(fixed_part(found.record.locations[0]), found.values))

    def stored(self, storage: Storage, operation_id: str, known: TableRecord | None = None) -> TableRecord:
        """Return the record for a commit, after writing the partitions to a file unless ``known`` has the same."""
        if self.partitions is None:
            return self.record.with_partitions(None)
        record = write_partitions(
            storage, self.partitions, f"{operation_id}-", None if known is None else known.partitions
        )
        return self.record.with_partitions(record)


def recorded_table(snapshot: Snapshot, options: Mapping[str, str] | None = None) -> CurrentTable:
    """Return the table as the last build or refresh found it; a table with a log as its log describes it now.

    ``options`` are those of the object store of such a table.
    """
    if snapshot.commit.table.snapshot is not None:
        return logged_table(snapshot.commit.table, options or {})
    return CurrentTable(snapshot.commit.table, snapshot.partitions)


def table_at(
    snapshot: Snapshot, options: Mapping[str, str], as_of: AsOf, current: Callable[[Snapshot], CurrentTable]
) -> CurrentTable:
    """Return the table of an index in a version. ``current`` returns it as it is now.

    Raises the errors of ``logged_table``.
    """
    if as_of == NEWEST:
        return current(snapshot)
    table = snapshot.commit.table
    told = current(snapshot).metadata_uri if table.is_of_session else ""
    return logged_table(table, options, as_of, told)


def logged_table(table: TableRecord, options: Mapping[str, str], as_of: AsOf = NEWEST, told: str = "") -> CurrentTable:
    """Return a table with a log as its log describes it.

    ``told`` is where the newest metadata of an Iceberg table of Spark's session is, as the session just said.

    Raises the errors of ``DeltaLog`` and ``IcebergTable``, and UnsupportedSourceError for a table without a log where a
    version is given.
    """
    if table.snapshot is None:
        if as_of == NEWEST:
            return CurrentTable(table)
        raise UnsupportedSourceError(
            "only tables with a log have versions",
            found=f"a directory of {table.format} files",
            hint="leave version and timestamp out",
        )
    snapshot = _version(table, table.snapshot, options, as_of, told)
    if table.is_of_session and not told and snapshot.table_id != table.snapshot.table_id:
        raise UnsupportedSourceError(
            f"pyiceberg's catalog has another table than the one that was indexed as {table.name}",
            found=f"table {snapshot.table_id} instead of {table.snapshot.table_id}",
            hint="use Lakebloom(spark, ...) with the session that has the table",
        )
    return _described_table(table, snapshot)


def pinned_table(table: TableRecord, options: Mapping[str, str]) -> CurrentTable:
    """Return a table with a log in the version that its record describes, with the columns of the record."""
    if table.snapshot is None or table.snapshot.metadata is None:
        return logged_table(table, options, NEWEST if table.snapshot is None else AsOf(table.snapshot.version))
    found = iceberg_table(_iceberg_source(table), options).pinned(table.snapshot.metadata, table.snapshot.version)
    return CurrentTable(table, None, found)


def _described_table(table: TableRecord, snapshot: TableSnapshot) -> CurrentTable:
    kept = _tables.get(snapshot)
    if kept is None or kept[0] != table:
        _tables[snapshot] = kept = table, CurrentTable(described(table, snapshot), None, snapshot)
    return kept[1]


def iceberg_log(table: CurrentTable, options: Mapping[str, str]) -> IcebergTable:
    """Return an Iceberg table with all its versions; one of Spark's session as its metadata describes it by now."""
    if table.record.is_of_session:
        from lakebloom.tables.formats.iceberg.table import Source

        return iceberg_table(Source(metadata=table.metadata_uri), options)
    return iceberg_table(_iceberg_source(table.record), options)


def _version(
    table: TableRecord, known: SnapshotRecord, options: Mapping[str, str], as_of: AsOf, told: str
) -> TableSnapshot:
    if known.format == "delta":
        delta = delta_log(fixed_part(table.locations[0]), options)
        if as_of.version is not None:
            return delta.at(as_of.version)
        return delta.newest() if as_of.timestamp_ms is None else delta.at_timestamp(as_of.timestamp_ms)
    iceberg = iceberg_table(_iceberg_source(table), options)
    if as_of.version is not None:
        return iceberg.at(as_of.version, told)
    return iceberg.newest(told) if as_of.timestamp_ms is None else iceberg.at_timestamp(as_of.timestamp_ms, told)


def _iceberg_source(table: TableRecord) -> Source:
    """Return how an Iceberg table was given when it was indexed."""
    from lakebloom.tables.formats.iceberg.table import Source

    known = table.snapshot
    assert known is not None
    if table.catalog is not None:
        return Source(session=table.catalog.name)
    if known.catalog is not None:
        return Source(catalog=known.catalog)
    if known.fixed and known.metadata is not None:
        return Source(metadata=known.metadata)
    return Source(directory=fixed_part(table.locations[0]))


_tables: WeakKeyDictionary[TableSnapshot, tuple[TableRecord, CurrentTable]] = WeakKeyDictionary()


def delta_record(table_uri: str, options: Mapping[str, str]) -> TableRecord:
    """Return the record of the Delta table at a canonical URI. Raises the errors of ``logged_table``."""
    table = TableRecord(format="parquet", locations=(escape(table_uri),))
    return described(table, delta_log(table_uri, options).newest())


def iceberg_record(source: Source, options: Mapping[str, str], told: str = "") -> TableRecord:
    """Return the record of an Iceberg table. Raises the errors of ``logged_table``, which explains ``told``."""
    snapshot = iceberg_table(source, options).newest(told)
    location = source.directory or from_decoded(snapshot.metadata.location)
    known = SnapshotRecord("iceberg", "", 0, catalog=source.catalog or None, fixed=bool(source.metadata))
    table = TableRecord(
        format="parquet",
        locations=(escape(location),),
        name=".".join(source.session) or None,
        catalog=CatalogRecord(source.session) if source.session else None,
        snapshot=known,
    )
    return described(table, snapshot)


def described(table: TableRecord, snapshot: TableSnapshot) -> TableRecord:
    """Return the record of a table as a version of its log describes it."""
    metadata: str | None = getattr(snapshot, "metadata_uri", None)
    if metadata is None:
        found = SnapshotRecord("delta", snapshot.table_id, snapshot.version, snapshot.mapping)
    else:
        assert table.snapshot is not None
        found = msgspec.structs.replace(
            table.snapshot,
            table_id=snapshot.table_id,
            version=snapshot.version,
            mapping=snapshot.mapping,
            metadata=metadata,
            name_mapping=getattr(snapshot, "name_mapping", None),
        )
    return msgspec.structs.replace(
        table,
        schema_json=parse_struct(snapshot.schema_json).to_json(),
        partition_columns=snapshot.partition_columns,
        snapshot=found,
    )


def places_of(table: TableRecord) -> list[str]:
    """Return a few directories that contain the whole table."""
    outside = () if table.partitions is None else table.partitions.places
    return [*map(fixed_part, table.locations), *outside]
