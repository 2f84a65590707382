"""Laws: no unit with a matching row is dropped, no truth is lost in the normal form, rows are filtered exactly."""

from __future__ import annotations

import dataclasses
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakebloom.predicate.prune.normalise import Keep, normalise
from lakebloom.predicate.prune.prune import can_match
from lakebloom.predicate.reasons import Reason
from lakebloom.predicate.rows.evaluate import row_mask
from lakebloom.predicate.tree import And, If, Not, Null, Or, Predicate, TruthIs, from_json, to_json
from tests.examples import most
from tests.predicate.evaluator import evaluate, holds
from tests.predicate.memory import BloomFilters, ExactFilters
from tests.predicate.strategies import (
    INDEXED,
    PREDICATES,
    PREDICATES_WITH_UNKNOWNS,
    TYPES,
    judged,
    rows,
    table_of,
)

TRUTHS = st.fixed_dictionaries(dict.fromkeys("pqr", st.sampled_from([True, False, None])))


@settings(max_examples=most(150), deadline=None)
@given(predicate=PREDICATES, rows=rows())
def test_rows_are_filtered_exactly(predicate: Predicate, rows: list[dict[Any, Any]]) -> None:
    expected = [evaluate(predicate, judged(row)) is True for row in rows]
    assert row_mask(predicate, table_of(rows), TYPES).to_pylist() == expected


@pytest.mark.slow
@pytest.mark.parametrize("kind", [ExactFilters, BloomFilters])
@settings(max_examples=most(120), deadline=None)
@given(data=st.data(), predicate=PREDICATES, rows=rows(min_size=1, max_size=8))
def test_a_unit_with_a_matching_row_is_kept(
    kind: type[ExactFilters], data: st.DataObject, predicate: Predicate, rows: list[dict[Any, Any]]
) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=3)))
    table = table_of(rows)
    units = [table.slice(i, j - i) for i, j in zip([0, *cuts], [*cuts, len(rows)], strict=True)]
    some_units = st.sets(st.sampled_from(range(len(units))))
    filters = kind(units, INDEXED, *(data.draw(some_units) for _ in range(3)))
    pruned = can_match(predicate, filters)
    for unit, kept in zip(units, pruned.keep.tolist(), strict=True):
        assert kept or not any(row_mask(predicate, unit, TYPES).to_pylist())
    # Of very many units the filters are probed first. A value outside of all bounds then counts as well.
    wide = can_match(predicate, dataclasses.replace(filters, is_wide=True))
    assert not (pruned.keep & ~wide.keep).any()
    assert kind is BloomFilters or (wide.keep == pruned.keep).all()
    for (asked, kept_units), by_bounds in zip(wide.units, wide.by_bounds, strict=True):
        assert not (kept_units & ~asked).any()
        assert not (by_bounds & (kept_units | ~asked)).any()
    for unit, kept in zip(units, wide.keep.tolist(), strict=True):
        assert kept or not any(row_mask(predicate, unit, TYPES).to_pylist())


@pytest.mark.slow
@settings(max_examples=most(150), deadline=None)
@given(predicate=PREDICATES_WITH_UNKNOWNS, rows=rows(min_size=1, max_size=3))
def test_nothing_is_decided_where_nothing_is_answered(predicate: Predicate, rows: list[dict[Any, Any]]) -> None:
    pruned = can_match(predicate, ExactFilters([table_of(rows)], INDEXED))
    reasons = {part.reason for part in pruned.unused}
    assert pruned.used or not pruned.keep.all() or Reason.NOT_NEEDED not in reasons
    for part, (asked, kept) in zip(pruned.used, pruned.units, strict=True):
        assert not (kept & ~asked).any()
        assert (part.units_asked, part.units_dropped) == (asked.sum(), (asked & ~kept).sum())
    for part, (asked, kept), by_bounds in zip(pruned.used, pruned.units, pruned.by_bounds, strict=True):
        assert part.dropped_by_bounds == by_bounds.sum()
        assert not (by_bounds & (kept | ~asked)).any()


@pytest.mark.slow
@settings(max_examples=most(200), deadline=None)
@given(predicate=PREDICATES_WITH_UNKNOWNS, rows=rows(min_size=1, max_size=3), truths=TRUTHS)
def test_normalising_keeps_every_truth(
    predicate: Predicate, rows: list[dict[Any, Any]], truths: dict[str, bool | None]
) -> None:
    normal = normalise(predicate)
    for row in map(judged, rows):
        truth = evaluate(predicate, row, lambda unknown: truths[unknown.text]) is True
        assert holds(normal, row, lambda _: True) or not truth

        # Only what is kept for want of an answer makes it say more: with the answers put in, it says the same.
        def answered(leaf: Keep, row: dict[Any, Any] = row) -> bool:
            return evaluate(leaf.part, row, lambda unknown: truths[unknown.text]) is True

        assert holds(normal, row, answered) == truth


@pytest.mark.slow
@settings(max_examples=most(100), deadline=None)
@given(predicate=PREDICATES_WITH_UNKNOWNS)
def test_json_carries_a_predicate_without_loss(predicate: Predicate) -> None:
    assert from_json(to_json(predicate)) == predicate
    assert from_json(to_json(predicate).decode()) == predicate


@settings(max_examples=most(100), deadline=None)
@given(predicate=PREDICATES_WITH_UNKNOWNS)
def test_every_leaf_is_accounted_for(predicate: Predicate) -> None:
    def leaves(part: Any) -> set[str]:
        if isinstance(part, Not | TruthIs):
            return leaves(part.child)
        if isinstance(part, If):
            return leaves(part.condition) | leaves(part.then) | leaves(part.otherwise)
        if isinstance(part, And | Or):
            return set[str]().union(*map(leaves, part.children))
        return set() if isinstance(part, Null) else {repr(part)}

    def is_plain(part: Any) -> bool:
        if isinstance(part, And | Or):
            return all(map(is_plain, part.children))
        return is_plain(part.child) if isinstance(part, Not) else not isinstance(part, TruthIs | If)

    unit = table_of([dict.fromkeys(TYPES)])
    pruned = can_match(predicate, ExactFilters([unit, pa.concat_tables([unit, unit])], INDEXED))
    reported = set[str]().union(*(leaves(part.predicate) for part in (*pruned.used, *pruned.unused)))
    assert reported == leaves(predicate) if is_plain(predicate) else reported <= leaves(predicate)
