"""Which delete files apply to a data file.

    deletion vector     of this file, and not older than it; position deletes are part of it then
    position deletes    of the file's partition or of this file alone, not older than it
    equality deletes    of the file's partition, or of no partition at all, and *newer* than it: a row that was added
                        with or after a delete stays

Older and newer is said by sequence numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from lakebloom.errors import DataFileError
from lakebloom.tables.formats.iceberg.deletes import EqualityColumn, EqualityDeletes, IcebergDeletes, VectorPlace
from lakebloom.tables.formats.iceberg.manifests import EQUALITY_DELETES
from lakebloom.tables.formats.iceberg.metadata import StructType

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from lakebloom.tables.formats.iceberg.manifests import ListedFile
    from lakebloom.tables.formats.iceberg.metadata import IcebergField, TableMetadata
    from lakebloom.tables.formats.iceberg.partition_values import Partition, Partitions

__all__ = ["AppliedDeletes", "equality_columns"]

_PUFFIN, _PARQUET = "puffin", "parquet"
_HINT = "query the table with its own engine to see whether it can read it"


class AppliedDeletes:
    """The delete files of a snapshot."""

    def __init__(
        self,
        entries: Iterable[ListedFile],
        partitions: Partitions,
        columns: Mapping[int, EqualityColumn],
        name_mapping: str | None,
    ) -> None:
        """``columns`` are all columns that the table ever had, by id."""
        self._columns, self._name_mapping = columns, name_mapping
        self._vectors: dict[str, list[ListedFile]] = {}
        self._of_file: dict[str, list[ListedFile]] = {}
        self._of_partition: dict[Partition, list[ListedFile]] = {}
        self._equality: dict[Partition | None, list[ListedFile]] = {}
        self._kept: dict[tuple[Partition, int], tuple[EqualityDeletes, ...]] = {}
        for entry in entries:
            partition = partitions.of(entry)
            if entry.content == EQUALITY_DELETES:
                everywhere = partitions.is_everywhere(entry.spec_id)
                self._equality.setdefault(None if everywhere else partition, []).append(entry)
            elif entry.format == _PUFFIN:
                self._vectors.setdefault(_referenced(entry), []).append(entry)
            elif entry.referenced is not None:
                self._of_file.setdefault(entry.referenced, []).append(entry)
            else:
                self._of_partition.setdefault(partition, []).append(entry)
        self._is_empty = not (self._vectors or self._of_file or self._of_partition or self._equality)

    def of(
        self, data: ListedFile, partition: Partition, constants: tuple[tuple[str, str | None], ...]
    ) -> IcebergDeletes | None:
        """Return what deletes rows of a data file; None where nothing does. Raises DataFileError."""
        if self._is_empty:
            return None
        vector = self._vector(data)
        positions = self._positions(data, partition) if vector is None else []
        equality = self._equality_of(partition, data.sequence_number)
        if vector is None and not positions and not equality:
            return None
        applied = (*positions, *self._newer(partition, data.sequence_number))
        unreadable = next((entry.uri for entry in applied if entry.format != _PARQUET), None)
        return IcebergDeletes(
            data.uri,
            vector,
            tuple(entry.uri for entry in positions),
            equality,
            constants if equality else (),
            self._name_mapping if equality else None,
            unreadable,
        )

    def _positions(self, data: ListedFile, partition: Partition) -> list[ListedFile]:
        named = (*self._of_file.get(data.uri, ()), *self._of_partition.get(partition, ()))
        return [entry for entry in named if entry.sequence_number >= data.sequence_number]

    def _vector(self, data: ListedFile) -> VectorPlace | None:
        found = [each for each in self._vectors.get(data.uri, ()) if each.sequence_number >= data.sequence_number]
        if not found:
            return None
        (first, *others) = found
        if others or first.offset is None or first.length is None:
            raise DataFileError(
                f"{data.uri} must have one deletion vector at a known place",
                found=f"{len(found)} vectors, the first in {first.uri}",
                hint=_HINT,
            )
        return VectorPlace(first.uri, first.offset, first.length, first.record_count)

    def _equality_of(self, partition: Partition, sequence_number: int) -> tuple[EqualityDeletes, ...]:
        key = partition, sequence_number
        if key not in self._kept:
            by_columns: dict[tuple[int, ...], list[str]] = {}
            for entry in self._newer(partition, sequence_number):
                if not entry.equality_ids:
                    raise DataFileError(f"{entry.uri} deletes rows and does not say by which columns", hint=_HINT)
                by_columns.setdefault(tuple(sorted(entry.equality_ids)), []).append(entry.uri)
            self._kept[key] = tuple(
                EqualityDeletes(tuple(self._column(number) for number in ids), tuple(files))
                for ids, files in sorted(by_columns.items())
            )
        return self._kept[key]

    def _newer(self, partition: Partition, sequence_number: int) -> Iterator[ListedFile]:
        for entry in (*self._equality.get(None, ()), *self._equality.get(partition, ())):
            if entry.sequence_number > sequence_number:
                yield entry

    def _column(self, number: int) -> EqualityColumn:
        found = self._columns.get(number)
        if found is None:
            raise DataFileError(
                f"rows are deleted by column {number}, which no schema of the table has",
                hint=_HINT,
            )
        return found


def _referenced(vector: ListedFile) -> str:
    if vector.referenced is None:
        raise DataFileError(f"{vector.uri} deletes rows and does not say of which file", hint=_HINT)
    return vector.referenced


def equality_columns(metadata: TableMetadata) -> dict[int, EqualityColumn]:
    """Return all plain columns that a table ever had, by id, each in the newest schema that has it."""
    found: dict[int, EqualityColumn] = {}
    schemas = sorted(metadata.schemas, key=lambda schema: schema.schema_id)
    for schema in (*schemas, metadata.schema_of(None)):
        for field in _plain_fields(schema.fields):
            default = None if field.initial_default is None else msgspec.json.encode(field.initial_default).decode()
            found[field.id] = EqualityColumn(field.id, str(field.type), default)
    return found


def _plain_fields(fields: Iterable[IcebergField]) -> Iterator[IcebergField]:
    for field in fields:
        if isinstance(field.type, str):
            yield field
        elif isinstance(field.type, StructType):
            yield from _plain_fields(field.type.fields)
