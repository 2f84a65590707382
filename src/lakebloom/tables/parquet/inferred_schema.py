"""The schema that Spark gives a directory of Parquet files, without Spark: from one footer.

A file that Spark wrote holds its schema as Spark saw it, collations and all. For any other file each column gets the
type that Spark infers from Parquet's: a type that Spark cannot read keeps Parquet's name, and has no index.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import types as pt

from lakebloom.tables.columns import ColumnNames
from lakebloom.tables.schema import TableSchema
from lakebloom.tables.spark_schema import ArrayType, Field, MapType, Metadata, StructType, parse_struct

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lakebloom.tables.spark_schema import DataType

__all__ = ["inferred_schema"]

_WRITTEN_BY_SPARK = b"org.apache.spark.sql.parquet.row.metadata"
_PLAIN = {
    pa.bool_(): "boolean",
    pa.int8(): "byte",
    pa.int16(): "short",
    pa.int32(): "integer",
    pa.int64(): "long",
    pa.uint8(): "short",
    pa.uint16(): "integer",
    pa.uint32(): "long",
    pa.uint64(): "decimal(20,0)",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.date32(): "date",
    pa.null(): "void",
}


def inferred_schema(metadata: Any, partition_columns: Sequence[str]) -> TableSchema:
    """Return the schema of a table whose files are like this one.

    ``metadata`` is pyarrow's FileMetaData. Partition columns come last, as strings: only their names are known here.
    """
    written = (metadata.metadata or {}).get(_WRITTEN_BY_SPARK)
    fields = parse_struct(written).fields if written is not None else _of_parquet(metadata)
    own = ColumnNames([(field.name,) for field in fields], case_sensitive=False)
    added = [_field(name, "string") for name in partition_columns if not own.matches((name,))]
    return TableSchema(StructType((*fields, *added)))


def _of_parquet(metadata: Any) -> tuple[Field, ...]:
    columns = [metadata.schema.column(number) for number in range(metadata.num_columns)]
    # Spark's old timestamps: Arrow gives them without their time zone, which is always UTC.
    old = {column.path for column in columns if column.physical_type == "INT96"}
    found = _struct(metadata.schema.to_arrow_schema()).fields
    return tuple(_field(field.name, "timestamp" if field.name in old else field.type) for field in found)


def _struct(fields: Iterable[pa.Field]) -> StructType:
    return StructType(tuple(_field(field.name, _type(field.type)) for field in fields))


def _field(name: str, kind: DataType) -> Field:
    return Field(name, kind, metadata=Metadata())


def _type(kind: pa.DataType) -> DataType:
    if isinstance(kind, pa.BaseExtensionType):
        return _type(kind.storage_type)
    if pt.is_dictionary(kind):
        return _type(kind.value_type)
    if kind in _PLAIN:
        return _PLAIN[kind]
    if pt.is_struct(kind):
        return _struct([kind.field(number) for number in range(kind.num_fields)])
    if pt.is_map(kind):
        return MapType(_type(kind.key_type), _type(kind.item_type))
    if pt.is_list(kind) or pt.is_large_list(kind) or pt.is_fixed_size_list(kind):
        return ArrayType(_type(kind.value_type))
    return _bytes_or_time(kind)


def _bytes_or_time(kind: pa.DataType) -> str:
    if pt.is_string(kind) or pt.is_large_string(kind) or pt.is_string_view(kind):
        return "string"
    if pt.is_binary(kind) or pt.is_large_binary(kind) or pt.is_binary_view(kind) or pt.is_fixed_size_binary(kind):
        return "binary"
    if pt.is_decimal(kind) and kind.precision <= 38:
        return f"decimal({kind.precision},{kind.scale})"
    if pt.is_timestamp(kind):
        return "timestamp_ntz" if kind.tz is None else "timestamp"
    return "long" if pt.is_duration(kind) else str(kind)
