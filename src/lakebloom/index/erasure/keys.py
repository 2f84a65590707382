"""The keys of an erasure: distinct values of the indexed column's type, with their hashes.

A row holds a key if Spark would call the two equal. Rows are compared by hash first, which costs the same for one key
and for a million, and those few that pass are compared by value.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakebloom.display.shortened import cut
from lakebloom.errors import InvalidArgumentError, LakebloomError, ValueConversionError
from lakebloom.index.arguments import kind_of
from lakebloom.predicate.prune.hashes import to_array
from lakebloom.predicate.python_literals import literals
from lakebloom.predicate.spark_types import Kind, spark_type
from lakebloom.predicate.sql.values import Written, typed
from lakebloom.predicate.tree import IsIn
from lakebloom.sbbf.hashing.hash_values import hash_array
from lakebloom.sbbf.values.plain_arrays import plain_array
from lakebloom.sbbf.values.read import is_scalar
from lakebloom.tables.columns import format_name
from lakebloom.tuning import MOST_KEYS

if TYPE_CHECKING:
    from typing import Any

    from lakebloom.predicate.tree import Literal
    from lakebloom.sbbf.kernels import HashArray
    from lakebloom.tables.columns import ColumnPath
    from lakebloom.tables.parquet.pages.row_ranges import Numbers

__all__ = ["Keys", "Matches", "keys_of", "keys_of_texts"]

_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")


class Matches(NamedTuple):
    """The rows that hold a key, and which key each holds."""

    rows: Numbers
    keys: Numbers


class Keys:
    """Distinct keys, as values of one Spark type."""

    def __init__(self, values: pa.Array, kind: str, given: tuple[Literal, ...] | None = None) -> None:
        """``given`` are the same values as literals, in the same order, if they are known: a million take seconds."""
        self.values, self.kind = values, kind
        self._literals = literals(values) if given is None else given
        self._hashes: HashArray = hash_array(values)[0]
        self._order = np.argsort(self._hashes, kind="stable")
        self._ordered = self._hashes[self._order]
        _, counts = np.unique(self._ordered, return_counts=True)
        self._most_alike = int(counts.max())
        """How many keys may have the same hash."""

    def __len__(self) -> int:
        return len(self.values)

    def predicate(self, column: ColumnPath) -> IsIn:
        """Return the condition that a column holds one of the keys."""
        return IsIn(column, self._literals)

    def converted(self, kind: str) -> Keys | None:
        """Return the same keys in another type of the column; None if one does not convert."""
        if kind == self.kind:
            return self
        try:
            values = to_array(self._literals, kind)
        except LakebloomError:
            return None
        return None if values is None else Keys(values, kind)

    def among(self, table: pa.Table, column: ColumnPath) -> Matches:
        """Return which rows of a table hold a key in a column of the keys' type. A row without a value holds none."""
        values = _leaf(table, column)
        if values is None or not table.num_rows:
            return Matches(_NONE, _NONE)
        found, start = [Matches(_NONE, _NONE)], 0
        for chunk in values.chunks:
            matches = self._of_chunk(chunk)
            found.append(Matches(matches.rows + start, matches.keys))
            start += len(chunk)
        return Matches(np.concatenate([each.rows for each in found]), np.concatenate([each.keys for each in found]))

    def _of_chunk(self, values: pa.Array) -> Matches:
        hashes, valid = hash_array(values)
        first = np.searchsorted(self._ordered, hashes)
        found = [Matches(_NONE, _NONE)]
        for step in range(self._most_alike):
            at = np.minimum(first + step, len(self._ordered) - 1)
            equal = self._ordered[at] == hashes
            if valid is not None:
                equal &= valid
            rows = np.flatnonzero(equal)
            if len(rows):
                keys = self._order[at[rows]]
                same = self._are_equal(values, rows, keys)
                found.append(Matches(rows[same], keys[same]))
        if self._most_alike == 1:
            return found[-1]
        rows, places = np.unique(np.concatenate([each.rows for each in found]), return_index=True)
        return Matches(rows, np.concatenate([each.keys for each in found])[places])

    def _are_equal(self, values: pa.Array, rows: Numbers, keys: Numbers) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Compare rows with keys of the same hash: it is the values that decide."""
        one = values.take(plain_array(rows, pa.int64()))
        if pa.types.is_dictionary(one.type):
            one = one.dictionary_decode()
        one, other = pc.cast(one, self.values.type), self.values.take(plain_array(keys, pa.int64()))
        equal = pc.equal(one, other)
        if pa.types.is_floating(self.values.type):
            equal = pc.or_(equal, pc.and_(pc.is_nan(one), pc.is_nan(other)))  # as in Spark
        return np.asarray(equal.to_numpy(zero_copy_only=False), dtype=np.bool_)


_NONE = np.zeros(0, dtype=np.int64)


def keys_of(keys: object, column: ColumnPath, kind: str) -> Keys:
    """Return keys that a user gave: a list, tuple, set or other iterable, a numpy array or an Arrow array.

    Raises InvalidArgumentError for no keys, for NULL among them and for too many, and ValueConversionError for values
    that the column cannot hold.
    """
    if isinstance(keys, (str, bytes, Mapping)) or is_scalar(keys) or not isinstance(keys, Iterable):
        hint = f"erasure_plan(name, [{keys!r:.40}])" if isinstance(keys, (str, int)) else 'keys=["user-1", "user-2"]'
        raise InvalidArgumentError("keys must be a collection of values", found=kind_of(keys), hint=hint)
    given = keys if isinstance(keys, (np.ndarray, pa.Array, pa.ChunkedArray)) else list(islice(keys, MOST_KEYS + 1))
    if len(given) > MOST_KEYS:
        raise _too_many(len(given))
    return _of_literals(literals(given), column, kind)


def keys_of_texts(texts: Sequence[str], column: ColumnPath, kind: str) -> Keys:
    """Return keys that are written as text, as on a command line. Raises the errors of ``keys_of``."""
    if len(texts) > MOST_KEYS:
        raise _too_many(len(texts))
    if spark_type(kind).kind is Kind.INTEGER and all(map(_WHOLE.fullmatch, texts)):
        return _of_literals(literals([int(text) for text in texts]), column, kind)
    found = []
    for text in texts:
        try:
            found.append(typed(Written(text, quoted=True), kind))
        except (InvalidArgumentError, ValueConversionError) as error:
            raise _not_a_value(repr(text), column, kind, error.hint) from error
    return _of_literals(tuple(found), column, kind)


def _of_literals(given: Sequence[Literal], column: ColumnPath, kind: str) -> Keys:
    if not given:
        raise InvalidArgumentError("an erasure needs at least one key", found="no keys", hint="pass the ids to erase")
    nulls = sum(literal.is_null for literal in given)
    if nulls:
        name = format_name(column)
        raise InvalidArgumentError(
            "a key must not be NULL: rows without a key belong to nobody",
            found=f"{nulls:,} of {len(given):,} keys",
            hint=f"leave NULL out; to delete rows without a key as well, run DELETE … WHERE {name} IS NULL",
        )
    values = to_array(given, kind)
    if values is None:
        wrong = next((each for each in given if to_array([each], kind) is None), given[0])
        raise _not_a_value(f"{wrong.value!r} ({wrong.type})", column, kind)
    if pa.types.is_floating(values.type):
        values = pc.add(values, pa.scalar(0, values.type))  # -0.0 and 0.0 are one key
    distinct = pc.unique(values)
    # Literals of one type stay in their order.
    is_same = len(distinct) == len(given) and len({literal.type for literal in given}) == 1
    return Keys(distinct, kind, tuple(given) if is_same else None)


def _not_a_value(value: str, column: ColumnPath, kind: str, hint: str = "") -> ValueConversionError:
    return ValueConversionError(
        f"a key is not a valid {kind} for column {format_name(column)}",
        found=cut(value, 200),
        hint=hint or f"pass values of the type {kind}",
    )


def _too_many(count: int) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"an erasure takes at most {MOST_KEYS:,} keys",
        found=f"{count:,}" if count > MOST_KEYS + 1 else f"more than {MOST_KEYS:,}",
        hint="plan several erasures",
    )


def _leaf(table: pa.Table, column: ColumnPath) -> pa.ChunkedArray | None:
    """Return a column or a leaf of a struct; None where the table does not have it."""
    array: Any = table
    for part in column:
        if isinstance(array, pa.Table):
            at = array.schema.get_field_index(part)
            array = None if at < 0 else array.column(at)
        else:
            at = array.type.get_field_index(part) if pa.types.is_struct(array.type) else -1
            array = None if at < 0 else pc.struct_field(array, at)
        if array is None:
            return None
    return array
