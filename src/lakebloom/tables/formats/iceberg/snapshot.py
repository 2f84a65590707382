"""One version of an Iceberg table: a snapshot, read with a schema."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import TYPE_CHECKING

from lakebloom.errors import UnsupportedSourceError
from lakebloom.tables.column_mapping import ColumnMapping
from lakebloom.tables.file_list import FileList
from lakebloom.tables.formats.iceberg.applied_deletes import AppliedDeletes, equality_columns
from lakebloom.tables.formats.iceberg.described_files import Meaning
from lakebloom.tables.formats.iceberg.partition_values import Partitions, identity_sources
from lakebloom.tables.formats.iceberg.schema import spark_schema
from lakebloom.tables.name_mapping import names_of_ids

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lakebloom.tables.formats.iceberg.described_files import DescribedFiles, DescribedManifest
    from lakebloom.tables.formats.iceberg.manifests import ListedFile
    from lakebloom.tables.formats.iceberg.metadata import Schema, SnapshotInfo, TableMetadata
    from lakebloom.tables.formats.table_snapshot import DataFile

__all__ = ["EMPTY", "IcebergSnapshot"]

EMPTY = 0
"""The version of a table that has no snapshot yet."""


class IcebergSnapshot:
    """See ``TableSnapshot``."""

    mapping = ColumnMapping.ID
    """See TableSnapshot.mapping."""

    def __init__(
        self,
        metadata_uri: str,
        metadata: TableMetadata,
        info: SnapshotInfo | None,
        schema: Schema,
        read: Callable[[SnapshotInfo], Sequence[tuple[str, Sequence[ListedFile]]]],
        described: DescribedFiles,
    ) -> None:
        """``info`` is None for a table without rows; ``read`` reads the manifests of a snapshot, with their URIs."""
        self.metadata_uri, self.metadata = metadata_uri, metadata
        self._info, self._schema, self._read, self._described = info, schema, read, described

    def __repr__(self) -> str:
        return f"IcebergSnapshot({self.metadata_uri!r}, snapshot {self.version})"

    @property
    def table_id(self) -> str:
        """See TableSnapshot.table_id."""
        return self.metadata.table_id

    @property
    def version(self) -> int:
        """See TableSnapshot.version. The id of the snapshot."""
        return EMPTY if self._info is None else self._info.snapshot_id

    @property
    def timestamp_ms(self) -> int | None:
        """See TableSnapshot.timestamp_ms."""
        return None if self._info is None else self._info.timestamp_ms

    @property
    def name_mapping(self) -> str | None:
        """Which ids the names of files without ids mean."""
        return self.metadata.name_mapping

    @cached_property
    def schema_json(self) -> str:
        """See TableSnapshot.schema_json."""
        return spark_schema(self._schema, names_of_ids(self.name_mapping)).to_json()

    @cached_property
    def partition_columns(self) -> tuple[str, ...]:
        """See TableSnapshot.partition_columns: the columns that are partition values in some files."""
        sources = identity_sources(self.metadata.specs)
        return tuple(field.name for field in self._schema.fields if field.id in sources)

    @cached_property
    def files(self) -> FileList:
        """See TableSnapshot.files."""
        return self._described.file_list(self._manifests) if self.data_files else FileList()

    @cached_property
    def _manifests(self) -> list[DescribedManifest]:
        if self._info is None:
            return []
        return self._described.of(self._read(self._info), self._meaning)

    @cached_property
    def _meaning(self) -> Meaning:
        types = {number: column.type for number, column in equality_columns(self.metadata).items()}
        return Meaning(self.table_id, self.metadata.specs, types)

    @cached_property
    def data_files(self) -> dict[str, DataFile]:
        """See TableSnapshot.data_files.

        Raises DataFileError, and UnsupportedSourceError where a file is there several times: each of its rows would be.
        """
        manifests = self._manifests
        found: dict[str, DataFile] = {}
        for manifest in manifests:
            found.update(manifest.data_files)
        if len(found) < sum(len(manifest.described) for manifest in manifests):
            described = (each for manifest in manifests for each in manifest.described)
            uri, _ = Counter(each.entry.uri for each in described).most_common(1)[0]
            raise UnsupportedSourceError(
                f"snapshot {self.version} of the Iceberg table {self.metadata.location} has a file several times",
                found=uri,
                hint="rewrite the table's data files, or query the table with its own engine",
            )
        removed = [entry for manifest in manifests for entry in manifest.deletes]
        if removed:
            partitions = Partitions(self._meaning.specs, self._meaning.columns)
            deletes = AppliedDeletes(removed, partitions, equality_columns(self.metadata), self.name_mapping)
            for entry, partition, file in (each for manifest in manifests for each in manifest.described):
                applied = deletes.of(entry, partition, file.constants or ())
                if applied is not None:
                    found[entry.uri] = file._replace(deletes=applied)
        return found
