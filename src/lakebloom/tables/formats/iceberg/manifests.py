"""Manifests of an Iceberg table: the data files and delete files of a snapshot, read with pyiceberg's Avro reader.

pyiceberg's own planner is not used: it raises on equality deletes, and does not tell which deletes belong to a file.
A manifest never changes, so one that was read for an earlier snapshot is not read again.
"""

from __future__ import annotations

import zlib
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

from lakebloom.errors import DataFileError
from lakebloom.storage.uri import from_decoded
from lakebloom.tables.file_identity import LOGGED, TableFile, is_object
from lakebloom.tables.formats.iceberg.library import reading_metadata, require_pyiceberg
from lakebloom.tables.formats.iceberg.metadata import read_bytes
from lakebloom.tuning import REQUESTS

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "DATA",
    "EQUALITY_DELETES",
    "POSITION_DELETES",
    "ListedFile",
    "Manifest",
    "read_entries",
    "read_manifest_list",
]

DATA, POSITION_DELETES, EQUALITY_DELETES = 0, 1, 2
_REMOVED = 2
_ADDED = 1
_PARTITION = 102
_NEWEST_VERSION = 3
_LIST_VERSION = 2
_TABLE_BITS = (1 << 20) - 1
"""So many bits of the hash of a table's id fit into a time beside the number of a commit."""


class Manifest(NamedTuple):
    """A manifest, as the list of a snapshot describes it: what its entries inherit."""

    uri: str
    spec_id: int
    sequence_number: int
    snapshot_id: int
    length: int


class ListedFile(NamedTuple):
    """A data file or a delete file that is part of a snapshot."""

    content: int
    uri: str
    format: str
    size_bytes: int
    record_count: int
    spec_id: int
    partition: tuple[tuple[int, str, Any], ...]
    """The id of each partition field, the type that the manifest declares for it, and the value as the manifest holds
    it. What that means is said by the table's partition spec (``partition_values``)."""
    sequence_number: int
    """When its rows, or its deletes, came into the table."""
    snapshot_id: int
    """The snapshot that added it."""
    file_sequence_number: int | None
    """The number of the commit that added it; 0 or None in tables of version 1 and from writers of that time."""
    equality_ids: tuple[int, ...]
    referenced: str | None
    """The data file that all deletes are about, where a delete file says that."""
    offset: int | None
    """Where a deletion vector is in its file."""
    length: int | None

    def identity(self, table_id: str) -> TableFile:
        """Return what tells it from an earlier file of its name: metadata has no time of a file, but its commit.

        Numbers of commits start again in a table that is created again, so its id is part of the time. It counts in
        whole seconds, as times on object stores do. ``IcebergFiles.java`` computes the same.
        """
        if not self.file_sequence_number:
            return TableFile(self.uri, self.size_bytes, self.snapshot_id, LOGGED)
        table = zlib.crc32(table_id.lower().encode()) & _TABLE_BITS
        return TableFile(self.uri, self.size_bytes, 1000 * ((table << 32) + self.file_sequence_number), LOGGED)


def read_manifest_list(uri: str, options: dict[str, str]) -> list[Manifest]:
    """Return the manifests of a snapshot. Raises DataFileError."""
    require_pyiceberg()
    from pyiceberg import manifest as library

    from lakebloom.tables.formats.iceberg.avro import records

    data = bytes(read_bytes(uri, options))
    with reading_metadata(uri):
        schema = library.MANIFEST_LIST_FILE_SCHEMAS[_LIST_VERSION]
        return [
            Manifest(
                from_decoded(found.manifest_path),
                found.partition_spec_id,
                found.sequence_number or 0,
                found.added_snapshot_id or 0,
                found.manifest_length,
            )
            for found in records(
                data, schema, read_types={-1: library.ManifestFile, 508: library.PartitionFieldSummary}
            )
        ]


def read_entries(
    manifests: list[Manifest], options: dict[str, str], known: Mapping[str, tuple[ListedFile, ...]]
) -> dict[str, tuple[ListedFile, ...]]:
    """Return the entries of manifests by their URIs. Those that are known are not read. Raises DataFileError."""
    missing = [each for each in manifests if each.uri not in known]
    found = {each.uri: known[each.uri] for each in manifests if each.uri in known}
    if len(missing) > 1 and is_object(missing[0].uri):
        with ThreadPoolExecutor(min(len(missing), REQUESTS)) as threads:
            read = list(threads.map(lambda each: _entries(each, options), missing))
    else:
        read = [_entries(each, options) for each in missing]
    found.update((each.uri, entries) for each, entries in zip(missing, read, strict=True))
    return found


def _entries(manifest: Manifest, options: dict[str, str]) -> tuple[ListedFile, ...]:
    require_pyiceberg()
    from pyiceberg.manifest import MANIFEST_ENTRY_SCHEMAS

    from lakebloom.tables.formats.iceberg.avro import records

    # The newest schema has all fields; what an older manifest does not have is None.
    schema = MANIFEST_ENTRY_SCHEMAS[_NEWEST_VERSION]
    file_type: Any = schema.find_field("data_file").field_type
    places = {field.name: place for place, field in enumerate(file_type.fields)}
    data = bytes(read_bytes(manifest.uri, options))
    if len(data) != manifest.length:
        raise DataFileError(
            f"could not read {manifest.uri}, a manifest of an Iceberg table",
            found=f"{len(data)} bytes instead of {manifest.length}",
            hint="check that the file is complete",
        )
    found = []
    with reading_metadata(manifest.uri):
        entries = records(data, schema)
        partition: Any = entries.schema.find_field(_PARTITION).field_type
        fields = tuple((field.field_id, str(field.field_type)) for field in partition.fields)
        for record in entries:
            status, snapshot_id, sequence_number, file_sequence_number, file = (record[place] for place in range(5))
            if status == _REMOVED:
                continue
            if sequence_number is None:
                if status != _ADDED and manifest.sequence_number:
                    raise DataFileError(f"{manifest.uri} has a file without a sequence number", found=file[1])
                sequence_number = manifest.sequence_number
            if file_sequence_number is None and status == _ADDED:
                file_sequence_number = manifest.sequence_number
            numbers = sequence_number, snapshot_id or manifest.snapshot_id, file_sequence_number
            found.append(_listed_file(manifest, file, places, fields, numbers))
    return tuple(found)


def _listed_file(
    manifest: Manifest,
    file: Any,
    places: Mapping[str, int],
    partition_fields: tuple[tuple[int, str], ...],
    numbers: tuple[int, int, int | None],
) -> ListedFile:
    values = file[places["partition"]]
    referenced = file[places["referenced_data_file"]]
    size = file[places["file_size_in_bytes"]]
    if size < 0:
        raise ValueError(f"a file of {size} bytes")
    return ListedFile(
        content=int(file[places["content"]] or 0),
        uri=from_decoded(file[places["file_path"]]),
        format=str(file[places["file_format"]]).lower(),
        size_bytes=size,
        record_count=file[places["record_count"]],
        spec_id=manifest.spec_id,
        partition=tuple((number, declared, values[place]) for place, (number, declared) in enumerate(partition_fields)),
        sequence_number=numbers[0],
        snapshot_id=numbers[1],
        file_sequence_number=numbers[2],
        equality_ids=tuple(file[places["equality_ids"]] or ()),
        referenced=None if referenced is None else from_decoded(referenced),
        offset=file[places["content_offset"]],
        length=file[places["content_size_in_bytes"]],
    )
