"""Columns of one Parquet file as Spark's own reader gives them, nested ones included, or a typed error.

What Arrow reads is brought to the table's type leaf by leaf, by the same rules under which an index hashes it
(``parquet_types``, ``calendars``): a value that Spark would read as another one is refused, never passed on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import types as pt

import lakebloom.arrow_compute as pc
from lakebloom.errors import UnsupportedTypeError
from lakebloom.tables.column_mapping import ids_in, path_of_ids, renamed_by_id
from lakebloom.tables.columns import ColumnNames
from lakebloom.tables.name_mapping import with_ids
from lakebloom.tables.parquet.calendars import require_trusted, trusted_values
from lakebloom.tables.parquet.types import convert, describe, require_readable_element

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from lakebloom.tables.parquet.footer import ArrowFooter
    from lakebloom.tables.parquet.types import Family

__all__ = ["StoredColumns", "renamed_fields"]

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


_AS_THEY_ARE = frozenset({pa.int32(), pa.int64(), pa.float32(), pa.float64()})
"""What Arrow reads as one of these is stored as it, and is the same to Spark. A wide table has hundreds of them."""
_BYTES = frozenset({pa.string(), pa.binary()})


def renamed_fields(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Return a column with other names of the fields in it. Nothing is copied."""
    return pa.chunked_array([chunk.view(kind) for chunk in column.chunks], type=kind)


class StoredColumns:
    """The columns that a Parquet file has."""

    def __init__(self, footer: ArrowFooter, *, case_sensitive: bool, name_mapping: str | None = None) -> None:
        self._case_sensitive = case_sensitive
        self._arrow_footer = footer
        self._footer = footer.metadata.metadata
        self._stored = footer.metadata.schema
        self._places: dict[str, range] = {}
        self._plain: set[str] = set()
        self._checked: set[tuple[str, pa.DataType]] = set()
        at, fields = 0, list(footer.arrow_schema)
        self._numbers = {field.name: number for number, field in enumerate(fields)}
        for field in fields:
            kind = _storage(field.type)
            nested = pt.is_nested(kind)
            count = _count_leaves(kind) if nested else 1
            self._places[field.name] = range(at, at + count)
            at += count
            if not nested:
                self._plain.add(field.name)
        self._names = _finder([field.name for field in fields], case_sensitive)
        self._schema = with_ids(footer.arrow_schema, name_mapping)

    def find(self, name: str) -> str | None:
        """Return what the file calls a column of the table; None where it has no such column.

        Raises ColumnNotFoundError where several names fit.
        """
        if not self._names.matches((name,)):
            return None
        return self._names.require((name,), where="a file")[0]

    def number(self, name: str) -> int:
        """Return the number of a top-level column of the file."""
        return self._numbers[name]

    def leaves(self, name: str) -> range:
        """Return the numbers of the leaves of a top-level column of the file."""
        return self._places[name]

    def find_id(self, uri: str, number: int) -> str | None:
        """Return what the file calls the column of an id; None where it has no such column. Raises DataFileError."""
        path = path_of_ids(uri, self._schema, (number,))
        return None if path is None else path[0]

    def require_fields(self, uri: str, name: str, ids: Iterable[int]) -> None:
        """Raise UnsupportedTypeError where a column of the file lacks a field, which may have a default."""
        missing = sorted(set(ids) - set(ids_in([self._schema.field(name)])))
        if missing:
            raise UnsupportedTypeError(
                f"{uri} has no values for fields of column {name}, and a field in it has a default",
                found=f"the ids {missing}",
                hint="query the table with its own engine, or leave the column out",
            )

    def by_ids(self, column: pa.ChunkedArray, name: str, names: Mapping[int, str]) -> pa.ChunkedArray:
        """Return a column with the fields of structs in it named by their ids."""
        kind = renamed_by_id(self._schema.field(name).type, names)
        return column if kind == column.type else renamed_fields(column, kind)

    def require_plain(self, uri: str, name: str) -> None:
        """Raise EncryptedFileError where a top-level column of the file is encrypted, or some of it."""
        if self._arrow_footer.encrypted:
            self._arrow_footer.require_plain(uri, self._places[name])

    @property
    def plain_leaves(self) -> list[int]:
        """The leaves that are top-level columns."""
        return [self._places[name].start for name in self._plain]

    def read_as(self, column: pa.ChunkedArray, name: str, kind: pa.DataType) -> pa.ChunkedArray:
        """Return a column that Arrow read under the file's `name` in the table's type.

        Raises UnsupportedTypeError where that cannot be done, or where Spark may read something else.
        """
        is_same = column.type == kind
        if is_same and (kind in _AS_THEY_ARE or (name, kind) in self._checked):
            return column
        try:
            leaves = [self._stored.column(i) for i in self._places[name]]
            chunks = [self._as(chunk, leaves, kind, name) for chunk in column.chunks]
        except UnsupportedTypeError as error:
            raise UnsupportedTypeError(
                error.message,
                found=error.found,
                hint="query the table with Spark, which lakebloom speeds up after enable(); or leave the column out",
            ) from error
        if is_same and chunks and kind in _BYTES:  # whether Spark reads the same depends on the footer alone
            self._checked.add((name, kind))
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
        names = _finder([field.name for field in stored], self._case_sensitive)
        children, found = [], False
        for field in kind:
            numbers = names.matches((field.name,))
            if not numbers:
                children.append(pa.nulls(len(array), field.type))
                continue
            names.require((field.name,), where=f"{name} in a file")
            number, found = numbers[0], True
            own = leaves[ends[number] : ends[number + 1]]
            children.append(self._as(array.field(number), own, field.type, f"{name}.{field.name}"))
        # With none of its fields, whether the struct itself is NULL depends on Spark's version and configuration.
        _require(array, found, kind, name)
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=pc.is_null(array))

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


def _finder(names: Sequence[str], case_sensitive: bool) -> ColumnNames:
    return ColumnNames([(name,) for name in names], case_sensitive=case_sensitive)


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
