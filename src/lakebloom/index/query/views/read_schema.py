"""Restricts an index to the columns in which a query reads the same values as the index did.

A query with another schema can read other values from a file: an integer that wraps around or becomes NULL in a
narrower type, a rounded decimal, a default for a column that the file does not have. If that is possible for a column,
its units are treated as not indexed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lakebloom.predicate.spark_types import Kind, spark_type
from lakebloom.tables.columns import ColumnNames
from lakebloom.tables.schema import TableSchema
from lakebloom.tables.spark_schema import StructType

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from lakebloom.predicate.prune.unit_filters import (
        BoolArray,
        HashArray,
        IntArray,
        UnitFacts,
        UnitFilters,
        WideFilters,
    )
    from lakebloom.predicate.spark_types import SparkType
    from lakebloom.store.records import TableRecord
    from lakebloom.store.unit_bounds import UnitBounds
    from lakebloom.tables.columns import ColumnPath

__all__ = ["TEMPORAL", "TEXT_FORMATS", "AsRead", "ReadSchema"]

TEXT_FORMATS = frozenset({"csv", "json", "text", "xml"})
"""The values of a line depend on the whole schema, and whether they are NULL also on the columns that are read."""
_DIGITS = {8: 3, 16: 5, 32: 10, 64: 19}
TEMPORAL = frozenset({Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ})


class ReadSchema:
    """The columns as a query reads them, by name."""

    def __init__(
        self,
        file_format: str,
        schema: TableSchema,
        *,
        built: Sequence[TableRecord] = (),
        temporal_differs: bool = False,
    ) -> None:
        """``built``: the tables when they were indexed; ``temporal_differs``: the query reads dates differently."""
        self.format = file_format.lower()
        self._types, self._defaults, self._names = schema.types, schema.defaults, schema.names
        self._temporal_differs = temporal_differs
        self._read, self._built = schema, built

    @classmethod
    def of_columns(cls, file_format: str, types: Mapping[ColumnPath, str], defaults: Collection[str]) -> ReadSchema:
        """Return the schema of indexed columns, under the names that the index has for them."""
        found = cls(file_format, TableSchema(StructType(())))
        found._types = dict(types)
        found._defaults = dict.fromkeys(defaults, "")
        found._names = ColumnNames(types, case_sensitive=True)
        return found

    def reads(self, column: ColumnPath, stored: str) -> bool:
        """Tell whether the query reads every value of a column unchanged that was indexed as ``stored``."""
        found = self._names.find(column)
        if found is None or not self._in_its_place(column, found):
            return False
        of_file, of_query = spark_type(stored), spark_type(_plain(self._types[found]))
        if self.format != "parquet" and (of_file != of_query or self._depends_on_the_session(of_file)):
            return False
        if self._temporal_differs and of_file.kind in TEMPORAL:
            return False
        return _holds(of_query, of_file)

    def _in_its_place(self, column: ColumnPath, found: ColumnPath) -> bool:
        """Tell whether a column is at the same position.

        Spark finds columns of ORC files by position if the file names them _col0, _col1 and so on, or if a setting
        says so; one file of a table may have such names, and another not.
        """
        if self.format != "orc":
            return True
        place = self._read.places.get(found)
        return all(source.file_schema.places.get(column) == place for source in self._built)

    def reads_as(self, column: ColumnPath, stored: str) -> bool:
        """Tell whether a column is read in exactly the type that was indexed."""
        found = self._names.find(column)
        return found is not None and self.reads(column, stored) and _plain(self._types[found]) == stored

    def _depends_on_the_session(self, kind: SparkType) -> bool:
        """Text has no time zone and calendar, and ORC's timestamps are local times of the JVM."""
        return kind.kind in TEMPORAL if self.format in TEXT_FORMATS else kind.kind is Kind.TIMESTAMP

    def has_default(self, column: ColumnPath) -> bool:
        """Tell whether a Parquet file without the column, which was indexed as NULL, may be read as a default."""
        found = self._names.find(column[:1])
        return self.format == "parquet" and found is not None and found[0] in self._defaults


def _plain(name: str) -> str:
    """Return the type without length and collation, which change what is equal, not what is read."""
    return "string" if name.startswith(("char(", "varchar(", "string")) else name


def _holds(wide: SparkType, narrow: SparkType) -> bool:
    match narrow.kind, wide.kind:
        case (Kind.INTEGER, Kind.INTEGER) | (Kind.FLOATING, Kind.FLOATING):
            return wide.bits >= narrow.bits
        case (Kind.INTEGER, Kind.DECIMAL):
            return wide.precision - wide.scale >= _DIGITS[narrow.bits]
        case (Kind.DECIMAL, Kind.DECIMAL):
            return wide.scale >= narrow.scale and wide.precision - wide.scale >= narrow.precision - narrow.scale
        case _:
            return wide == narrow and wide.kind is not Kind.OTHER


class _FactsAsRead:
    """Facts about units, as far as they hold for what the query reads."""

    def __init__(self, facts: UnitFacts, schema: ReadSchema) -> None:
        self._facts, self.schema = facts, schema

    def null_counts(self, column: ColumnPath) -> tuple[IntArray, BoolArray]:
        """Return the NULLs of each unit, and whether they are known."""
        counts, known = self._facts.null_counts(column)
        if self.schema.format in TEXT_FORMATS:
            return counts, np.zeros_like(known)
        return counts, known & ~self._may_be_missing(column) if self.schema.has_default(column) else known

    def entirely_null(self, column: ColumnPath) -> BoolArray | None:
        """Tell which units have no value but NULL; None if there is no such unit, or none is known."""
        if self.schema.format in TEXT_FORMATS or self.schema.has_default(column):
            return None  # NULLs are not known of text files, nor where all of a column may be missing
        return self._facts.entirely_null(column)

    def bounds(self, column: ColumnPath) -> UnitBounds | None:
        """Return the bounds of each unit. A unit that may lack the column has none, as all that was read is NULL."""
        return self._facts.bounds(column)

    def row_counts(self) -> IntArray:
        """Return the rows of each unit."""
        return self._facts.row_counts()

    def _may_be_missing(self, column: ColumnPath) -> BoolArray:
        """Tell which units have only NULLs: their file may lack the column."""
        counts, known = self._facts.null_counts(column)
        rows = self._facts.row_counts()
        missing: BoolArray = ~known | (rows < 0) | (counts == rows)
        return missing


class AsRead(_FactsAsRead):
    """Units without the columns in which the query may read other values than were indexed."""

    def __init__(self, units: UnitFilters, schema: ReadSchema) -> None:
        super().__init__(units, schema)
        self._units = units

    @property
    def num_units(self) -> int:
        """How many units there are."""
        return self._units.num_units

    @property
    def wide(self) -> WideFilters | None:
        """The same units, if there are very many."""
        wide = self._units.wide
        return None if wide is None else _WideAsRead(wide, self)

    def column_type(self, column: ColumnPath) -> str | None:
        """Return the type that was hashed; None if the query reads another one."""
        stored = self._units.column_type(column)
        return stored if stored is not None and self.schema.reads(column, stored) else None

    def false_positive_rate(self, column: ColumnPath) -> float:
        """Return the rate of a unit's filter."""
        return self._units.false_positive_rate(column)

    def might_contain_any(self, column: ColumnPath, hashes: HashArray) -> BoolArray:
        """Tell which units may hold one of the hashes."""
        found = self._units.might_contain_any(column, hashes)
        return found | self._may_be_missing(column) if self.schema.has_default(column) else found


class _WideAsRead:
    """Very many such units."""

    def __init__(self, wide: WideFilters, units: AsRead) -> None:
        self._wide, self._units = wide, units

    def holding(self, column: ColumnPath, hashes: HashArray) -> IntArray:
        """Return the units that may hold one of the hashes."""
        if self._units.schema.has_default(column):
            return np.flatnonzero(self._units.might_contain_any(column, hashes))
        return self._wide.holding(column, hashes)

    def some(self, units: IntArray) -> UnitFacts:
        """Return the facts about some units."""
        return _FactsAsRead(self._wide.some(units), self._units.schema)
