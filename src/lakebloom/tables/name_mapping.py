"""Ids of columns for files that have none: Iceberg's name mapping, as a property of a table has it in JSON.

Files that another tool wrote, and that a table took over, have names only. The mapping says which id a name means. It
is used only for files without any id: a file with ids never falls back to names.
"""

from __future__ import annotations

from functools import lru_cache

import msgspec
import pyarrow as pa

from lakebloom.errors import DataFileError
from lakebloom.tables.column_mapping import FIELD_ID, has_ids
from lakebloom.tuning import CACHED_SCHEMAS

__all__ = ["MappedField", "names_of_ids", "parse_name_mapping", "with_ids"]


class MappedField(msgspec.Struct, frozen=True, rename="kebab"):
    """The names of a field, and of what is in it."""

    names: tuple[str, ...] = ()
    field_id: int | None = None
    fields: tuple[MappedField, ...] | None = ()


@lru_cache(maxsize=CACHED_SCHEMAS)
def parse_name_mapping(text: str) -> tuple[MappedField, ...]:
    """Return a mapping. Raises DataFileError."""
    try:
        return msgspec.json.decode(text, type=tuple[MappedField, ...])
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise DataFileError(
            "the table's name mapping cannot be read",
            found=str(error),
            hint="correct the table's property schema.name-mapping.default",
        ) from error


def names_of_ids(text: str | None) -> dict[int, tuple[str, ...]]:
    """Return the names that each id has in files, at any depth."""
    found: dict[int, tuple[str, ...]] = {}

    def collect(fields: tuple[MappedField, ...]) -> None:
        for field in fields:
            if field.field_id is not None:
                found[field.field_id] = tuple(sorted(field.names))
            collect(field.fields or ())

    collect(() if text is None else parse_name_mapping(text))
    return found


def with_ids(schema: pa.Schema, text: str | None) -> pa.Schema:
    """Return the schema of a file with the ids that its names mean; as it is if it has ids, or there is no mapping."""
    if text is None or has_ids(schema):
        return schema
    mapping = parse_name_mapping(text)
    return pa.schema([_with_id(field, mapping) for field in schema])


def _with_id(field: pa.Field, mapping: tuple[MappedField, ...]) -> pa.Field:
    found = next((each for each in mapping if field.name in each.names), MappedField())
    below = found.fields or ()
    kind = field.type
    if pa.types.is_struct(kind):
        kind = pa.struct([_with_id(each, below) for each in kind])
    elif pa.types.is_map(kind):
        key, item = _with_id(_named(kind.key_field, "key"), below), _with_id(_named(kind.item_field, "value"), below)
        kind = pa.map_(kind.key_field.with_type(key.type), kind.item_field.with_type(item.type))
    elif pa.types.is_list(kind):
        element = _with_id(_named(kind.value_field, "element"), below)
        kind = pa.list_(kind.value_field.with_type(element.type))
    metadata = None if found.field_id is None else {FIELD_ID: str(found.field_id)}
    return pa.field(field.name, kind, field.nullable, metadata)


def _named(field: pa.Field, name: str) -> pa.Field:
    """Return what is inside a list or map under the name that mappings have for it."""
    return field.with_name(name)
