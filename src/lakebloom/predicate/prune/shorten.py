"""Shortens a long list of values for each unit, to the values that may be in the unit.

A value that fails a unit's filter is in none of its rows, so the shorter list matches the same rows of the unit. Most
files contain one value of a long list or none, and comparing a row with one value is much faster than with thousands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lakebloom.predicate.prune.hashes import to_hash, to_hashes
from lakebloom.predicate.tree import And, IsIn, Or, operands
from lakebloom.tuning import LONG_LIST, SHORTENED_PAIRS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakebloom.predicate.prune.prune import Resolver
    from lakebloom.predicate.prune.unit_filters import IntArray
    from lakebloom.predicate.tree import Literal, Predicate
    from lakebloom.sbbf.kernels import HashArray
    from lakebloom.store.segments import Segment

__all__ = ["Narrowing", "long_lists"]


def long_lists(predicate: Predicate) -> list[IsIn]:
    """Return the long lists that may be shortened. Under NOT, a shorter list would match other rows.

    >>> from lakebloom.predicate.column import col
    >>> [len(leaf.values) for leaf in long_lists(col("a").isin(range(9)) & ~col("b").isin(range(9)))]
    [9]
    """
    found: list[IsIn] = []
    waiting = [predicate]
    while waiting:
        part = waiting.pop()
        if isinstance(part, And | Or):
            waiting.extend(reversed(part.children))
        elif isinstance(part, IsIn) and len(part.values) >= LONG_LIST:
            found.append(part)
    return found


class Narrowing:
    """Shortens the lists of a predicate for units of one version. Values are hashed once."""

    def __init__(self, resolve: Resolver, predicate: Predicate) -> None:
        self._predicate = predicate
        self._resolve = resolve
        self._lists = long_lists(predicate)
        self._values = {id(leaf): _not_null(leaf) for leaf in self._lists}
        self._hashes: dict[tuple[int, str], HashArray | None] = {}

    def of_units(self, segment: Segment, units: IntArray) -> list[Predicate]:
        """Return the shortened predicate for each of these ascending units, all of which can match."""
        found: list[tuple[IsIn, list[IntArray | None]]] = []
        for leaf in self._lists:
            column = self._resolve(leaf.column)
            kind = None if column is None else segment.column_type(column)
            hashes = None if column is None or kind is None else self._of_leaf(leaf, kind)
            if column is not None and hashes is not None:
                found.append((leaf, segment.shortlists(column, hashes, units, SHORTENED_PAIRS)))
        return [self._cut(self._predicate, [(leaf, kept[i]) for leaf, kept in found]) for i in range(len(units))]

    def _of_leaf(self, leaf: IsIn, kind: str) -> HashArray | None:
        key = id(leaf), kind
        if key not in self._hashes:
            self._hashes[key] = _hashes(self._values[id(leaf)], kind)
        return self._hashes[key]

    def _cut(self, predicate: Predicate, found: Sequence[tuple[IsIn, IntArray | None]]) -> Predicate:
        for leaf, kept in found:
            if predicate is leaf and kept is not None:
                values = self._values[id(leaf)]
                return IsIn(leaf.column, tuple([values[i] for i in kept.tolist()]))
        if isinstance(predicate, And | Or):
            return type(predicate)(tuple([self._cut(child, found) for child in operands(predicate)]))
        return predicate


def _hashes(values: Sequence[Literal], kind: str) -> HashArray | None:
    """Return the hash of each value, None if one does not convert to the column's type."""
    if len({value.type for value in values}) == 1:
        hashes, converted = to_hashes(values, kind)  # values of one type stay in their order
        return hashes if converted else None
    each = [to_hash(value, kind) for value in values]
    known = [h for h in each if h is not None]
    return np.array(known, dtype=np.uint64) if len(known) == len(each) else None


def _not_null(leaf: IsIn) -> list[Literal]:
    return [value for value in leaf.values if not value.is_null]  # NULL equals nothing, and makes no row TRUE
