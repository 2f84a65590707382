"""The unit table of a segment: which rows of which file each unit covers, and facts about its columns.

It has one row for each unit. ``tile.<c>`` is the number of the tile that contains the unit's filter for column c: the
j-th unit that names tile k is unit j of that tile. A unit without a filter for a column (the file's type could not be
read) has no tile there, and is always kept. An unknown null count is null.

``min.<c>`` and ``max.<c>`` are bounds of the values of column c, in the type of ``min_max.bound_type``: no value of the
unit is smaller or larger in Spark's order. An unknown bound is null.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pyarrow as pa

from lakebloom.errors import UnsupportedTypeError
from lakebloom.sbbf.hashing.buffers import bits, numbers
from lakebloom.sbbf.values.plain_arrays import plain_array
from lakebloom.store.arrow_file import read_arrow
from lakebloom.store.files import arrow_ipc_bytes, corrupt, read_blob, write_blob
from lakebloom.store.min_max import BoundValue, bound_type
from lakebloom.store.records import FORMAT_VERSION, FileRecord
from lakebloom.tables.file_identity import TableFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from lakebloom.sbbf.kernels import BoolArray
    from lakebloom.storage import Storage

NO_TILE = -1
_MAX_ROW_GROUPS = 1 << 22
_MAX_ROW_GROUPS_A_UNIT = 64
"""A table may claim this many row groups for each unit, plus ``_MAX_ROW_GROUPS``. Large files have some dozen."""


class ColumnFacts(msgspec.Struct, frozen=True):
    """Facts about one column in one unit."""

    null_count: int | None
    tile: int = NO_TILE
    min: BoundValue | None = None
    """No value is smaller; None if that is unknown."""
    max: BoundValue | None = None


class Unit(msgspec.Struct, frozen=True):
    """A run of rows of one file."""

    file: TableFile
    row_start: int
    row_count: int
    row_group_start: int
    row_group_count: int
    """How many Parquet row groups overlap the rows; 0 for a format without row groups."""
    columns: tuple[ColumnFacts, ...]


def _schema(types: Sequence[str]) -> pa.Schema:
    fields = [
        pa.field("file", pa.dictionary(pa.int32(), pa.string()), nullable=False),
        pa.field("size_bytes", pa.int64(), nullable=False),
        pa.field("mtime_ms", pa.int64(), nullable=False),
        pa.field("tag", pa.dictionary(pa.int32(), pa.string()), nullable=False),
        pa.field("row_start", pa.int64(), nullable=False),
        pa.field("row_count", pa.int64(), nullable=False),
        pa.field("row_group_start", pa.int32(), nullable=False),
        pa.field("row_group_count", pa.int32(), nullable=False),
    ]
    for column, type_name in enumerate(types):
        fields.append(pa.field(f"null_count.{column}", pa.int64()))
        fields.append(pa.field(f"tile.{column}", pa.int32()))
        fields.append(pa.field(f"min.{column}", bound_type(type_name)))
        fields.append(pa.field(f"max.{column}", bound_type(type_name)))
    return pa.schema(fields, metadata={"lakebloom": str(FORMAT_VERSION)})


def _is_text(field: pa.Field) -> bool:
    return bool(pa.types.is_dictionary(field.type))


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    return pa.array(values, kind) if None in values else plain_array(values, kind)


class UnitTable:
    """The units of one segment, as columns. Arrays that probes need are made once and kept."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table
        self._numbers: dict[str, np.ndarray[Any, np.dtype[np.int64]]] = {}
        self._known: dict[str, BoolArray] = {}

    @classmethod
    def of(cls, units: list[Unit], types: Sequence[str]) -> UnitTable:
        """Return the table of these units. ``types`` are the Spark types of the columns."""
        columns: list[list[Any]] = [
            [unit.file.uri for unit in units],
            [unit.file.size_bytes for unit in units],
            [unit.file.mtime_ms for unit in units],
            [unit.file.tag for unit in units],
            [unit.row_start for unit in units],
            [unit.row_count for unit in units],
            [unit.row_group_start for unit in units],
            [unit.row_group_count for unit in units],
        ]
        for column in range(len(types)):
            facts = [unit.columns[column] for unit in units]
            columns.append([fact.null_count for fact in facts])
            columns.append([None if fact.tile == NO_TILE else fact.tile for fact in facts])
            columns.append([fact.min for fact in facts])
            columns.append([fact.max for fact in facts])
        schema = _schema(types)
        arrays = [
            _array(values, pa.string()).dictionary_encode() if _is_text(field) else _array(values, field.type)
            for field, values in zip(schema, columns, strict=True)
        ]
        return cls(pa.table(arrays, schema=schema))

    @classmethod
    def read(cls, storage: Storage, record: FileRecord, types: Sequence[str], num_units: int) -> UnitTable:
        """Read and check the table. Raises CorruptIndexError."""
        try:
            schema = _schema(types)
        except UnsupportedTypeError as error:
            raise corrupt(record.path, str(error)) from error
        units = cls(read_arrow(record.path, read_blob(storage, record), schema, num_units))
        found = units._contradiction()
        if found is not None:
            raise corrupt(record.path, found)
        return units

    def _contradiction(self) -> str | None:
        """Return what is impossible in the table, None if nothing is. Limits row groups, which become lists."""
        starts, counts = self.whole("row_group_start"), self.whole("row_group_count")
        groups = int(counts.sum()) if len(self) else 0
        if groups > _MAX_ROW_GROUPS + _MAX_ROW_GROUPS_A_UNIT * len(self):
            return f"{groups} row groups in {len(self)} units"
        for name, column in (("row_group_start", starts), ("row_group_count", counts)):
            if len(self) and not 0 <= int(column.min()) <= int(column.max()) <= _MAX_ROW_GROUPS:
                return f"{name} from {column.min()} to {column.max()}"
        return None

    def write(self, storage: Storage, path: str) -> FileRecord:
        """Write the table and return the record of its file."""
        return write_blob(storage, path, arrow_ipc_bytes(self._table))

    def fills(self, column: int, sizes: Mapping[int, int]) -> bool:
        """Tell whether the number of units that name each tile is the number of units of that tile.

        ``sizes`` has the number of units of each tile. A unit that names no tile, or one that is not in ``sizes``, is
        always kept.
        """
        tiles, end = self.tiles(column), max(sizes, default=NO_TILE) + 1
        if len(tiles) and not 0 <= int(tiles.min()) <= int(tiles.max()) < end:
            tiles = tiles[(tiles >= 0) & (tiles < end)]
        named = np.bincount(tiles, minlength=end)
        return all(named[number] == size for number, size in sizes.items())

    def __len__(self) -> int:
        return int(self._table.num_rows)

    @cached_property
    def distinct_files(self) -> list[TableFile]:
        """The distinct files. Within a segment all units of a file have the same file identity."""
        firsts = np.unique(self.file_numbers, return_index=True)[1]
        uris, tags = (self._texts(name, firsts) for name in ("file", "tag"))
        sizes, times = (self.whole(name)[firsts].tolist() for name in ("size_bytes", "mtime_ms"))
        return TableFile.stored(uris, sizes, times, tags)

    def _texts(self, name: str, rows: np.ndarray[Any, np.dtype[np.intp]]) -> Iterable[str]:
        coded = self._table[name].combine_chunks()
        texts = coded.dictionary.to_pylist()
        return map(texts.__getitem__, numbers(coded.indices, 4)[rows].tolist())

    @cached_property
    def file_numbers(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The number of each unit's file among the distinct files."""
        indices = numbers(self._table["file"].combine_chunks().indices, 4)
        found: np.ndarray[Any, np.dtype[np.int64]] = np.unique(indices, return_inverse=True)[1]
        return found

    @cached_property
    def files(self) -> list[TableFile]:
        """The file of each unit."""
        return [self.distinct_files[number] for number in self.file_numbers.tolist()]

    def of_files(self, chosen: Iterable[bool]) -> BoolArray:
        """Return for each unit what ``chosen`` has for its file."""
        of_units: BoolArray = np.fromiter(chosen, dtype=np.bool_, count=len(self.distinct_files))[self.file_numbers]
        return of_units

    def whole(self, name: str) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return a column without nulls, by name, as numbers."""
        return self._filled(name, 0)

    def null_counts(self, column: int) -> tuple[np.ndarray[Any, np.dtype[np.int64]], BoolArray]:
        """Return the null count of each unit, and whether it is known."""
        name = f"null_count.{column}"
        if name not in self._known:
            self._known[name] = bits(self._table[name].combine_chunks().is_valid())
        return self._filled(name, 0), self._known[name]

    def bounds(self, column: int) -> tuple[pa.Array, pa.Array]:
        """Return the lower and the upper bound of each unit's values, null where it is unknown."""
        return self._table[f"min.{column}"].combine_chunks(), self._table[f"max.{column}"].combine_chunks()

    def tiles(self, column: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return the tile number of each unit, NO_TILE for a unit without a filter."""
        return self._filled(f"tile.{column}", NO_TILE)

    def _filled(self, name: str, for_null: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        if name not in self._numbers:
            column = self._table[name].combine_chunks()
            column = column.fill_null(for_null) if column.null_count else column
            values = numbers(column, column.type.bit_width // 8)
            values.flags.writeable = False
            self._numbers[name] = values
        return self._numbers[name]

    def units(self, num_columns: int) -> list[Unit]:
        """Return the units as records, to write them again."""
        nulls = [self._table[f"null_count.{column}"].to_pylist() for column in range(num_columns)]
        tiles = [self.tiles(column).tolist() for column in range(num_columns)]
        bounds = [[ends.to_pylist() for ends in self.bounds(column)] for column in range(num_columns)]
        row_start, row_count, group_start, group_count = (
            self.whole(name).tolist() for name in ("row_start", "row_count", "row_group_start", "row_group_count")
        )
        return [
            Unit(
                file,
                row_start[i],
                row_count[i],
                group_start[i],
                group_count[i],
                tuple(
                    ColumnFacts(nulls[c][i], tiles[c][i], bounds[c][0][i], bounds[c][1][i]) for c in range(num_columns)
                ),
            )
            for i, file in enumerate(self.files)
        ]
