"""Which columns a query reads through the data source, and their schema in Spark.

Spark does not tell a Python data source which columns a query needs. So all are read, unless the option ``columns`` or
a custom schema names fewer.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from lakebloom.errors import InvalidArgumentError, UnsupportedTypeError
from lakebloom.predicate.sql.parse import parse
from lakebloom.predicate.tree import columns as columns_of
from lakebloom.predicate.tree import from_json, renamed
from lakebloom.tables.columns import format_name
from lakebloom.tables.schema import table_schema
from lakebloom.tables.spark_schema import arrow_schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lakebloom.predicate.tree import Predicate
    from lakebloom.store.records import SourceRecord

__all__ = ["ChosenColumns", "SourceSchema"]

_CHAR_VARCHAR = "__CHAR_VARCHAR_TYPE_STRING"
_CHAR = re.compile(r"(?<!var)char\(")
_PLAIN_CHAR = re.compile(r"char\((\d+)\)")
_SHOWN_METADATA = frozenset({"comment", "__COLLATIONS", _CHAR_VARCHAR})
"""Without the defaults of columns, which Spark would apply a second time."""


@dataclass(frozen=True, slots=True)
class ChosenColumns:
    """The columns of one scan."""

    names: tuple[str, ...]
    """The columns that Spark gets."""
    read: tuple[str, ...]
    """The columns that are read, including those that the predicate needs."""
    read_json: str
    """The schema of these, as Spark writes it."""
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

    def __init__(self, table: SourceRecord) -> None:
        schema = json.loads(table.schema_json or "{}")
        self._fields: dict[str, dict[str, Any]] = {field["name"]: _nullable(field) for field in schema["fields"]}
        self._schema = table_schema(table.schema_json)
        self._case_sensitive = table.case_sensitive

    def output(self, columns: Sequence[str] | None) -> str:
        """Return the schema of the table, or of some of its columns, as Spark writes it.

        Raises ColumnNotFoundError, InvalidArgumentError for a column that is named twice, and UnsupportedTypeError for
        a type that only Spark can read.
        """
        names = self.names(columns)
        fields = [self._fields[name] for name in names]
        for field in fields:
            _require_readable(field)
        return _schema_json({**field, "metadata": _shown(field)} for field in fields)

    def predicate(self, text: str) -> Predicate:
        """Return the predicate of the option ``where``: a condition as SQL text, or a tree as JSON.

        Raises InvalidArgumentError and ColumnNotFoundError.
        """
        if not text.lstrip().startswith("{"):
            return parse(text, self._schema.types.items(), case_sensitive=self._case_sensitive)
        return self.bound(from_json(text))

    def bound(self, predicate: Predicate) -> Predicate:
        """Return a predicate with column names spelled as in the table. Raises ColumnNotFoundError."""
        return renamed(predicate, self._schema.names(case_sensitive=self._case_sensitive).require)

    def names(self, columns: Sequence[str] | None) -> list[str]:
        """Return the columns that a user names, spelled as in the table; None means all.

        Raises ColumnNotFoundError and InvalidArgumentError.
        """
        if columns is None:
            return self._schema.top_level_names
        return self._schema.chosen(columns, case_sensitive=self._case_sensitive)

    def chosen(self, schema_json: str, where: Predicate | None) -> ChosenColumns:
        """Return the columns of a custom schema: some columns of the table, with its types.

        Raises ColumnNotFoundError, InvalidArgumentError and UnsupportedTypeError.
        """
        asked = json.loads(schema_json)["fields"]
        fields = [self._fields[name] for name in self.names([format_name((field["name"],)) for field in asked])]
        for wanted, field in zip(asked, fields, strict=True):
            _require_readable(field)
            if wanted["type"] != field["type"] or wanted["name"] != field["name"] or not wanted["nullable"]:
                raise InvalidArgumentError(
                    "a custom schema may leave out columns, but must not rename or convert them",
                    found=f"{wanted['name']} {wanted['type']}" + ("" if wanted["nullable"] else " not null"),
                    hint=f"the table has {field['name']} {field['type']}",
                )
        needed = [] if where is None else [self._fields[path[0]] for path in sorted(columns_of(where))]
        read = {field["name"]: field for field in (*fields, *needed)}
        return ChosenColumns(
            tuple(field["name"] for field in fields),
            tuple(read),
            _schema_json(read.values()),
            tuple((field["name"], width) for field in fields if (width := _width(field)) is not None),
        )


def _schema_json(fields: Iterable[dict[str, Any]]) -> str:
    return json.dumps({"type": "struct", "fields": list(fields)})


def _nullable(kind: Any) -> Any:
    """Return a part of Spark's JSON with everything nullable, except the keys of maps."""
    if isinstance(kind, list):
        return [_nullable(part) for part in kind]
    if not isinstance(kind, dict):
        return kind
    flags = {"nullable", "containsNull", "valueContainsNull"}
    return {key: True if key in flags else part if key == "metadata" else _nullable(part) for key, part in kind.items()}


def _require_readable(field: dict[str, Any]) -> None:
    try:
        arrow_schema(_schema_json([field]))
        _width(field)
    except UnsupportedTypeError as error:
        raise UnsupportedTypeError(
            f"column {field['name']}: {error.message}",
            found=error.found,
            hint="name the other columns in the option columns, or query the table itself",
        ) from None


def _width(field: dict[str, Any]) -> int | None:
    name = (field.get("metadata") or {}).get(_CHAR_VARCHAR, "")
    if not _CHAR.search(name):
        return None
    plain = _PLAIN_CHAR.fullmatch(name)
    if plain is None:
        raise UnsupportedTypeError("only Spark can pad a CHAR inside another type", found=name)
    return int(plain[1])


def _shown(field: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in (field.get("metadata") or {}).items() if key in _SHOWN_METADATA}
