"""A table is a snapshot: its id and version, its columns, and its files with their partition values and deletes.

Whoever owns the list of a table's files says this: the log of Delta Lake, the metadata of Iceberg. Files are
those of one version; the directory is never listed, because it also holds files that were removed. An index covers
*all physical rows* of a file, so it stays valid for every version that has the file; which rows of it count in a
version is said by the deletes.

Deletes are small records that can be sent to tasks. Opened, they answer for rows by number: Delta's deletion vectors
and Iceberg's position deletes say these, and Iceberg's equality deletes are turned into them when they are opened.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    import numpy as np

    from lakebloom.sbbf.kernels import BoolArray
    from lakebloom.tables.column_mapping import ColumnMapping
    from lakebloom.tables.file_identity import TableFile
    from lakebloom.tables.file_list import FileList
    from lakebloom.tables.formats.delta.deletion_vectors import DeletionVector
    from lakebloom.tables.formats.iceberg.deletes import IcebergDeletes

__all__ = ["DataFile", "Deletes", "PartitionValues", "RowDeletes", "TableSnapshot"]

PartitionValues: TypeAlias = "tuple[tuple[str, str | None], ...]"
"""The values of a file's partition columns as text, under the names that files have for them; None is NULL."""

Deletes: TypeAlias = "DeletionVector | IcebergDeletes"
"""Which rows of a file do not count: where that is stored, as a record."""


class DataFile(NamedTuple):
    """A file of a snapshot. Its identity has the time of the log, which is not that of the disk."""

    file: TableFile
    partition: PartitionValues = ()
    deletes: Deletes | None = None
    constants: PartitionValues | None = None
    """Values of columns that all rows of the file have, whatever it holds, in JSON (``constants``); None where
    ``partition`` has them all."""
    format: str = "parquet"


class RowDeletes(Protocol):
    """The deleted rows of one file, open for questions."""

    def deleted(self, rows: np.ndarray[Any, np.dtype[np.int64]]) -> BoolArray:
        """Tell for each of these rows, by its number in the file, whether it is deleted."""


class TableSnapshot(Protocol):
    """One version of a table."""

    @property
    def table_id(self) -> str:
        """What stays the same in all versions, and differs from a table that was made in the same place later."""

    @property
    def version(self) -> int:
        """The number of the version."""

    @property
    def timestamp_ms(self) -> int | None:
        """When it was committed; None where that is no longer known."""

    @property
    def schema_json(self) -> str:
        """The columns as Spark writes them in JSON, with the ids and physical names of fields in their metadata."""

    @property
    def mapping(self) -> ColumnMapping:
        """How columns are found in files."""

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """The names of the partition columns."""

    @property
    def files(self) -> FileList:
        """The identities of its files, sorted by URI; the same list as long as the snapshot lives."""

    @property
    def data_files(self) -> Mapping[str, DataFile]:
        """Its files by URI."""
