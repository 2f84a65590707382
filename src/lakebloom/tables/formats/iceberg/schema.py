"""Schemas of Iceberg as Spark writes them, with the ids of fields.

A column is its id. What is called the physical name elsewhere is made of it here, so an index stays with a column that
is renamed, and does not answer for another one that gets its name. Where files without ids are read by their names, the
names that mean the column are part of it as well: if they change, other values may be read from the same file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from lakebloom.tables import spark_schema as spark
from lakebloom.tables.formats.iceberg.metadata import ListType, MapType, StructType

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakebloom.tables.formats.iceberg.metadata import IcebergField, IcebergType, Schema

__all__ = ["physical_name", "spark_schema"]

_SPARK_NAMES = {
    "int": "integer",
    "timestamp": "timestamp_ntz",
    "timestamptz": "timestamp",
}
"""What Spark calls otherwise. Types that Spark does not have keep their names, and their columns are refused."""


def physical_name(field_id: int, names: Mapping[int, tuple[str, ...]]) -> str:
    """Return what stands for a column in all its versions. ``names`` are those in files without ids, by id.

    >>> physical_name(3, {}), physical_name(3, {3: ("a", "b")})
    ('#3', '#3 a,b')
    """
    known = names.get(field_id, ())
    return f"#{field_id} {','.join(known)}" if known else f"#{field_id}"


def spark_schema(schema: Schema, names: Mapping[int, tuple[str, ...]]) -> spark.StructType:
    """Return a schema as Spark reads it."""
    return spark.StructType(tuple(_field(field, names) for field in schema.fields))


def _field(field: IcebergField, names: Mapping[int, tuple[str, ...]]) -> spark.Field:
    default = None if field.initial_default is None else msgspec.json.encode(field.initial_default).decode()
    known = spark.Metadata(
        comment=field.doc if isinstance(field.doc, str) else None,
        column_id=field.id,
        physical_name=physical_name(field.id, names),
        initial_default=default,
    )
    return spark.Field(field.name, _type(field.type, names), not field.required, known)


def _type(kind: IcebergType, names: Mapping[int, tuple[str, ...]]) -> spark.DataType:
    if isinstance(kind, StructType):
        return spark.StructType(tuple(_field(field, names) for field in kind.fields))
    if isinstance(kind, ListType):
        return spark.ArrayType(_type(kind.element, names), not kind.element_required)
    if isinstance(kind, MapType):
        return spark.MapType(_type(kind.key, names), _type(kind.value, names), not kind.value_required)
    if kind.startswith("fixed["):
        return "binary"
    if kind.startswith("decimal("):
        return kind.replace(" ", "")
    return _SPARK_NAMES.get(kind, kind)
