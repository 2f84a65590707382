"""Schemas as Spark writes them in JSON, typed and without Spark.

Types are given their SQL names ("long" in JSON is "bigint"). Collations and CHAR/VARCHAR lengths, which Spark keeps in
a field's metadata, become part of the type's name, because they change which values are equal.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import msgspec
import pyarrow as pa

from lakebloom.errors import UnsupportedTypeError
from lakebloom.tables.columns import ColumnPath, arrow_type

__all__ = [
    "FIELD_ID",
    "ArrayType",
    "DataType",
    "Field",
    "MapType",
    "Metadata",
    "StructType",
    "UserType",
    "parse_struct",
]

_SQL_NAMES = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}
_OTHER_ARROW_TYPES = {"boolean": pa.bool_(), "tinyint": pa.int8()}
FIELD_ID = "parquet.field.id"
_METADATA_KEYS = {
    "collations": "__COLLATIONS",
    "char_varchar": "__CHAR_VARCHAR_TYPE_STRING",
    "default": "EXISTS_DEFAULT",
    "field_id": FIELD_ID,
    "column_id": "delta.columnMapping.id",
    "physical_name": "delta.columnMapping.physicalName",
    "initial_default": "iceberg.initial-default",
}


class Metadata(msgspec.Struct, frozen=True, omit_defaults=True, rename=_METADATA_KEYS):
    """What Spark keeps about a field that changes its values, and the comment. All else is left out."""

    comment: Any = None
    collations: dict[str, str] = {}
    """By the names of the field and of what is inside it."""
    char_varchar: str | None = None
    """The type with its lengths, where it is or contains a CHAR or VARCHAR."""
    default: str | None = None
    """What Spark reads from files without the column: an SQL expression."""
    field_id: Any = None
    column_id: int | None = None
    """The id of the field in the files of a table that maps columns by id."""
    physical_name: str | None = None
    """What the files of a table that maps columns call the field, whatever it is called now."""

    initial_default: str | None = None
    """What files without the column mean in an Iceberg table: a value in the JSON form of its specification."""

    def shown(self) -> Metadata:
        """Return it without the default, which Spark would fill in once more, and without ids and physical names."""
        return Metadata(comment=self.comment, collations=self.collations, char_varchar=self.char_varchar)


class Field(msgspec.Struct, frozen=True):
    """A column, or a field of a struct."""

    name: str
    type: DataType
    nullable: bool = True
    metadata: Metadata | None = None

    @property
    def known(self) -> Metadata:
        """The metadata, which may be missing in JSON."""
        return self.metadata or Metadata()

    @property
    def sql_type(self) -> str:
        """The type's name in SQL; what is inside a struct, array or map is not part of it."""
        if not isinstance(self.type, str):
            return self.type.sql_name
        if self.known.char_varchar is not None:
            return self.known.char_varchar
        collation = self.known.collations.get(self.name)
        if collation is not None:
            return f"string collate {collation.rpartition('.')[2]}"
        return _SQL_NAMES.get(self.type, self.type)

    @property
    def arrow(self) -> pa.Field:
        """The column as its rows are given to a user. Raises UnsupportedTypeError where Arrow has no values for it."""
        return pa.field(self.name, _arrow(self.type), nullable=True)

    @property
    def physical_name(self) -> str:
        """What files call it, if the table maps columns."""
        return self.known.physical_name or self.name

    @property
    def column_ids(self) -> list[int]:
        """The ids of the field and of all fields of structs in it, where they have any."""
        return [number for number, _ in StructType((self,)).physical_names()]

    def physical(self) -> Field:
        """Return the field, and everything in it, under the names that files have."""
        return Field(self.physical_name, _physical(self.type), self.nullable, self.metadata)

    def all_nullable(self) -> Field:
        """Return the field with everything in it nullable, but the keys of maps."""
        return Field(self.name, _all_nullable(self.type), metadata=self.known)


class StructType(msgspec.Struct, frozen=True, tag_field="type", tag="struct"):
    """A struct, and also a whole table."""

    fields: tuple[Field, ...]

    @property
    def sql_name(self) -> str:
        """Its name in SQL."""
        return "struct<...>"

    def leaves(self, parents: ColumnPath = ()) -> Iterator[tuple[ColumnPath, Field]]:
        """Yield every field, each struct before what is inside it."""
        for field in self.fields:
            path = (*parents, field.name)
            yield path, field
            if isinstance(field.type, StructType):
                yield from field.type.leaves(path)

    def physical_names(self) -> Iterator[tuple[int, str]]:
        """Yield the id and the physical name of every field that has an id, at any depth."""
        for field in self.fields:
            if field.known.column_id is not None:
                yield field.known.column_id, field.physical_name
            yield from _physical_names(field.type)

    def to_json(self) -> str:
        """Return it as Spark writes it."""
        return msgspec.json.encode(self).decode()


class ArrayType(msgspec.Struct, frozen=True, rename="camel", tag_field="type", tag="array"):
    """An array."""

    element_type: DataType
    contains_null: bool = True

    @property
    def sql_name(self) -> str:
        """Its name in SQL."""
        return "array<...>"


class MapType(msgspec.Struct, frozen=True, rename="camel", tag_field="type", tag="map"):
    """A map."""

    key_type: DataType
    value_type: DataType
    value_contains_null: bool = True

    @property
    def sql_name(self) -> str:
        """Its name in SQL."""
        return "map<...>"


class UserType(
    msgspec.Struct,
    frozen=True,
    omit_defaults=True,
    rename={
        "java_class": "class",
        "python_class": "pyClass",
        "serialized_class": "serializedClass",
        "sql_type": "sqlType",
    },
    tag_field="type",
    tag="udt",
):
    """A type that a program defines."""

    java_class: str | None = None
    python_class: str | None = None
    serialized_class: str | None = None
    sql_type: DataType | None = None

    @property
    def sql_name(self) -> str:
        """Its name in SQL."""
        return "udt"


DataType: TypeAlias = str | StructType | ArrayType | MapType | UserType

_DECODER: msgspec.json.Decoder[StructType] = msgspec.json.Decoder(StructType)


def parse_struct(schema_json: str | bytes) -> StructType:
    """Return a schema that Spark wrote. Raises UnsupportedTypeError for anything else.

    >>> found = parse_struct('{"type":"struct","fields":[{"name":"a","type":"long","nullable":true,"metadata":{}}]}')
    >>> [(path, field.sql_type) for path, field in found.leaves()]
    [(('a',), 'bigint')]
    """
    try:
        return _DECODER.decode(schema_json)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise UnsupportedTypeError("this is not a schema that Spark wrote", found=str(error)) from None


def type_names(kind: DataType) -> Iterator[str]:
    """Yield the names of all plain types in a type."""
    if isinstance(kind, str):
        yield kind
    elif isinstance(kind, StructType):
        for field in kind.fields:
            yield from type_names(field.type)
    elif isinstance(kind, ArrayType):
        yield from type_names(kind.element_type)
    elif isinstance(kind, MapType):
        yield from type_names(kind.key_type)
        yield from type_names(kind.value_type)


def holds_defaults(kind: DataType) -> bool:
    """Tell whether a field in a type, at any depth, has an initial default."""
    if isinstance(kind, StructType):
        return any(field.known.initial_default is not None or holds_defaults(field.type) for field in kind.fields)
    if isinstance(kind, ArrayType):
        return holds_defaults(kind.element_type)
    if isinstance(kind, MapType):
        return holds_defaults(kind.key_type) or holds_defaults(kind.value_type)
    return False


def _physical(kind: DataType) -> DataType:
    if isinstance(kind, StructType):
        return StructType(tuple(field.physical() for field in kind.fields))
    if isinstance(kind, ArrayType):
        return ArrayType(_physical(kind.element_type), kind.contains_null)
    if isinstance(kind, MapType):
        return MapType(_physical(kind.key_type), _physical(kind.value_type), kind.value_contains_null)
    return kind


def _physical_names(kind: DataType) -> Iterator[tuple[int, str]]:
    if isinstance(kind, StructType):
        yield from kind.physical_names()
    elif isinstance(kind, ArrayType):
        yield from _physical_names(kind.element_type)
    elif isinstance(kind, MapType):
        yield from _physical_names(kind.key_type)
        yield from _physical_names(kind.value_type)


def _all_nullable(kind: DataType) -> DataType:
    if isinstance(kind, StructType):
        return StructType(tuple(field.all_nullable() for field in kind.fields))
    if isinstance(kind, ArrayType):
        return ArrayType(_all_nullable(kind.element_type))
    if isinstance(kind, MapType):
        return MapType(_all_nullable(kind.key_type), _all_nullable(kind.value_type))
    return kind


def _arrow(kind: DataType) -> pa.DataType:
    if isinstance(kind, str):
        name = _SQL_NAMES.get(kind, kind)
        if name.startswith(("string", "char(", "varchar(")):
            return pa.string()
        return _OTHER_ARROW_TYPES[name] if name in _OTHER_ARROW_TYPES else _indexable(name)
    if isinstance(kind, StructType):
        return pa.struct([field.arrow for field in kind.fields])
    if isinstance(kind, ArrayType):
        return pa.list_(_arrow(kind.element_type))
    if isinstance(kind, MapType):
        return pa.map_(_arrow(kind.key_type), _arrow(kind.value_type))
    raise _no_values(kind.sql_name)


def _indexable(name: str) -> pa.DataType:
    try:
        return arrow_type(name)
    except UnsupportedTypeError:
        raise _no_values(name) from None


def _no_values(name: str) -> UnsupportedTypeError:
    return UnsupportedTypeError(
        f"values of type {name} can be read by Spark only", found=name, hint="leave the column out"
    )
