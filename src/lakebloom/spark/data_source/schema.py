"""Which columns a query reads through the data source, and their schema in Spark.

Spark does not tell a Python data source which columns a query needs. So all are read, unless the option ``columns`` or
a custom schema names fewer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from lakebloom.errors import InvalidArgumentError, UnsupportedTypeError
from lakebloom.predicate.sql.parse import parse
from lakebloom.predicate.tree import columns as columns_of
from lakebloom.predicate.tree import from_json, renamed
from lakebloom.tables.columns import format_name
from lakebloom.tables.schema import TableSchema
from lakebloom.tables.spark_schema import StructType, parse_struct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakebloom.predicate.tree import Predicate
    from lakebloom.store.records import TableRecord
    from lakebloom.tables.spark_schema import Field

__all__ = ["ChosenColumns", "SourceSchema"]

_CHAR = re.compile(r"(?<!var)char\(")
_PLAIN_CHAR = re.compile(r"char\((\d+)\)")


@dataclass(frozen=True, slots=True)
class ChosenColumns:
    """The columns of one scan."""

    names: tuple[str, ...]
    """The columns that Spark gets."""
    read: tuple[str, ...]
    """The columns that are read, including those that the predicate needs."""
    schema: TableSchema
    """The schema of these."""
    widths: tuple[tuple[str, int], ...]
    """The lengths of CHAR columns."""

    def shown(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows as Spark returns them: CHAR values are padded, even if the file has no blanks."""
        for name, width in self.widths:
            number = batch.schema.get_field_index(name)
            batch = batch.set_column(number, batch.schema.field(number), pc.utf8_rpad(batch.column(number), width))
        return batch


class SourceSchema:
    """The columns of an indexed table. All may be NULL, as in every table of files."""

    def __init__(self, table: TableRecord) -> None:
        self._schema = table.schema

    def output(self, columns: Sequence[str] | None) -> str:
        """Return the schema of the table, or of some of its columns, as Spark writes it.

        Raises ColumnNotFoundError, InvalidArgumentError for a column that is named twice, and UnsupportedTypeError for
        a type that only Spark can read.
        """
        fields = [self._field(name) for name in self.names(columns)]
        return StructType(tuple(replace(field, metadata=field.known.shown()) for field in fields)).to_json()

    def predicate(self, text: str) -> Predicate:
        """Return the predicate of the option ``where``: a condition as SQL text, or a tree as JSON.

        Raises InvalidArgumentError and ColumnNotFoundError.
        """
        if not text.lstrip().startswith("{"):
            return parse(text, self._schema.types.items(), case_sensitive=self._schema.case_sensitive)
        return self.bound(from_json(text))

    def bound(self, predicate: Predicate) -> Predicate:
        """Return a predicate with column names spelled as in the table. Raises ColumnNotFoundError."""
        return renamed(predicate, self._schema.names.require)

    def names(self, columns: Sequence[str] | None) -> list[str]:
        """Return the columns that a user names, spelled as in the table; None means all.

        Raises ColumnNotFoundError and InvalidArgumentError.
        """
        return self._schema.top_level_names if columns is None else self._schema.chosen(columns)

    def any_column(self, predicate: Predicate | None) -> str:
        """Return a column for a scan that wants none, and must have one: if possible one that the predicate reads.

        Raises UnsupportedTypeError if only Spark can read the columns.
        """
        used = [] if predicate is None else [path[0] for path in sorted(columns_of(self.bound(predicate)))]
        names = [*used, *self.names(None)]
        for name in names:
            try:
                return self._field(name).name
            except UnsupportedTypeError:
                continue
        return self._field(names[0]).name

    def chosen(self, schema_json: str, where: Predicate | None) -> ChosenColumns:
        """Return the columns of a custom schema: some columns of the table, with its types.

        Raises ColumnNotFoundError, InvalidArgumentError and UnsupportedTypeError.
        """
        asked = parse_struct(schema_json).fields
        fields = [self._field(name) for name in self.names([format_name((field.name,)) for field in asked])]
        for wanted, field in zip(asked, fields, strict=True):
            if wanted.type != field.type or wanted.name != field.name or not wanted.nullable:
                raise InvalidArgumentError(
                    "a custom schema may leave out columns, but must not rename or convert them",
                    found=_text(wanted) + ("" if wanted.nullable else " not null"),
                    hint=f"the table has {_text(field)}",
                )
        needed = [] if where is None else [path[0] for path in sorted(columns_of(where))]
        read = {**{field.name: field for field in fields}, **{name: self._schema.fields[name] for name in needed}}
        return ChosenColumns(
            tuple(field.name for field in fields),
            tuple(read),
            TableSchema(
                StructType(tuple(read.values())),
                case_sensitive=self._schema.case_sensitive,
                mapping=self._schema.mapping,
                name_mapping=self._schema.name_mapping,
            ),
            tuple((field.name, width) for field in fields if (width := _width(field)) is not None),
        )

    def _field(self, name: str) -> Field:
        """Return a column that can be read here. Raises UnsupportedTypeError."""
        field = self._schema.fields[name].all_nullable()
        try:
            field.arrow  # noqa: B018
            _width(field)
        except UnsupportedTypeError as error:
            raise UnsupportedTypeError(
                f"column {name}: {error.message}",
                found=error.found,
                hint="name the other columns in the option columns, or query the table itself",
            ) from None
        return field


def _text(field: Field) -> str:
    return f"{field.name} {field.type if isinstance(field.type, str) else field.type.sql_name}"


def _width(field: Field) -> int | None:
    name = field.known.char_varchar or ""
    if not _CHAR.search(name):
        return None
    plain = _PLAIN_CHAR.fullmatch(name)
    if plain is None:
        raise UnsupportedTypeError("only Spark can pad a CHAR inside another type", found=name)
    return int(plain[1])
