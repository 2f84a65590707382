"""A table's schema, parsed once: names, Spark types, Arrow types, defaults.

Tables of a thousand columns are common, and most questions are about one of them: what takes time is made when it is
first needed, and kept for as long as schemas are remembered.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from lakebloom.errors import InvalidArgumentError, UnsupportedSourceError
from lakebloom.tables.column_mapping import ColumnMapping
from lakebloom.tables.columns import ColumnNames, format_name, top_level_name
from lakebloom.tables.spark_schema import FIELD_ID, StructType, holds_defaults, parse_struct
from lakebloom.tuning import CACHED_SCHEMAS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lakebloom.tables.columns import ColumnPath
    from lakebloom.tables.spark_schema import DataType, Field

__all__ = ["PhysicalColumn", "TableSchema"]


class PhysicalColumn(NamedTuple):
    """What files call a column: the names of its parts, and their ids where ids decide."""

    path: ColumnPath
    ids: tuple[int, ...] = ()


class TableSchema:
    """The columns of a table in Spark's terms, and how they are found by name."""

    def __init__(
        self,
        struct: StructType,
        *,
        case_sensitive: bool = False,
        mapping: ColumnMapping = ColumnMapping.NONE,
        name_mapping: str | None = None,
    ) -> None:
        self.struct = struct
        self.case_sensitive = case_sensitive
        self.mapping = mapping
        self.name_mapping = name_mapping
        """Which ids the names of files without ids mean, where a table says that."""
        self._fields = {field.name: field for field in struct.fields}
        self._arrow: dict[str, pa.Field] = {}

    @staticmethod
    @lru_cache(maxsize=CACHED_SCHEMAS)
    def parse(
        schema_json: str | None,
        *,
        case_sensitive: bool = False,
        without: tuple[str, ...] = (),
        mapping: ColumnMapping = ColumnMapping.NONE,
        name_mapping: str | None = None,
    ) -> TableSchema:
        """Return the schema that Spark wrote as this JSON; None is a table of which no column is known.

        ``without`` are top-level columns to leave out, such as those of partitions. Raises UnsupportedTypeError for
        other JSON.
        """
        struct = parse_struct(schema_json) if schema_json else StructType(())
        if without:
            struct = StructType(tuple(field for field in struct.fields if field.name not in without))
        return TableSchema(struct, case_sensitive=case_sensitive, mapping=mapping, name_mapping=name_mapping)

    @property
    def fields(self) -> dict[str, Field]:
        """The columns by their names, in their order."""
        return self._fields

    @property
    def field_types(self) -> list[tuple[str, DataType]]:
        """The columns and their whole types, whether they may be NULL or not."""
        return [(field.name, field.type) for field in self.struct.fields]

    @cached_property
    def json(self) -> str:
        """The schema as Spark writes it."""
        return self.struct.to_json()

    @cached_property
    def has_field_ids(self) -> bool:
        """Whether it has ids of Parquet's fields."""
        return f'"{FIELD_ID}"' in self.json

    @cached_property
    def physical(self) -> dict[ColumnPath, PhysicalColumn]:
        """What files call every column and leaf, by its name: that never changes as long as the column lives.

        Raises UnsupportedSourceError where a table maps columns and does not say how.
        """
        found: dict[ColumnPath, PhysicalColumn] = {(): PhysicalColumn((), ())}
        for path, field in self.struct.leaves():
            above = found[path[:-1]]
            if self.mapping is ColumnMapping.NONE:
                found[path] = PhysicalColumn(path, ())
                continue
            number = field.known.column_id
            if field.known.physical_name is None or number is None:
                raise UnsupportedSourceError(
                    f"the table maps columns by {self.mapping.value}, and does not say how it maps {format_name(path)}",
                    hint="query the table with its own engine to see whether it can read it",
                )
            ids = (*above.ids, number) if self.mapping is ColumnMapping.ID else ()
            found[path] = PhysicalColumn((*above.path, field.physical_name), ids)
        del found[()]
        return found

    @cached_property
    def names_of_ids(self) -> dict[int, str]:
        """The physical name of every field, inside arrays and maps too, by its id."""
        return dict(self.struct.physical_names())

    @property
    def top_level_names(self) -> list[str]:
        """The names of all columns, in their order."""
        return list(self._fields)

    @cached_property
    def types(self) -> dict[ColumnPath, str]:
        """The SQL type of every column, the leaves of structs included."""
        return {path: field.sql_type for path, field in self.struct.leaves()}

    @cached_property
    def places(self) -> dict[ColumnPath, tuple[int, ...]]:
        """The place of every column and leaf: its number among the columns, then among those of its struct."""
        places: dict[ColumnPath, tuple[int, ...]] = {}
        below: dict[ColumnPath, int] = {}
        for path in self.types:
            number = below.get(path[:-1], 0)
            below[path[:-1]] = number + 1
            places[path] = (*places.get(path[:-1], ()), number)
        return places

    @cached_property
    def defaults(self) -> dict[str, str]:
        """What Spark reads from files without a column: an SQL expression for each column that has such a default."""
        known = ((field.name, field.known.default) for field in self.struct.fields)
        return {name: default for name, default in known if default is not None}

    @cached_property
    def initial_defaults(self) -> dict[ColumnPath, str]:
        """What files without a column or leaf mean in an Iceberg table: a value in JSON, by its name."""
        known = ((path, field.known.initial_default) for path, field in self.struct.leaves())
        return {path: default for path, default in known if default is not None}

    @cached_property
    def has_nested_defaults(self) -> frozenset[str]:
        """The columns that hold a field with an initial default, at any depth, also in arrays and maps."""
        return frozenset(field.name for field in self.struct.fields if holds_defaults(field.type))

    @cached_property
    def names(self) -> ColumnNames:
        """The finder of columns and leaves."""
        return ColumnNames(self.types, case_sensitive=self.case_sensitive)

    @cached_property
    def _top_level(self) -> ColumnNames:
        return ColumnNames([(name,) for name in self._fields], case_sensitive=self.case_sensitive)

    def column(self, wanted: ColumnPath) -> tuple[ColumnPath, str]:
        """Return the column or leaf that a name means, and its SQL type. Raises ColumnNotFoundError."""
        found = self.names.require(wanted)
        return found, self.types[found]

    def chosen(self, names: Iterable[str]) -> list[str]:
        """Return the columns that a user names, in Spark's convention, as the table spells them.

        Raises ColumnNotFoundError, and InvalidArgumentError for a leaf of a struct or a column that is named twice.
        """
        found: dict[str, str] = {}
        for name in names:
            (column,) = self._top_level.require((top_level_name(name),))
            if column in found:
                both = name if name == found[column] else f"{found[column]} and {name}, which are the same"
                raise InvalidArgumentError(
                    f"column {format_name((column,))} is named twice", found=both, hint="name each column once"
                )
            found[column] = name
        return list(found)

    def arrow(self, names: Sequence[str]) -> pa.Schema:
        """Return the Arrow schema of some columns, by their exact names.

        Raises UnsupportedTypeError for a type that Arrow has no values for.
        """
        return pa.schema([self._arrow_field(name) for name in names])

    def _arrow_field(self, name: str) -> pa.Field:
        known = self._arrow.get(name)
        if known is None:
            self._arrow[name] = known = self._fields[name].arrow
        return known
