"""Equality deletes: the rows of a data file that have the values of a deleted row in some columns.

Values are compared in the column's newest type, because a type may have been promoted between the two files. NULL is
equal to NULL, NaN to NaN, and the two zeros differ, as Iceberg's own comparators have it.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from lakebloom.errors import DataFileError
from lakebloom.tables.column_mapping import field_id, has_ids
from lakebloom.tables.constants import constant_array
from lakebloom.tables.file_identity import is_object
from lakebloom.tables.name_mapping import with_ids
from lakebloom.tables.parquet.footer import read_arrow_footer
from lakebloom.tables.parquet.open import open_source, parquet_file, reading
from lakebloom.tuning import BATCH_ROWS, KEPT_DELETE_FILES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from lakebloom.tables.formats.iceberg.deletes import EqualityColumn, EqualityDeletes, IcebergDeletes

    Numbers = np.ndarray[Any, np.dtype[np.int64]]

__all__ = ["equal_rows"]

_TYPES = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"),
    "timestamp_ns": pa.timestamp("ns"),
    "timestamptz_ns": pa.timestamp("ns", "UTC"),
    "string": pa.string(),
    "binary": pa.binary(),
    "uuid": pa.binary(16),
}
_DECIMAL = re.compile(r"decimal\((\d+), ?(\d+)\)")
_FIXED = re.compile(r"fixed\[(\d+)\]")


def equal_rows(deletes: IcebergDeletes, options: Mapping[str, str]) -> Numbers:
    """Return the numbers of the rows of a data file that equality deletes name, with the memory of a batch."""
    given = tuple(sorted((options if is_object(deletes.data_uri) else {}).items()))
    sets = [_DeletedValues(each, given) for each in deletes.equality]
    columns = list({column.id: column for each in deletes.equality for column in each.columns}.values())
    places = {column.id: place for place, column in enumerate(columns)}
    found: list[Numbers] = [np.zeros(0, dtype=np.int64)]
    start = 0
    for arrays, count in _values(deletes.data_uri, columns, options, deletes):
        matches = np.zeros(count, dtype=np.bool_)
        for values in sets:
            matches |= values.contain([arrays[places[column.id]] for column in values.columns], count)
        found.append(np.flatnonzero(matches) + start)
        start += count
    return np.concatenate(found)


class _DeletedValues:
    """The values that files of equality deletes with the same columns name."""

    def __init__(self, deletes: EqualityDeletes, options: tuple[tuple[str, str], ...]) -> None:
        self.columns = deletes.columns
        tables = [_deleted_values(uri, deletes.columns, options) for uri in deletes.files]
        arrays = [pa.concat_arrays([table[place] for table in tables]) for place in range(len(deletes.columns))]
        # Each column's values are numbered, and a row is the number of its numbers, so that rows are compared at once.
        self._steps: list[tuple[pa.Array, np.ndarray[Any, Any]]] = []
        rows = np.zeros(len(arrays[0]), dtype=np.int64)
        for array in arrays:
            distinct = array.unique()
            codes = _codes(array, distinct)
            known, rows = np.unique(rows * (len(distinct) or 1) + codes, return_inverse=True)
            self._steps.append((distinct, known))

    def contain(self, arrays: Sequence[pa.Array], count: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Tell for each row of a batch whether its values are among them."""
        rows = np.zeros(count, dtype=np.int64)
        alive = np.ones(count, dtype=np.bool_)
        for array, (distinct, known) in zip(arrays, self._steps, strict=True):
            if not len(known):
                return np.zeros(count, dtype=np.bool_)
            codes = _codes(array, distinct)
            alive &= codes >= 0
            wanted = rows * (len(distinct) or 1) + codes
            places = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
            alive &= known[places] == wanted
            rows = places
        return alive


def _codes(array: pa.Array, distinct: pa.Array) -> Numbers:
    """Return the place of each value among distinct ones, -1 where it is not there. NULL is a value."""
    found = pc.index_in(array, value_set=distinct, skip_nulls=False)
    codes: Numbers = pc.fill_null(found, pa.scalar(-1, pa.int32())).to_numpy().astype(np.int64)
    return codes


@lru_cache(maxsize=KEPT_DELETE_FILES)
def _deleted_values(
    uri: str, columns: tuple[EqualityColumn, ...], options: tuple[tuple[str, str], ...]
) -> tuple[pa.Array, ...]:
    parts = [arrays for arrays, _ in _values(uri, columns, dict(options))]
    if not parts:
        return tuple(pa.nulls(0, _comparable_type(column)) for column in columns)
    return tuple(pa.concat_arrays([arrays[place] for arrays in parts]) for place in range(len(columns)))


def _values(
    uri: str, columns: Sequence[EqualityColumn], options: Mapping[str, str], data: IcebergDeletes | None = None
) -> Iterator[tuple[list[pa.Array], int]]:
    """Yield the values of columns in batches. ``data`` is given for a data file, which may lack a column."""
    constants = dict(data.constants) if data is not None else {}
    with open_source(uri, options) as source, reading(uri):
        file = parquet_file(uri, source, read_arrow_footer(uri, source))
        schema = with_ids(file.schema_arrow, None if data is None else data.name_mapping)
        if data is None or has_ids(schema):
            paths = [_path(schema, column.id) for column in columns]
        else:
            raise DataFileError(f"{uri} has no ids of columns, by which rows are deleted")
        for column, path in zip(columns, paths, strict=True):
            if path is None and data is None:
                raise DataFileError(f"{uri} deletes by column {column.id}, which it does not have")
        names = [".".join(path) for path in paths if path is not None]
        sizes = (file.metadata.row_group(group).num_rows for group in range(file.metadata.num_row_groups))
        if not names:  # Arrow has no batches without columns
            for size in sizes:
                yield [_constant(column, constants, size) for column in columns], size
            return
        for batch in file.iter_batches(BATCH_ROWS, columns=names, use_threads=False):
            arrays = [
                _constant(column, constants, batch.num_rows)
                if path is None or f"#{column.id}" in constants
                else _comparable(_leaf(batch, path), column, uri)
                for column, path in zip(columns, paths, strict=True)
            ]
            yield arrays, batch.num_rows


def _path(fields: Iterable[pa.Field], number: int) -> tuple[str, ...] | None:
    """Return what a file calls the field of an id, which may be in structs."""
    for field in fields:
        if field_id(field) == number:
            return (field.name,)
        below = _path(list(field.type), number) if pt.is_struct(field.type) else None
        if below is not None:
            return (field.name, *below)
    return None


def _leaf(batch: pa.RecordBatch, path: Sequence[str]) -> pa.Array:
    array = batch.column(batch.schema.get_field_index(path[0]))
    for part in path[1:]:
        array = pc.struct_field(array, array.type.get_field_index(part))
    return array


def _constant(column: EqualityColumn, constants: Mapping[str, str | None], count: int) -> pa.Array:
    text = constants.get(f"#{column.id}", column.default)
    kind = _arrow_type(column)
    if text is None:
        return pa.nulls(count, _comparable_type(column))
    plain = pa.binary() if pt.is_fixed_size_binary(kind) else kind
    if column.type == "uuid":
        text = text.replace("-", "")
    value = _comparable(constant_array(f"#{column.id}", plain, text), column, "the table's metadata")
    return value.take(pa.array(np.zeros(count, dtype=np.int64)))


def _arrow_type(column: EqualityColumn) -> pa.DataType:
    decimal, fixed = _DECIMAL.fullmatch(column.type), _FIXED.fullmatch(column.type)
    if decimal is not None:
        return pa.decimal128(int(decimal[1]), int(decimal[2]))
    if fixed is not None:
        return pa.binary(int(fixed[1]))
    if column.type not in _TYPES:
        raise DataFileError(
            f"rows are deleted by a column of the type {column.type}",
            found=f"column {column.id}",
            hint="query the table with its own engine",
        )
    return _TYPES[column.type]


def _comparable_type(column: EqualityColumn) -> pa.DataType:
    kind = _arrow_type(column)
    return pa.int32() if pt.is_float32(kind) else pa.int64() if pt.is_float64(kind) else kind


def _comparable(array: pa.Array, column: EqualityColumn, uri: str) -> pa.Array:
    """Return values in the column's newest type; floating-point numbers as their bits, with one NaN."""
    kind = _arrow_type(column)
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pt.is_dictionary(array.type):
        array = array.dictionary_decode()
    try:
        array = array if array.type == kind else pc.cast(array, kind)
    except pa.ArrowException as error:
        raise DataFileError(f"{uri} has no {column.type} in column {column.id}", found=str(error)) from error
    if not pt.is_floating(kind):
        return array
    numbers = np.asarray(pc.fill_null(array, 0.0)).astype(kind.to_pandas_dtype())
    numbers[np.isnan(numbers)] = np.nan
    bits = numbers.view(np.int32 if pt.is_float32(kind) else np.int64)
    return pa.array(bits, mask=np.asarray(array.is_null()))
