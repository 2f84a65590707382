"""Which columns a query reads through the data source, and how they are shown to Spark.

A Python data source is not told which columns a query needs, so all are read, unless the option ``columns`` or a schema
of the reader's own names fewer.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from lakebloom.errors import ColumnNotFoundError, InvalidArgumentError, UnsupportedTypeError
from lakebloom.predicate.parse import parse
from lakebloom.predicate.tree import columns as columns_of
from lakebloom.predicate.tree import from_json
from lakebloom.tables.columns import format_name, top_level_name
from lakebloom.tables.spark_schema import arrow_schema, leaf_types

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lakebloom.predicate.tree import Predicate
    from lakebloom.store.records import SourceRecord

__all__ = ["ChosenColumns", "SourceSchema"]

_CHAR_VARCHAR = "__CHAR_VARCHAR_TYPE_STRING"
_CHAR = re.compile(r"(?<!var)char\(")
_PLAIN_CHAR = re.compile(r"char\((\d+)\)")
_SHOWN_METADATA = frozenset({"comment", "__COLLATIONS", _CHAR_VARCHAR})
"""Not the defaults of columns, which Spark would fill in once more."""


@dataclass(frozen=True, slots=True)
class ChosenColumns:
    """The columns of one scan."""

    names: tuple[str, ...]
    """What Spark gets."""
    read: tuple[str, ...]
    """What is read: also what a predicate needs to be checked."""
    read_json: str
    """The schema of these, as Spark writes it."""
    widths: tuple[tuple[str, int], ...]
    """The lengths of CHAR columns."""

    def shown(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows as Spark shows them: a CHAR has all its blanks, whether the file has them or not."""
        for name, width in self.widths:
            number = batch.schema.get_field_index(name)
            batch = batch.set_column(number, batch.schema.field(number), pc.utf8_rpad(batch.column(number), width))
        return batch


class SourceSchema:
    """The columns of an indexed table, all of which may be NULL, as in every table of files."""

    def __init__(self, table: SourceRecord) -> None:
        schema = json.loads(table.schema_json or "{}")
        self._fields: list[dict[str, Any]] = [_nullable(field) for field in schema["fields"]]

    def output(self, columns: Sequence[str] | None) -> str:
        """Return the schema of the table, or of some of its columns, as Spark writes it. Raises ColumnNotFoundError.

        Raises UnsupportedTypeError for a column that only Spark can read.
        """
        names = (
            [field["name"] for field in self._fields] if columns is None else [top_level_name(name) for name in columns]
        )
        fields = [self._field(name) for name in names]
        for field in fields:
            _require_readable(field)
        return _schema_json({**field, "metadata": _shown(field)} for field in fields)

    def predicate(self, text: str) -> Predicate:
        """Return the predicate of the option ``where``: a condition in SQL's notation, or a tree as JSON.

        Raises InvalidArgumentError and ColumnNotFoundError.
        """
        leaves = leaf_types(_schema_json(self._fields))
        if not text.lstrip().startswith("{"):
            return parse(text, leaves)
        predicate = from_json(text)
        known = {path for path, _ in leaves}
        for path in columns_of(predicate):
            if path not in known:
                raise ColumnNotFoundError(
                    f"the predicate names a column {format_name(path)}, which the table does not have",
                    found=f"columns {', '.join(map(format_name, sorted(known)))}",
                    hint="name one of these",
                )
        return predicate

    def chosen(self, schema_json: str, where: Predicate | None) -> ChosenColumns:
        """Return the columns that Spark asks for, which are some of the table's in its own types.

        Raises ColumnNotFoundError, InvalidArgumentError and UnsupportedTypeError.
        """
        asked = json.loads(schema_json)["fields"]
        fields = [self._field(field["name"]) for field in asked]
        for wanted, field in zip(asked, fields, strict=True):
            _require_readable(field)
            if wanted["type"] != field["type"] or wanted["name"] != field["name"] or not wanted["nullable"]:
                raise InvalidArgumentError(
                    "a schema of your own may leave columns out, but neither rename nor convert them",
                    found=f"{wanted['name']} {wanted['type']}" + ("" if wanted["nullable"] else " not null"),
                    hint=f"the table has {field['name']} {field['type']}",
                )
        needed = [] if where is None else [self._field(path[0]) for path in sorted(columns_of(where))]
        read = {field["name"]: field for field in (*fields, *needed)}
        return ChosenColumns(
            tuple(field["name"] for field in fields),
            tuple(read),
            _schema_json(read.values()),
            tuple((field["name"], width) for field in fields if (width := _width(field)) is not None),
        )

    def _field(self, name: str) -> dict[str, Any]:
        exact = [field for field in self._fields if field["name"] == name]
        found = exact or [field for field in self._fields if field["name"].lower() == name.lower()]
        if len(found) != 1:
            raise ColumnNotFoundError(
                f"the table has no column {name}" if not found else f"the name {name} fits several columns",
                found=f"columns {', '.join(field['name'] for field in self._fields)}",
                hint="name one of these",
            )
        return found[0]


def _schema_json(fields: Iterable[dict[str, Any]]) -> str:
    return json.dumps({"type": "struct", "fields": list(fields)})


def _nullable(kind: Any) -> Any:
    """Return a part of Spark's JSON in which everything may be NULL, but the keys of maps."""
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
        raise UnsupportedTypeError("a CHAR inside another type is padded by Spark only", found=name)
    return int(plain[1])


def _shown(field: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in (field.get("metadata") or {}).items() if key in _SHOWN_METADATA}
