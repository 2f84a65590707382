"""Which rows of a data file a snapshot of an Iceberg table no longer has.

Three kinds of files delete rows. *Position deletes* name files and the numbers of rows. A *deletion vector* (version 3)
is a Roaring bitmap in a Puffin file, framed as Delta frames its vectors: size (4, big-endian), magic number, bitmap,
CRC-32. *Equality deletes* hold values: a row that has all of them in some columns is deleted. Each is turned into the
numbers of rows when it is opened. What is damaged or missing is an error: without it, deleted rows would come back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from lakebloom.errors import DataFileError, LakebloomError
from lakebloom.tables.formats.delta.deletion_vectors import DeletionVector

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lakebloom.sbbf.kernels import BoolArray
    from lakebloom.tables.formats.table_snapshot import RowDeletes

__all__ = ["DeletedPositions", "EqualityColumn", "EqualityDeletes", "IcebergDeletes", "VectorPlace"]

_FRAME_BYTES = 8
_HINT = "without it deleted rows would come back: check the file, or roll the table back to a snapshot without it"


class VectorPlace(msgspec.Struct, frozen=True):
    """Where a deletion vector is."""

    uri: str
    offset: int
    length: int
    cardinality: int


class EqualityColumn(msgspec.Struct, frozen=True):
    """A column by whose values rows are deleted."""

    id: int
    type: str
    """As Iceberg writes it: that of the newest schema which has the column."""
    default: str | None = None
    """What files without the column mean, in JSON."""


class EqualityDeletes(msgspec.Struct, frozen=True):
    """Files that delete the rows which have certain values in the same columns."""

    columns: tuple[EqualityColumn, ...]
    files: tuple[str, ...]


class IcebergDeletes(msgspec.Struct, frozen=True):
    """What deletes rows of one data file."""

    data_uri: str
    vector: VectorPlace | None = None
    positions: tuple[str, ...] = ()
    equality: tuple[EqualityDeletes, ...] = ()
    constants: tuple[tuple[str, str | None], ...] = ()
    """Values of columns that all rows of the data file have, by ``#id``."""
    name_mapping: str | None = None
    unreadable: str | None = None
    """A delete file that applies and is not a Parquet file."""

    def open(self, options: Mapping[str, str]) -> RowDeletes:
        """Read what deletes rows. Raises DataFileError where it is damaged, and the errors of its store."""
        # Here and not above: a table without deletes needs neither.
        from lakebloom.tables.formats.iceberg.equality_deletes import equal_rows
        from lakebloom.tables.formats.iceberg.position_deletes import deleted_positions

        if self.unreadable is not None:
            raise DataFileError(
                f"{self.data_uri} has rows that are deleted by a file that is not Parquet",
                found=self.unreadable,
                hint="rewrite the table's delete files as Parquet, or query the table with its own engine",
            )
        parts: list[RowDeletes] = []
        if self.vector is not None:
            parts.append(_opened_vector(self.vector, options))
        numbers = [deleted_positions(uri, self.data_uri, options) for uri in self.positions]
        if self.equality:
            numbers.append(equal_rows(self, options))
        if numbers:
            parts.append(DeletedPositions(np.unique(np.concatenate(numbers))))
        return parts[0] if len(parts) == 1 else _Several(parts)


class DeletedPositions:
    """Deleted rows as sorted numbers."""

    def __init__(self, numbers: np.ndarray[Any, np.dtype[np.int64]]) -> None:
        self._numbers = numbers

    def __len__(self) -> int:
        return len(self._numbers)

    def deleted(self, rows: np.ndarray[Any, np.dtype[np.int64]]) -> BoolArray:
        """Tell for each of these rows, by its number in the file, whether it is deleted."""
        if not len(self._numbers):
            return np.zeros(len(rows), dtype=np.bool_)
        places = np.minimum(np.searchsorted(self._numbers, rows), len(self._numbers) - 1)
        found: BoolArray = self._numbers[places] == rows
        return found


class _Several:
    """Rows that are deleted in one of several ways."""

    def __init__(self, parts: Sequence[RowDeletes]) -> None:
        self._parts = parts

    def deleted(self, rows: np.ndarray[Any, np.dtype[np.int64]]) -> BoolArray:
        """Tell for each of these rows, by its number in the file, whether it is deleted."""
        found = np.zeros(len(rows), dtype=np.bool_)
        for part in self._parts:
            found |= part.deleted(rows)
        return found


def _opened_vector(place: VectorPlace, options: Mapping[str, str]) -> RowDeletes:
    size = place.length - _FRAME_BYTES
    if size <= 0 or place.offset < 0:
        raise DataFileError(
            f"could not read the deletion vector {place.uri}", found=f"{place.length} bytes", hint=_HINT
        )
    vector = DeletionVector(f"{place.uri}@{place.offset}", place.uri, b"", place.offset, size, place.cardinality)
    try:
        return vector.open(options)
    except LakebloomError as error:
        raise type(error)(error.message, found=error.found, hint=_HINT) from error
