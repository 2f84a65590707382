"""The units of a segment: which rows of which file each unit covers, and facts about its columns.

Nothing is read before it is needed. A query about a few units reads the batches that these are in. What is needed of
all units becomes an array, once. ``unit_columns`` has the tables.

``tile`` is the number of the tile that contains the unit's filter for a column: the j-th unit that names tile k is unit
j of that tile. A unit without a filter for a column (the file's type could not be read) has no tile there, and is
always kept. An unknown null count is null.

``min`` and ``max`` are bounds of the values of a column, in the type of ``min_max.bound_type``: no value of the unit is
smaller or larger in Spark's order. An unknown bound is null.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

import lakebloom.arrow_compute as pc
from lakebloom.errors import UnsupportedTypeError
from lakebloom.sbbf.distinct import runs
from lakebloom.sbbf.hashing.buffers import bits, numbers_or
from lakebloom.store.batched_file import ROWS, BatchedFile
from lakebloom.store.file_table import FileTable
from lakebloom.store.files import corrupt
from lakebloom.store.unit_columns import NO_TILE, UNITS, ColumnFacts, Unit, UnitColumns, facts_schema
from lakebloom.tables.file_columns import whole_numbers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from lakebloom.sbbf.kernels import BoolArray
    from lakebloom.storage import Storage
    from lakebloom.store.records import SegmentRecord

    IntArray = np.ndarray[Any, np.dtype[np.int64]]

__all__ = ["FEW_UNITS", "NO_TILE", "ColumnFacts", "Unit", "UnitTable"]

FEW_UNITS = 4
"""Up to so many units are read value by value: whole columns take longer."""

_MAX_ROW_GROUPS = 1 << 22
_MAX_NUMBER = 1 << 62
_MAX_ROW_GROUPS_A_UNIT = 64
"""A table may claim this many row groups for each unit, plus ``_MAX_ROW_GROUPS``. Large files have some dozen."""


class UnitTable:
    """The units of one segment. All methods that read raise CorruptIndexError."""

    def __init__(self, storage: Storage, record: SegmentRecord) -> None:
        self._record = record
        self.files = FileTable(storage, record)
        self._units = BatchedFile(storage, record.units, UNITS, record.num_units, _contradiction)
        self._facts = [
            BatchedFile(storage, file, _schema(file.path, kind), record.num_units)
            for file, kind in zip(record.facts, record.types, strict=True)
        ]
        self._numbers: dict[tuple[int | None, str], IntArray] = {}
        self._known: dict[int, BoolArray] = {}
        self._bounds: dict[int, tuple[pa.Array, pa.Array]] = {}

    def __len__(self) -> int:
        return self._record.num_units

    # Some units

    def rows(self, names: Sequence[str], wanted: IntArray) -> list[IntArray]:
        """Return these columns of some units, given in ascending order. Null becomes -1."""
        if 0 < len(wanted) <= FEW_UNITS:
            each = [[-1 if value is None else value for value in self.row(names, unit)] for unit in wanted.tolist()]
            return self._possible(names, list(np.array(each, dtype=np.int64).T))
        parts: list[list[IntArray]] = []
        for number, rows in _by_batch(wanted):
            batch = self._units.batch(number)
            parts.append([_filled(batch[name], -1)[rows] for name in names])
        found = [np.concatenate(column) for column in zip(*parts, strict=True)] if parts else [wanted] * len(names)
        return self._possible(names, found)

    def _possible(self, names: Sequence[str], found: list[IntArray]) -> list[IntArray]:
        if "row_group_count" in names:
            self._require_possible(found[list(names).index("row_group_count")])
        return found

    def row(self, names: Sequence[str], unit: int, column: int | None = None) -> list[Any]:
        """Return these values of one unit, or these facts about a column in it; null becomes None."""
        batch = (self._units if column is None else self._facts[column]).batch(unit // ROWS)
        return [batch[name][unit % ROWS].as_py() for name in names]

    def bound_type(self, column: int) -> pa.DataType:
        """Return the type in which the bounds of a column are stored."""
        return self._facts[column].schema.field("min").type

    def facts(self, column: int, names: Sequence[str], wanted: IntArray) -> list[pa.Array]:
        """Return these facts about a column in some units, given in ascending order, at least one."""
        file = self._facts[column]
        parts = []
        for number, rows in _by_batch(wanted):
            batch = file.batch(number)
            parts.append([pc.take(batch[name], whole_numbers(rows)) for name in names])
        return [pa.concat_arrays(column_parts) for column_parts in zip(*parts, strict=True)]

    def _require_possible(self, row_group_counts: IntArray) -> None:
        """Limit the row groups, which become lists."""
        groups = int(row_group_counts.sum())
        if groups > _MAX_ROW_GROUPS + _MAX_ROW_GROUPS_A_UNIT * len(self):
            raise self._units.corrupt(f"{groups} row groups in {len(self)} units")

    # All units

    def whole(self, name: str) -> IntArray:
        """Return a column of all units, by name. Null becomes 0."""
        key = None, name
        if key not in self._numbers:
            self._numbers[key] = _joined(_filled(batch[name], 0) for batch in self._units.scan())
        return self._numbers[key]

    def null_counts(self, column: int) -> tuple[IntArray, BoolArray]:
        """Return the null count of each unit, and whether it is known."""
        key = column, "null_count"
        if key not in self._numbers or column not in self._known:
            counts, known = [], [np.empty(0, dtype=np.bool_)]
            for batch in self._facts[column].scan():
                counts.append(_filled(batch["null_count"], 0))
                known.append(bits(pc.is_valid(batch["null_count"])))
            self._known[column] = np.concatenate(known)
            self._numbers[key] = _joined(iter(counts))
        return self._numbers[key], self._known[column]

    def bounds(self, column: int) -> tuple[pa.Array, pa.Array]:
        """Return the lower and the upper bound of each unit's values, null where it is unknown."""
        if column not in self._bounds:
            batches = [(batch["min"], batch["max"]) for batch in self._facts[column].scan()]
            kind = self.bound_type(column)
            low, high = zip(*batches, strict=True) if batches else ((), ())
            self._bounds[column] = _concat(low, kind), _concat(high, kind)
        return self._bounds[column]

    def tiles(self, column: int) -> IntArray:
        """Return the tile number of each unit, NO_TILE for a unit without a filter.

        Raises CorruptIndexError if the number of units that name a tile is not the number of units of that tile.
        """
        key = column, "tile"
        if key not in self._numbers:
            sizes = {tile.number: tile.num_units for tile in self._record.tiles if tile.column == column}
            whole = [number for number, size in sizes.items() if size == len(self)]
            if len(sizes) == len(whole) == 1:
                found = np.full(len(self), whole[0], dtype=np.int64)  # one tile has all units
                found.flags.writeable = False
            else:
                found = _joined(_filled(batch["tile"], NO_TILE) for batch in self._facts[column].scan())
                if not _fills(found, sizes):
                    raise self._facts[column].corrupt("other tiles than the commit names")
            self._numbers[key] = found
        return self._numbers[key]

    @cached_property
    def file_numbers(self) -> IntArray:
        """The number of each unit's file."""
        firsts = self.files.first_units
        found: IntArray = np.repeat(np.arange(len(firsts)), np.diff(np.append(firsts, len(self))))
        return found

    def of_files(self, chosen: BoolArray) -> BoolArray:
        """Return for each unit what ``chosen`` has for its file."""
        return chosen if len(chosen) == len(self) else chosen[self.file_numbers]

    def examine(self) -> None:
        """Read and check everything."""
        for _ in self.files.chunks():
            pass
        self._require_possible(_joined(_filled(batch["row_group_count"], 0) for batch in self._units.scan()))
        for facts in self._facts:
            for _ in facts.scan():
                pass
        for column in range(len(self._facts)):
            self.tiles(column)

    # To write them again

    def columns(self) -> UnitColumns:
        """Return all units as columns."""
        return UnitColumns(self.files.table(), _table(self._units), tuple(map(_table, self._facts)))

    def units(self) -> list[Unit]:
        """Return all units as records. Makes Python objects for all of them: for small tables only."""
        files = self.files.rows(np.arange(len(self.files)))
        spans = [_table(self._units)[field.name].to_pylist() for field in UNITS]
        facts = [_facts(table) for table in map(_table, self._facts)]
        return [
            Unit(files[file], start, count, first, groups, columns, offset, size)
            for file, (start, count, first, groups, offset, size), columns in zip(
                self.file_numbers.tolist(), zip(*spans, strict=True), zip(*facts, strict=True), strict=True
            )
        ]


def _schema(path: str, spark_type: str) -> pa.Schema:
    try:
        return facts_schema(spark_type)
    except UnsupportedTypeError as error:
        raise corrupt(path, str(error)) from error


def _contradiction(_number: int, batch: pa.RecordBatch) -> str | None:
    for field in UNITS:
        column = _filled(batch[field.name], 0)
        most = _MAX_ROW_GROUPS if field.name.startswith("row_group") else _MAX_NUMBER
        if not 0 <= int(column.min()) <= int(column.max()) <= most:
            return f"{field.name} from {column.min()} to {column.max()}"
    return None


def _by_batch(wanted: IntArray) -> Iterator[tuple[int, IntArray]]:
    """Yield each batch that has some of these ascending rows, and their numbers in it."""
    places = wanted // ROWS
    numbers_of, firsts = runs(places)
    ends = [*firsts, len(wanted)][1:]  # none for no rows at all
    for number, first, end in zip(numbers_of.tolist(), firsts, ends, strict=True):
        yield number, wanted[first:end] - number * ROWS


def _filled(column: pa.Array, for_null: int) -> IntArray:
    return numbers_or(column, column.type.bit_width // 8, for_null)


def _joined(batches: Iterator[IntArray]) -> IntArray:
    found = np.concatenate([np.empty(0, dtype=np.int64), *batches])
    found.flags.writeable = False
    return found


def _concat(batches: Sequence[pa.Array], kind: pa.DataType) -> pa.Array:
    return pa.concat_arrays(batches) if batches else pa.array([], kind)


def _table(file: BatchedFile) -> pa.Table:
    return pa.Table.from_batches(list(file.scan()), file.schema)


def _facts(table: pa.Table) -> Iterator[ColumnFacts]:
    nulls, tiles, lows, highs = (table[name].to_pylist() for name in ("null_count", "tile", "min", "max"))
    for null_count, tile, low, high in zip(nulls, tiles, lows, highs, strict=True):
        yield ColumnFacts(null_count, NO_TILE if tile is None else tile, low, high)


def _fills(tiles: IntArray, sizes: Mapping[int, int]) -> bool:
    """Tell whether the number of units that name each tile is the number of units of that tile.

    ``sizes`` has the number of units of each tile. A unit that names no tile, or one that is not in ``sizes``, is
    always kept.
    """
    end = max(sizes, default=NO_TILE) + 1
    if len(tiles) and not 0 <= int(tiles.min()) <= int(tiles.max()) < end:
        tiles = tiles[(tiles >= 0) & (tiles < end)]
    named = np.bincount(tiles, minlength=end)
    return all(named[number] == size for number, size in sizes.items())
