"""How the files of a table call its columns, and how columns are found by id.

Files with ids never fall back to names: a column that was dropped and added again under its name is another column.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

import pyarrow as pa

from lakebloom.errors import DataFileError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from lakebloom.tables.columns import ColumnPath

__all__ = ["FIELD_ID", "ColumnMapping", "field_id", "has_ids", "ids_in", "path_of_ids", "renamed_by_id"]

FIELD_ID = b"PARQUET:field_id"


class ColumnMapping(enum.Enum):
    """Files call a column by its name, by a physical name that never changes, or by the id of its field."""

    NONE = "none"
    NAME = "name"
    ID = "id"


def field_id(field: pa.Field) -> int | None:
    """Return the id that a file gives to a field, as Arrow reads it."""
    text = (field.metadata or {}).get(FIELD_ID)
    return int(text) if text is not None and text.lstrip(b"-").isdigit() else None


def path_of_ids(uri: str, schema: pa.Schema, ids: Sequence[int]) -> ColumnPath | None:
    """Return what a file calls the column with these ids of its parts; None where it has no such column.

    Raises DataFileError for a file without ids: its columns cannot be told apart.
    """
    require_ids(uri, schema)
    fields: Iterable[pa.Field] = schema
    path: list[str] = []
    for number in ids:
        found = [field for field in fields if field_id(field) == number]
        if not found:
            return None
        if len(found) > 1:
            raise DataFileError(f"{uri} has several columns of the id {number}", found=str([f.name for f in found]))
        path.append(found[0].name)
        fields = list(found[0].type) if pa.types.is_struct(found[0].type) else []
    return tuple(path)


def ids_in(fields: Iterable[pa.Field]) -> Iterator[int]:
    """Yield the ids that a file gives to fields, at any depth."""
    for field in fields:
        number = field_id(field)
        if number is not None:
            yield number
        if pa.types.is_nested(field.type):
            yield from ids_in([field.type.field(i) for i in range(field.type.num_fields)])


def has_ids(fields: Iterable[pa.Field]) -> bool:
    """Tell whether a file gives an id to any of its fields, at any depth."""
    return next(ids_in(fields), None) is not None


def require_ids(uri: str, schema: pa.Schema) -> None:
    """Raise DataFileError for a file of a table that maps columns by id, if it has none."""
    if len(schema) and not has_ids(schema):
        raise DataFileError(
            f"{uri} has no ids of columns, by which its table finds them",
            hint="query the table with its own engine to see whether it can read it; an Iceberg table reads such files "
            "by its property schema.name-mapping.default",
        )


def renamed_by_id(kind: pa.DataType, names: Mapping[int, str]) -> pa.DataType:
    """Return a type with the fields of structs named by their ids; one whose id is unknown gets a name of no field."""
    if pa.types.is_struct(kind):
        fields = [
            pa.field(
                names.get(number, f"\x00{place}") if (number := field_id(field)) is not None else f"\x00{place}",
                renamed_by_id(field.type, names),
                field.nullable,
            )
            for place, field in enumerate(kind)
        ]
        return pa.struct(fields)
    if pa.types.is_map(kind):
        return pa.map_(renamed_by_id(kind.key_type, names), renamed_by_id(kind.item_type, names))
    if pa.types.is_list(kind):
        return pa.list_(renamed_by_id(kind.value_type, names))
    return kind
