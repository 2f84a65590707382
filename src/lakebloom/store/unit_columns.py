"""The units of a segment as columns, to write them.

    files     one row for each file: directory and name, identity, the number of its first unit
    units     one row for each unit: its rows, its row groups, and where these lie in the file
    facts     one table for each column, one row for each unit: NULLs, bounds, the tile of its filter

The units of a file are next to each other, in the order of their rows; a file is there once. The directory ends with a
slash, so directory and name make up the URI.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

import lakebloom.arrow_compute as pc
from lakebloom.errors import InvalidArgumentError
from lakebloom.sbbf.hashing.buffers import numbers as numbers_of
from lakebloom.sbbf.values.plain_arrays import plain_array
from lakebloom.store.batched_file import ROWS, hex_numbers, write_batched
from lakebloom.store.min_max import BoundValue, bound_type
from lakebloom.tables.file_columns import text_scalar, whole_numbers
from lakebloom.tables.file_identity import TableFile
from lakebloom.tuning import CACHED_SCHEMAS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakebloom.sbbf.kernels import BoolArray
    from lakebloom.storage import Storage
    from lakebloom.store.records import BatchedRecord

    IntArray = np.ndarray[Any, np.dtype[np.int64]]

__all__ = ["FILES", "FIRST_UNITS", "NO_TILE", "UNITS", "ColumnFacts", "Unit", "UnitColumns", "facts_schema"]

NO_TILE = -1
FIRST_UNITS = "first_units"
"""The key of the number of the first unit of each part's first file, in the head of ``files.arrow``."""

FILES = pa.schema(
    [
        pa.field("directory", pa.dictionary(pa.int32(), pa.string()), nullable=False),
        pa.field("name", pa.string(), nullable=False),
        pa.field("size_bytes", pa.int64(), nullable=False),
        pa.field("mtime_ms", pa.int64(), nullable=False),
        pa.field("tag", pa.string(), nullable=False),
        pa.field("first_unit", pa.int32(), nullable=False),
    ]
)
UNITS = pa.schema(
    [
        pa.field("row_start", pa.int64(), nullable=False),
        pa.field("row_count", pa.int64(), nullable=False),
        pa.field("row_group_start", pa.int32(), nullable=False),
        pa.field("row_group_count", pa.int32(), nullable=False),
        pa.field("byte_start", pa.int64()),
        pa.field("byte_count", pa.int64()),
    ]
)


@lru_cache(CACHED_SCHEMAS)
def facts_schema(spark_type: str) -> pa.Schema:
    """Return the schema of the facts about a column of this type. Raises UnsupportedTypeError."""
    bound = bound_type(spark_type)
    return pa.schema(
        [
            pa.field("null_count", pa.int64()),
            pa.field("tile", pa.int32()),
            pa.field("min", bound),
            pa.field("max", bound),
        ]
    )


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
    byte_start: int | None = None
    """Where the row groups start in the file; None if that is unknown."""
    byte_count: int | None = None


class UnitColumns(NamedTuple):
    """The units of a segment."""

    files: pa.Table
    units: pa.Table
    facts: tuple[pa.Table, ...]

    @classmethod
    def of(cls, units: Sequence[Unit], types: Sequence[str]) -> UnitColumns:
        """Return these units. ``types`` are the Spark types of the columns."""
        firsts = [i for i, unit in enumerate(units) if not i or unit.file != units[i - 1].file]
        files = [units[first].file for first in firsts]
        if len({file.uri for file in files}) != len(files):
            raise InvalidArgumentError("the units of a file must be next to each other", found=f"{len(units)} units")
        parts = [file.uri.rpartition("/") for file in files]
        of_units = [[getattr(unit, field.name) for unit in units] for field in UNITS]
        tables = []
        for column, spark_type in enumerate(types):
            facts = [unit.columns[column] for unit in units]
            tiles = [None if fact.tile == NO_TILE else fact.tile for fact in facts]
            values: list[list[Any]] = [
                [fact.null_count for fact in facts],
                tiles,
                [fact.min for fact in facts],
                [fact.max for fact in facts],
            ]
            tables.append(_table(values, facts_schema(spark_type)))
        return cls(
            _table(
                [
                    [before + slash for before, slash, _ in parts],
                    [name for _, _, name in parts],
                    [file.size_bytes for file in files],
                    [file.mtime_ms for file in files],
                    [file.tag for file in files],
                    firsts,
                ],
                FILES,
            ),
            _table(of_units, UNITS),
            tuple(tables),
        )

    @classmethod
    def concat(cls, parts: Sequence[UnitColumns]) -> UnitColumns:
        """Return the units of several segments, one after the other."""
        moved, before = [], 0
        for part in parts:
            moved.append(_with_first_units(part.files, part._first_units() + before))
            before += len(part.units)
        facts = zip(*(part.facts for part in parts), strict=True)
        return cls(
            pa.concat_tables(moved),
            pa.concat_tables([part.units for part in parts]),
            tuple(map(pa.concat_tables, facts)),
        )

    def filter(self, keep: BoolArray) -> UnitColumns:
        """Return some of the units. A file without any is left out."""
        if keep.all():
            return self
        mask = _bits(keep)
        firsts = self._first_units()
        ends = np.append(firsts[1:], len(self.units))
        before = np.concatenate([[0], np.cumsum(keep)])
        left = np.flatnonzero(before[ends] > before[firsts])
        files = _with_first_units(self.files.take(whole_numbers(left)), before[firsts][left])
        return UnitColumns(files, self.units.filter(mask), tuple(facts.filter(mask) for facts in self.facts))

    def _first_units(self) -> IntArray:
        chunks = self.files["first_unit"].chunks
        return np.concatenate([np.empty(0, np.int64), *(numbers_of(chunk, 4) for chunk in chunks)])

    def with_tiles(self, column: int, numbers: IntArray) -> UnitColumns:
        """Return the units with these tiles for a column, NO_TILE for none."""
        facts = self.facts[column]
        field = facts.schema.field("tile")
        tiles = _int32s(numbers, numbers != NO_TILE)
        changed = facts.set_column(facts.schema.get_field_index("tile"), field, tiles)
        return self._replace(facts=(*self.facts[:column], changed, *self.facts[column + 1 :]))

    @property
    def uris(self) -> tuple[str, str]:
        """The smallest and the largest URI."""
        if not len(self.files):
            return "", ""
        ends = []
        for run in self.files.select(["directory", "name"]).to_batches(max_chunksize=ROWS):
            parts = (pc.cast(run[name], pa.large_string()) for name in ("directory", "name"))
            ends.append(pc.min_max(pc.binary_join_element_wise(*parts, text_scalar(""))).as_py())
        return min(each["min"] for each in ends), max(each["max"] for each in ends)

    def write(self, storage: Storage, folder: str, labels: Sequence[str]) -> tuple[BatchedRecord, ...]:
        """Write all tables into a directory: the files, the facts of each column under its label, the units last."""
        firsts = self._first_units()[::ROWS]
        files = write_batched(storage, f"{folder}/files.arrow", self.files, {FIRST_UNITS: hex_numbers(firsts)})
        facts = [
            write_batched(storage, f"{folder}/{label}.facts.arrow", table)
            for label, table in zip(labels, self.facts, strict=True)
        ]
        return (files, write_batched(storage, f"{folder}/units.arrow", self.units), *facts)


def _with_first_units(files: pa.Table, numbers: IntArray) -> pa.Table:
    field = FILES.field("first_unit")
    return files.set_column(files.schema.get_field_index("first_unit"), field, _int32s(numbers))


def _table(columns: list[list[Any]], schema: pa.Schema) -> pa.Table:
    return pa.table([_array(values, field.type) for field, values in zip(schema, columns, strict=True)], schema=schema)


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(kind):
        return plain_array(values, pa.string()).dictionary_encode()
    if None not in values:
        return plain_array(values, kind)
    known = next((value for value in values if value is not None), None)
    if known is None:
        return pa.nulls(len(values), kind)
    # Any known value for the unknown ones, and a bitmap that says so: ``pa.array`` would load pandas.
    filled = plain_array([known if value is None else value for value in values], kind)
    valid = _bits(np.fromiter((value is not None for value in values), np.bool_, len(values))).buffers()[1]
    return pa.Array.from_buffers(kind, len(values), [valid, *filled.buffers()[1:]])


def _bits(truths: BoolArray) -> pa.Array:
    packed = pa.py_buffer(np.packbits(truths, bitorder="little"))
    return pa.Array.from_buffers(pa.bool_(), len(truths), [None, packed])


def _int32s(values: IntArray, valid: BoolArray | None = None) -> pa.Array:
    data = pa.py_buffer(values.astype("<i4"))
    bitmap = None if valid is None or valid.all() else _bits(valid).buffers()[1]
    return pa.Array.from_buffers(pa.int32(), len(values), [bitmap, data])
