"""A metadata file of an Iceberg table: its schemas, partition specs, snapshots and properties, of versions 1 to 3.

Only what says what the table is gets read; everything else is ignored, as the specification says. A type that is not
known here is passed on by its name: only a column of that type cannot be read.
"""

from __future__ import annotations

import zlib
from typing import Any, TypeAlias

import msgspec

from lakebloom.errors import DataFileError, UnsupportedSourceError
from lakebloom.storage import open_storage
from lakebloom.tables.formats.table_history import TableRef

__all__ = [
    "IcebergField",
    "IcebergType",
    "ListType",
    "MapType",
    "PartitionField",
    "PartitionSpec",
    "Schema",
    "SnapshotInfo",
    "StructType",
    "TableMetadata",
    "read_bytes",
    "read_metadata",
]

_MOST_BYTES = 1 << 29
_NAME_MAPPING = "schema.name-mapping.default"
_KNOWN_VERSIONS = (1, 2, 3)
_MAIN, _TAG = "main", "tag"
_NO_SNAPSHOT = -1


class IcebergField(msgspec.Struct, frozen=True, rename="kebab"):
    """A column, or a field of a struct."""

    id: int
    name: str
    type: IcebergType
    required: bool = False
    doc: Any = None
    initial_default: Any = None
    """What files without the column mean: a value in the JSON form of the specification."""


class StructType(msgspec.Struct, frozen=True, tag_field="type", tag="struct"):
    """A struct."""

    fields: tuple[IcebergField, ...]


class ListType(msgspec.Struct, frozen=True, rename="kebab", tag_field="type", tag="list"):
    """A list."""

    element_id: int
    element: IcebergType
    element_required: bool = False


class MapType(msgspec.Struct, frozen=True, rename="kebab", tag_field="type", tag="map"):
    """A map."""

    key_id: int
    key: IcebergType
    value_id: int
    value: IcebergType
    value_required: bool = False


IcebergType: TypeAlias = str | StructType | ListType | MapType


class Schema(msgspec.Struct, frozen=True, rename="kebab"):
    """The columns of a table at some time."""

    fields: tuple[IcebergField, ...]
    schema_id: int = 0


class PartitionField(msgspec.Struct, frozen=True, rename="kebab"):
    """A part of a partition spec."""

    name: str
    transform: str
    source_id: int | None = None
    source_ids: tuple[int, ...] = ()
    field_id: int | None = None


class PartitionSpec(msgspec.Struct, frozen=True, rename="kebab"):
    """How files are partitioned."""

    spec_id: int
    fields: tuple[PartitionField, ...]

    @property
    def is_unpartitioned(self) -> bool:
        """Whether there is one partition only."""
        return all(field.transform == "void" for field in self.fields)


class SnapshotInfo(msgspec.Struct, frozen=True, rename="kebab"):
    """A snapshot."""

    snapshot_id: int
    timestamp_ms: int
    manifest_list: str | None = None
    schema_id: int | None = None


class LogEntry(msgspec.Struct, frozen=True, rename="kebab"):
    """When a snapshot became the current one."""

    snapshot_id: int
    timestamp_ms: int


class Ref(msgspec.Struct, frozen=True, rename="kebab"):
    """A branch or a tag."""

    snapshot_id: int
    type: str = "branch"
    min_snapshots_to_keep: int | None = None
    max_snapshot_age_ms: int | None = None


class TableMetadata(msgspec.Struct, frozen=True, rename="kebab"):
    """What a metadata file says."""

    format_version: int
    location: str
    table_uuid: str | None = None
    schemas: tuple[Schema, ...] = ()
    schema: Schema | None = None
    current_schema_id: int = 0
    partition_specs: tuple[PartitionSpec, ...] = ()
    partition_spec: tuple[PartitionField, ...] = ()
    properties: dict[str, str] = {}
    current_snapshot_id: int | None = None
    snapshots: tuple[SnapshotInfo, ...] = ()
    snapshot_log: tuple[LogEntry, ...] = ()
    refs: dict[str, Ref] = {}

    @property
    def table_id(self) -> str:
        """What stays the same in all versions; tables of version 1 may have no id of their own."""
        return self.table_uuid or self.location

    @property
    def current_snapshot(self) -> SnapshotInfo | None:
        """The newest version; None for a table that has no rows yet."""
        if self.current_snapshot_id in (None, _NO_SNAPSHOT):
            return None
        return self.snapshot(self.current_snapshot_id)

    def snapshot(self, number: int | None) -> SnapshotInfo | None:
        """Return a snapshot by its id."""
        return next((each for each in self.snapshots if each.snapshot_id == number), None)

    def refs_of(self, number: int) -> tuple[TableRef, ...]:
        """Return the branches and tags that keep a snapshot, but for the main branch."""
        names = sorted(name for name, ref in self.refs.items() if ref.snapshot_id == number and name != _MAIN)
        return tuple(TableRef(_TAG if self.refs[name].type == _TAG else "branch", name) for name in names)

    def schema_of(self, number: int | None) -> Schema:
        """Return a schema by its id; None is the current one. Raises KeyError."""
        wanted = self.current_schema_id if number is None else number
        for each in self.schemas:
            if each.schema_id == wanted:
                return each
        if self.schema is not None and (number is None or not self.schemas):
            return self.schema
        raise KeyError(wanted)

    @property
    def specs(self) -> dict[int, PartitionSpec]:
        """The partition specs by their ids."""
        return {spec.spec_id: spec for spec in self.partition_specs or (PartitionSpec(0, self.partition_spec),)}

    @property
    def name_mapping(self) -> str | None:
        """How columns of files without ids are found, in JSON; None if such files cannot be read."""
        return self.properties.get(_NAME_MAPPING)


_DECODER: msgspec.json.Decoder[TableMetadata] = msgspec.json.Decoder(TableMetadata)


class _Version(msgspec.Struct, rename="kebab"):
    format_version: int


def read_metadata(uri: str, options: dict[str, str]) -> TableMetadata:
    """Return what the metadata file at a canonical URI says.

    Raises NotFoundError, DataFileError, and UnsupportedSourceError for a version of the format that is not known.
    """
    data = bytes(read_bytes(uri, options))
    try:
        if data[:2] == b"\x1f\x8b":
            data = _unpacked(data)
        version = msgspec.json.decode(data, type=_Version).format_version
        if version not in _KNOWN_VERSIONS:
            raise UnsupportedSourceError(
                f"the Iceberg table of {uri} has a version of the format that lakebloom does not know",
                found=f"format-version {version}",
                hint="query the table with its own engine",
            )
        found = _DECODER.decode(data)
        found.schema_of(None)
    except (msgspec.MsgspecError, UnicodeError, RecursionError, zlib.error, KeyError) as error:
        raise DataFileError(
            f"could not read {uri}, the metadata of an Iceberg table",
            found=str(error),
            hint="check that the file is complete",
        ) from error
    return found


def read_bytes(uri: str, options: dict[str, str]) -> memoryview:
    """Return the file at a canonical URI."""
    folder, _, name = uri.rpartition("/")
    return open_storage(folder, {} if folder.startswith("file:") else options).read(name)


def _unpacked(data: bytes) -> bytes:
    unpacker = zlib.decompressobj(wbits=31)
    found = unpacker.decompress(data, _MOST_BYTES)
    if unpacker.unconsumed_tail:
        raise zlib.error(f"more than {_MOST_BYTES} bytes")
    return found
