"""A table's schema from the JSON in which Spark writes it, without Spark.

Types are given their SQL names ("long" in JSON is "bigint"). Collations and CHAR/VARCHAR lengths, which Spark keeps in
a field's metadata, become part of the type's name, because they change which values are equal.
"""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from lakebloom.errors import UnsupportedTypeError
from lakebloom.tables.columns import ColumnPath, arrow_type

__all__ = ["arrow_field", "arrow_schema", "defaults", "leaf_types", "leaves_of"]

_SQL_NAMES = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}
_COLLATIONS = "__COLLATIONS"
_CHAR_VARCHAR = "__CHAR_VARCHAR_TYPE_STRING"
_DEFAULT = "EXISTS_DEFAULT"
"""Where Spark keeps, in a field's metadata, the value that it reads from files without the column."""
_OTHER_ARROW_TYPES = {"boolean": pa.bool_(), "tinyint": pa.int8()}


def leaf_types(schema_json: str) -> list[tuple[ColumnPath, str]]:
    """Return the name and SQL type of every column, the leaves of structs included.

    >>> leaf_types('{"type":"struct","fields":[{"name":"a","type":"long","nullable":true,"metadata":{}}]}')
    [(('a',), 'bigint')]
    """
    return leaves_of(json.loads(schema_json))


def leaves_of(schema: dict[str, Any]) -> list[tuple[ColumnPath, str]]:
    """Return the same of a schema that is parsed already."""
    return list(_leaves(schema, ())) if schema else []


def defaults(schema: dict[str, Any]) -> dict[str, str]:
    """Return what Spark reads, for each column that has such a default, from files without it: an SQL expression."""
    metadata = ((field["name"], field.get("metadata") or {}) for field in schema.get("fields", []))
    return {name: known[_DEFAULT] for name, known in metadata if _DEFAULT in known}


def _leaves(struct: dict[str, Any], parents: ColumnPath) -> Any:
    for field in struct["fields"]:
        path = (*parents, field["name"])
        kind = field["type"]
        if isinstance(kind, dict) and kind["type"] == "struct":
            yield path, "struct<...>"
            yield from _leaves(kind, path)
        else:
            yield path, _sql_name(field)


def _sql_name(field: dict[str, Any]) -> str:
    kind, metadata = field["type"], field.get("metadata") or {}
    if isinstance(kind, dict):
        return f"{kind['type']}<...>" if kind["type"] in ("array", "map") else str(kind["type"])
    if _CHAR_VARCHAR in metadata:
        return str(metadata[_CHAR_VARCHAR])
    collation = metadata.get(_COLLATIONS, {}).get(field["name"])
    if collation is not None:
        return f"string collate {str(collation).rpartition('.')[2]}"
    return str(_SQL_NAMES.get(kind, kind))


def arrow_schema(schema_json: str) -> pa.Schema:
    """Return the Arrow schema in which a table's rows are given to a user.

    Raises UnsupportedTypeError for a type that Arrow has no values for.
    """
    return pa.schema([arrow_field(field) for field in json.loads(schema_json)["fields"]])


def arrow_field(field: dict[str, Any]) -> pa.Field:
    """Return one column of it."""
    return pa.field(field["name"], _arrow(field["type"]), nullable=True)


def _arrow(kind: Any) -> pa.DataType:
    if isinstance(kind, str):
        name = _SQL_NAMES.get(kind, kind)
        if name.startswith(("string", "char(", "varchar(")):
            return pa.string()
        return _OTHER_ARROW_TYPES[name] if name in _OTHER_ARROW_TYPES else _indexable(name)
    if kind["type"] == "struct":
        return pa.struct([arrow_field(field) for field in kind["fields"]])
    if kind["type"] == "array":
        return pa.list_(_arrow(kind["elementType"]))
    if kind["type"] == "map":
        return pa.map_(_arrow(kind["keyType"]), _arrow(kind["valueType"]))
    raise _no_values(str(kind["type"]))


def _indexable(name: str) -> pa.DataType:
    try:
        return arrow_type(name)
    except UnsupportedTypeError:
        raise _no_values(name) from None


def _no_values(name: str) -> UnsupportedTypeError:
    return UnsupportedTypeError(
        f"values of type {name} can be read by Spark only", found=name, hint="leave the column out"
    )
