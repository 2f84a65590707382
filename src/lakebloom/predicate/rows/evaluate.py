"""Which rows match: SQL's three-valued logic over Arrow columns, with Spark's equality.

An index tells where a row may be; this module tells whether it is there. A predicate that it cannot evaluate exactly as
Spark does is an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

import pyarrow as pa
from pyarrow import types as pt

import lakebloom.arrow_compute as pc
from lakebloom.errors import InvalidArgumentError, UnsupportedTypeError
from lakebloom.predicate.rows.comparisons import compare, is_one_of, starts_with
from lakebloom.predicate.rows.domains import Domain, column_in, domain_of, widest
from lakebloom.predicate.sql.text import to_text
from lakebloom.predicate.tree import (
    And,
    Compare,
    Equals,
    EqualsNullSafe,
    If,
    IsIn,
    IsNotNull,
    IsNull,
    Literal,
    Not,
    Null,
    Or,
    Predicate,
    StartsWith,
    TruthIs,
    Unknown,
    flat,
    operands,
)
from lakebloom.tables.columns import ColumnPath, format_name

__all__ = ["row_mask"]


def row_mask(predicate: Predicate, table: pa.Table, types: Mapping[ColumnPath, str]) -> pa.ChunkedArray:
    """Return True for the rows of a table where the predicate is TRUE, False where it is FALSE or NULL.

    ``types`` has the Spark type of each column that the predicate names. A column with a type that is missing in the
    table (an old file) is NULL in every row.

    Raises InvalidArgumentError for an unknown column, for a predicate that is too deep and for a part of it that
    lakebloom does not understand, and UnsupportedTypeError for types that it cannot compare as Spark does.

    >>> from lakebloom.predicate.column import col
    >>> table = pa.table({"a": [1, 2, None]})
    >>> row_mask(~(col("a") == 1), table, {("a",): "bigint"}).to_pylist()
    [False, True, False]
    """
    truth = _Rows(table, types).truth(flat(predicate))
    known = _or_false(truth)
    return known if isinstance(known, pa.ChunkedArray) else pa.chunked_array([known])


class _Rows:
    """The rows of a table, to evaluate predicates on."""

    def __init__(self, table: pa.Table, types: Mapping[ColumnPath, str]) -> None:
        self._table, self._types = table, types

    def truth(self, predicate: Predicate) -> pa.ChunkedArray:
        """Return TRUE, FALSE or NULL for each row."""
        match predicate:
            case And():
                return reduce(pc.and_kleene, map(self.truth, operands(predicate)), self._all(True))
            case Or():
                return reduce(pc.or_kleene, map(self.truth, operands(predicate)), self._all(False))
            case Not(child):
                return pc.invert(self.truth(child))
            case IsNull(column):
                return pc.is_null(self._column(column))
            case IsNotNull(column):
                return pc.is_valid(self._column(column))
            case Equals(column, value):
                return self._is_in(column, [value])
            case EqualsNullSafe(column, value):
                if value.is_null:
                    return pc.is_null(self._column(column))
                return _or_false(self._is_in(column, [value]))
            case IsIn(column, values):
                return self._is_in(column, values)
            case Compare():
                return self._compare(predicate)
            case StartsWith(column, value):
                return self._starts_with(column, value)
            case TruthIs(child, among):
                truth = self.truth(child)
                tests = {"true": _or_false(truth), "false": _or_false(pc.invert(truth)), "null": pc.is_null(truth)}
                return reduce(pc.or_, (tests[name] for name in among), self._all(False))
            case If(condition, then, otherwise):
                return pc.if_else(_or_false(self.truth(condition)), self.truth(then), self.truth(otherwise))
            case Null():
                return self._all(None)
            case Unknown():
                raise InvalidArgumentError(
                    "cannot filter rows by a condition that lakebloom does not understand",
                    found=to_text(predicate),
                    hint="leave this part out, and filter the result",
                )

    def _compare(self, predicate: Compare) -> pa.ChunkedArray:
        column_type = self._type(predicate.column)
        if predicate.value.is_null:
            return self._all(None)
        domain = self._domain(predicate.column, column_type, predicate.value)
        return compare(domain, self._column_in(domain, predicate.column), predicate.op, predicate.value)

    def _starts_with(self, column: ColumnPath, value: Literal) -> pa.ChunkedArray:
        column_type = self._type(column)
        if value.is_null:
            return self._all(None)
        domain = self._domain(column, column_type, value)
        if domain is not Domain.BYTES:
            raise UnsupportedTypeError(
                f"column {format_name(column)} has no beginning to compare",
                found=f"type {column_type}",
                hint="compare a string or binary column",
            )
        return starts_with(self._column_in(domain, column), value)

    def _is_in(self, column: ColumnPath, literals: Sequence[Literal]) -> pa.ChunkedArray:
        column_type = self._type(column)
        values = [literal for literal in literals if not literal.is_null]
        if not values:
            found = self._all(False)
        else:
            # One domain for the whole list, as in Spark: a single double turns the whole list into doubles.
            domain = widest({self._domain(column, column_type, literal) for literal in values})
            found = is_one_of(domain, self._column_in(domain, column), values)
        return found if len(values) == len(literals) else pc.or_kleene(found, self._all(None))

    def _domain(self, column: ColumnPath, column_type: str, literal: Literal) -> Domain:
        try:
            return domain_of(column_type, literal.type)
        except UnsupportedTypeError as error:
            value = f"{literal.value!r:.100}"
            raise UnsupportedTypeError(
                f"cannot compare column {format_name(column)}, of type {column_type}, with {value} as Spark does",
                found=error.found,
                hint=error.hint,
            ) from error

    def _all(self, value: bool | None) -> pa.Array:
        return pa.repeat(pa.scalar(value, pa.bool_()), self._table.num_rows)

    def _column_in(self, domain: Domain, column: ColumnPath) -> pa.ChunkedArray:
        return column_in(domain, self._column(column), self._type(column))

    def _type(self, column: ColumnPath) -> str:
        try:
            return self._types[column]
        except KeyError:
            raise InvalidArgumentError(
                "the predicate names a column that the table does not have",
                found=format_name(column),
                hint=f"known columns: {', '.join(map(format_name, self._types))}",
            ) from None

    def _column(self, column: ColumnPath) -> pa.ChunkedArray:
        self._type(column)  # raises for an unknown column
        array: pa.ChunkedArray | pa.Table = self._table
        for part in column:
            children = _children_named(array, part, column)
            if not children:
                return pa.chunked_array([pa.nulls(self._table.num_rows)])
            array = children[0]
        return pc.cast(array, array.type.value_type) if pt.is_dictionary(array.type) else array


def _or_false(truth: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.fill_null(truth, False) if truth.null_count else truth


def _children_named(parent: pa.ChunkedArray | pa.Table, name: str, column: ColumnPath) -> list[pa.ChunkedArray]:
    if isinstance(parent, pa.Table):
        children = [parent.column(index) for index in parent.schema.get_all_field_indices(name)]
    elif pt.is_struct(parent.type):  # the kernel makes a leaf NULL where its struct is
        children = [pc.struct_field(parent, index) for index in parent.type.get_all_field_indices(name)]
    else:
        children = [parent, parent]
    if len(children) > 1:
        raise InvalidArgumentError("a column name must match exactly one column", found=format_name(column))
    return children
