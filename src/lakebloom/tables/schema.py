"""A table's schema, parsed once: names, Spark types, Arrow types, defaults.

Tables of a thousand columns are common, and most questions are about one of them: what takes time is made when it is
first needed, and kept for as long as schemas are remembered.
"""

from __future__ import annotations

import json
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakebloom.errors import InvalidArgumentError
from lakebloom.tables.columns import ColumnNames, format_name, top_level_name
from lakebloom.tables.spark_schema import arrow_field, defaults, leaves_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lakebloom.tables.columns import ColumnPath

__all__ = ["TableSchema", "table_schema"]


@lru_cache(maxsize=64)
def table_schema(schema_json: str | None, without: frozenset[str] = frozenset()) -> TableSchema:
    """Return the schema that Spark wrote as this JSON; None is a table of which no column is known.

    ``without`` are top-level columns to leave out, such as those of partitions.
    """
    schema = json.loads(schema_json) if schema_json else {"fields": []}
    return TableSchema({"fields": [field for field in schema["fields"] if field["name"] not in without]})


class TableSchema:
    """The columns of a table in Spark's terms. ``fields`` is what Spark writes as JSON."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self._fields: dict[str, dict[str, Any]] = {field["name"]: field for field in schema.get("fields", [])}
        self._schema = schema
        self._arrow: dict[str, pa.Field] = {}
        self._names: dict[bool, ColumnNames] = {}
        self._top_level: dict[bool, ColumnNames] = {}

    @property
    def top_level_names(self) -> list[str]:
        """The names of all columns, in their order."""
        return list(self._fields)

    @cached_property
    def types(self) -> dict[ColumnPath, str]:
        """The SQL type of every column, the leaves of structs included."""
        return dict(leaves_of(self._schema))

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
        return defaults(self._schema)

    def names(self, *, case_sensitive: bool) -> ColumnNames:
        """Return the finder of columns and leaves."""
        if case_sensitive not in self._names:
            self._names[case_sensitive] = ColumnNames(self.types, case_sensitive=case_sensitive)
        return self._names[case_sensitive]

    def chosen(self, names: Iterable[str], *, case_sensitive: bool) -> list[str]:
        """Return the columns that a user names, in Spark's convention, as the table spells them.

        Raises ColumnNotFoundError, and InvalidArgumentError for a leaf of a struct or a column that is named twice.
        """
        if case_sensitive not in self._top_level:
            paths = [(name,) for name in self._fields]
            self._top_level[case_sensitive] = ColumnNames(paths, case_sensitive=case_sensitive)
        finder = self._top_level[case_sensitive]
        found: dict[str, str] = {}
        for name in names:
            (column,) = finder.require((top_level_name(name),))
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
            self._arrow[name] = known = arrow_field(self._fields[name])
        return known
