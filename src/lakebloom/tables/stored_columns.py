"""Columns of one Parquet file as Spark's own reader gives them, nested ones included, or a typed error.

What Arrow reads is brought to the table's type leaf by leaf, by the same rules under which an index hashes it
(``parquet_types``, ``calendars``): a value that Spark would read as another one is refused, never passed on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from lakebloom.errors import ColumnNotFoundError, UnsupportedTypeError
from lakebloom.tables.calendars import require_trusted, trusted_values
from lakebloom.tables.parquet_types import convert, describe, require_readable_element

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow.parquet as pq

    from lakebloom.tables.parquet.footer import ArrowFooter
    from lakebloom.tables.parquet_types import Family

__all__ = ["StoredColumns"]

_SPARK_NAMES = {
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.date32(): "date",
    pa.timestamp("us", "UTC"): "timestamp",
    pa.timestamp("us"): "timestamp_ntz",
    pa.string(): "string",
    pa.binary(): "binary",
}


class StoredColumns:
    """The columns that a Parquet file has."""

    def __init__(self, parquet: pq.ParquetFile, footer: ArrowFooter, *, case_sensitive: bool) -> None:
        self._case_sensitive = case_sensitive
        self._arrow_footer = footer
        self._starts: dict[str, int] = {}
        self._footer = parquet.metadata.metadata
        self._leaves: dict[str, list[Any]] = {}
        schema, at = parquet.metadata.schema, 0
        for field in parquet.schema_arrow:
            count = _count_leaves(field.type)
            self._starts[field.name] = at
            self._leaves[field.name] = [schema.column(i) for i in range(at, at + count)]
            at += count
        self._names = parquet.schema_arrow.names
        self._plain = {field.name for field in parquet.schema_arrow if not pt.is_nested(_storage(field.type))}

    def find(self, name: str) -> str | None:
        """Return what the file calls a column of the table; None where it has no such column.

        Raises ColumnNotFoundError where several names fit.
        """
        number = _find(self._names, name, case_sensitive=self._case_sensitive)
        return None if number is None else self._names[number]

    def require_plain(self, uri: str, name: str) -> None:
        """Raise EncryptedFileError where a top-level column of the file is encrypted, or some of it."""
        if self._arrow_footer.encrypted:
            start = self._starts[name]
            self._arrow_footer.require_plain(uri, range(start, start + len(self._leaves[name])))

    def is_plain(self, name: str) -> bool:
        """Tell whether there is a top-level column of this name, and it holds no others."""
        return name in self._plain

    def read_as(self, column: pa.ChunkedArray, name: str, kind: pa.DataType) -> pa.ChunkedArray:
        """Return a column that Arrow read under the file's `name` in the table's type.

        Raises UnsupportedTypeError where that cannot be done, or where Spark may read something else.
        """
        try:
            chunks = [self._as(chunk, self._leaves[name], kind, name) for chunk in column.chunks]
        except UnsupportedTypeError as error:
            raise UnsupportedTypeError(
                error.message,
                found=error.found,
                hint="query the table itself, which lakebloom speeds up after enable(); or leave the column out",
            ) from error
        return pa.chunked_array(chunks, type=kind)

    def _as(self, array: pa.Array, leaves: Sequence[Any], kind: pa.DataType, name: str) -> pa.Array:
        if pt.is_struct(kind):
            return self._struct(_require(array, pt.is_struct(array.type), kind, name), leaves, kind, name)
        if pt.is_map(kind):
            return self._map(_require(array, pt.is_map(array.type), kind, name), leaves, kind, name)
        if pt.is_list(kind):
            plain = _plain_list(array)
            return self._list(_require(plain, pt.is_list(plain.type), kind, name), leaves, kind, name)
        _require(array, len(leaves) == 1 and not pt.is_nested(_storage(array.type)), kind, name)
        return self._leaf(array, leaves[0], kind, name)

    def _struct(self, array: pa.Array, leaves: Sequence[Any], kind: pa.DataType, name: str) -> pa.Array:
        stored = [array.type.field(i) for i in range(array.type.num_fields)]
        ends = [0]
        for field in stored:
            ends.append(ends[-1] + _count_leaves(field.type))
        children, found = [], False
        for field in kind:
            number = _find([child.name for child in stored], field.name, case_sensitive=self._case_sensitive)
            if number is None:
                children.append(pa.nulls(len(array), field.type))
                continue
            found = True
            own = leaves[ends[number] : ends[number + 1]]
            children.append(self._as(array.field(number), own, field.type, f"{name}.{field.name}"))
        # With none of its fields, whether the struct itself is NULL depends on Spark's version and configuration.
        _require(array, found, kind, name)
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=array.is_null())

    def _list(self, array: pa.Array, leaves: Sequence[Any], kind: pa.DataType, name: str) -> pa.Array:
        values = self._as(array.values, leaves, kind.value_type, f"{name}.element")
        return pa.Array.from_buffers(kind, len(array), array.buffers()[:2], offset=array.offset, children=[values])

    def _map(self, array: pa.Array, leaves: Sequence[Any], kind: pa.DataType, name: str) -> pa.Array:
        of_key = _count_leaves(array.type.key_type)
        keys = self._as(array.keys, leaves[:of_key], kind.key_type, f"{name}.key")
        items = self._as(array.items, leaves[of_key:], kind.item_type, f"{name}.value")
        entries = pa.StructArray.from_arrays([keys, items], fields=[kind.key_field, kind.item_field])
        return pa.Array.from_buffers(kind, len(array), array.buffers()[:2], offset=array.offset, children=[entries])

    def _leaf(self, array: pa.Array, leaf: Any, kind: pa.DataType, name: str) -> pa.Array:
        family = _family(array, leaf, kind, name)
        plain = pc.cast(array, array.type.value_type) if pt.is_dictionary(array.type) else array
        values = convert(plain, kind, name)
        trusted = trusted_values(family, self._footer)
        if trusted is not None:
            require_trusted(values, trusted, name)
        return values


def _family(array: pa.Array, leaf: Any, kind: pa.DataType, name: str) -> Family:
    if pt.is_boolean(kind):
        _require(array, leaf.physical_type == "BOOLEAN", kind, name)
        return "other"
    if pt.is_int8(kind):  # a value that does not fit makes the cast fail
        return require_readable_element(leaf, "smallint", name)
    spark_type = f"decimal({kind.precision},{kind.scale})" if pt.is_decimal(kind) else _SPARK_NAMES[kind]
    try:
        return require_readable_element(leaf, spark_type, name)
    except UnsupportedTypeError:
        raise _refusal(kind, name, describe(leaf)) from None


def _find(names: Sequence[str], wanted: str, *, case_sensitive: bool) -> int | None:
    exact = [i for i, name in enumerate(names) if name == wanted]
    found = exact if case_sensitive else [i for i, name in enumerate(names) if name.lower() == wanted.lower()]
    if len(found) > 1:
        raise ColumnNotFoundError(
            f"several columns of the file are called {wanted}",
            found=", ".join(names[i] for i in found),
            hint="rewrite the file with different names, or set spark.sql.caseSensitive and index it again",
        )
    return found[0] if found else None


def _storage(kind: pa.DataType) -> pa.DataType:
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


def _count_leaves(kind: pa.DataType) -> int:
    kind = _storage(kind)
    if pt.is_dictionary(kind):
        return 1
    return sum(_count_leaves(kind.field(i).type) for i in range(kind.num_fields)) if pt.is_nested(kind) else 1


def _plain_list(array: pa.Array) -> pa.Array:
    kind = array.type
    if pt.is_large_list(kind) or pt.is_fixed_size_list(kind) or pt.is_list_view(kind) or pt.is_large_list_view(kind):
        return pc.cast(array, pa.list_(kind.value_field))
    return array


def _require(array: pa.Array, readable: bool, kind: pa.DataType, name: str) -> pa.Array:
    if not readable:
        raise _refusal(kind, name, str(array.type))
    return array


def _refusal(kind: pa.DataType, name: str, found: str) -> UnsupportedTypeError:
    return UnsupportedTypeError(f"column {name} of the file cannot be read as {kind} without Spark", found=found)
