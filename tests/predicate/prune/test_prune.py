"""Exact sets of units: data, predicate, what is kept, what was asked of the filters, and what is said about it."""

from __future__ import annotations

import dataclasses

import numpy as np
import pyarrow as pa
import pytest

from lakebloom.predicate.column import col
from lakebloom.predicate.prune import prune
from lakebloom.predicate.prune.hashes import Probes, to_probes
from lakebloom.predicate.prune.prune import Pruned, Pruner, Unused, Used, can_match
from lakebloom.predicate.prune.unit_filters import BoolArray, HashArray
from lakebloom.predicate.reasons import Reason
from lakebloom.predicate.sql.text import to_text
from lakebloom.predicate.tree import And, Equals, Literal, Or, Predicate, Unknown
from lakebloom.tables.columns import ColumnPath
from tests.predicate.memory import ExactFilters

a, b, bare = col("a"), col("b"), col("bare")
ODD = Unknown("NOT_SUPPORTED", "odd(a)")

UNITS = [
    pa.table({"a": pa.array(a, pa.int32()), "b": pa.array(b, pa.string()), "bare": pa.array(a, pa.int32())})
    for a, b in [
        ([1, 2], ["x", "y"]),
        ([2, None], ["x", None]),
        ([None, None], ["z", "z"]),
        ([3, 3], [None, None]),
        ([], []),
    ]
]
TYPES = {("a",): "int", ("b",): "string"}


def filters() -> ExactFilters:
    return ExactFilters(UNITS, TYPES)


def kept(pruned: Pruned) -> list[int]:
    return np.flatnonzero(pruned.keep).tolist()


ALL = [0, 1, 2, 3, 4]
# Predicate, units kept, columns whose filters were read (in order).
CASES: list[tuple[Predicate, list[int], str]] = [
    (a == 1, [0], "a"),
    (a == 2, [0, 1], "a"),
    (a == 9, [], ""),
    (a.eq_null_safe(3), [3], "a"),
    (a.isin([1, 3, 9]), [0, 3], "a"),
    (a.isin([1, None]), [0], "a"),
    (a == None, [], ""),  # noqa: E711
    (a.isin([]), [], ""),
    (a.is_null(), [1, 2], ""),
    (a.eq_null_safe(None), [1, 2], ""),
    (a.is_not_null(), [0, 1, 3], ""),
    (~a.is_null(), [0, 1, 3], ""),
    (a != 1, ALL, ""),
    (a > 1, [0, 1, 3], ""),
    (a > 2, [3], ""),
    (a >= 2, [0, 1, 3], ""),
    (a < 2, [0], ""),
    (a <= 2, [0, 1], ""),
    (~(a <= 2), [3], ""),
    (a > 2.5, [3], ""),
    (a > 10**30, [], ""),
    (a < "2", ALL, ""),
    (a.between(4, 1000), [], ""),
    (a.between(2, 2), [0, 1], "a"),
    (a.between(2, 3), [0, 1, 3], "a"),
    (a.between(-5, 0), [], ""),
    (b > "y", [2], ""),
    (b.startswith("x"), [0, 1], ""),
    (b.startswith(""), [0, 1, 2], ""),
    (~b.startswith("x"), ALL, ""),
    (a.startswith("1"), ALL, ""),
    (bare > 1, ALL, ""),
    (ODD, ALL, ""),
    (bare == 1, ALL, ""),
    (bare.is_null(), ALL, ""),
    (bare.is_not_null(), ALL, ""),
    (a == 1.0, ALL, ""),
    (a == "1", ALL, ""),
    # AND
    ((a == 2) & (b == "y"), [0], "ab"),
    ((a == 9) & (b == "y"), [], ""),
    ((a == 2) & (b == "y") & (a > 1), [0], "ab"),
    ((a > 2) & (a == 2), [], ""),
    ((a == 2) & (bare == 1) & ODD & (b != "x"), [0, 1], "a"),
    ((a == 2) & a.is_null(), [1], "a"),
    ((a == 2) & (b == None), [], ""),  # noqa: E711
    (b.is_null() & a.is_null() & (a == 2), [1], "a"),
    (a.is_null() & a.is_not_null() & (b == "z") & (a == 3), [], ""),
    (And(()), ALL, ""),
    # OR
    ((a == 1) | (b == "z"), [0, 2], "ab"),
    ((a == 1) | (bare == 1), ALL, ""),
    ((a == 1) | ODD, ALL, ""),
    ((a == 1) | (a > 2), [0, 3], "a"),
    ((a < 3) | (a == 2), [0, 1], ""),
    ((a == 1) | (bare > 2), ALL, ""),
    ((a == 1) | (a != 3), ALL, ""),
    ((a == 1) | (b == 5), ALL, ""),
    ((a == 1) | a.is_null(), [0, 1, 2], "a"),
    ((a == 1) | (a == None), [0], "a"),  # noqa: E711
    (a.is_null() | a.is_not_null() | (a == 1), [0, 1, 2, 3], ""),
    (Or(()), [], ""),
    # both
    (((a == 1) | (b == "z")) & (a == 3), [], "a"),
    (((a == 1) | ODD) & (b == "z"), [2], "b"),
    (((a == 1) & ODD) | ((b == "z") & (bare == 1)), [0, 2], "ab"),
    (~((a != 2) | (b != "y")), [0], "ab"),
    (a.isin([2, 3]) & (b == "nowhere"), [], ""),
    (a.isin([2, 3]) & (b == "xx"), [], "b"),
    (a.is_not_null() & ((a == 3) | a.is_not_null()), [0, 1, 3], ""),
]


@pytest.mark.parametrize(("predicate", "units", "asked"), CASES, ids=[to_text(case[0]) for case in CASES])
def test_exact_units(predicate: Predicate, units: list[int], asked: str) -> None:
    index = filters()
    assert kept(can_match(predicate, index)) == units
    assert [column for (column,), _ in index.probes] == list(asked)


def test_unknown_null_counts_keep() -> None:
    index = ExactFilters(UNITS, TYPES, unknown_null_counts={0, 2})
    assert kept(can_match(a.is_null(), index)) == [0, 1, 2]
    assert kept(can_match(a.is_not_null(), index)) == [0, 1, 2, 3]


def test_unknown_row_counts_keep() -> None:
    index = ExactFilters(UNITS, TYPES, unknown_row_counts={2, 4})
    assert kept(can_match(a.is_not_null(), index)) == [0, 1, 2, 3, 4]
    assert kept(can_match(a.is_null(), index)) == [1, 2]


@dataclasses.dataclass
class Saturated(ExactFilters):
    """Filters that drop nothing."""

    def might_contain_any(self, column: ColumnPath, hashes: HashArray) -> BoolArray:
        return super().might_contain_any(column, hashes) | True


def test_units_of_nothing_but_nulls_hold_no_value_whatever_the_filter_says() -> None:
    assert kept(can_match(a == 1, Saturated(UNITS, TYPES, unknown_bounds=range(6)))) == [0, 1, 3]
    nothing_else = Saturated(UNITS[2:3], TYPES)
    assert kept(can_match(a.isin([1, 2]), nothing_else)) == []
    assert nothing_else.probes == []


def test_values_that_no_unit_encloses_are_not_asked() -> None:
    index = filters()
    assert kept(can_match(a.isin([-7, 1, 3, 9, 10]), index)) == [0, 3]
    assert index.probes == [(("a",), 2)]


def test_unknown_bounds_keep() -> None:
    index = ExactFilters(UNITS, TYPES, unknown_bounds={1})
    assert kept(can_match(a > 2, index)) == [0, 3]
    assert kept(can_match(a < 2, index)) == [0, 1]
    assert kept(can_match(a == 9, index)) == []
    assert index.probes == [(("a",), 1)]


def test_a_list_that_filters_cannot_answer_is_answered_by_bounds() -> None:
    index = ExactFilters(UNITS, TYPES, rate=0.5)
    pruner = Pruner(a.isin([0, 1, 2]), hopeless=0.7)
    pruned = pruner.can_match(index)
    assert kept(pruned) == [0, 1]
    assert index.probes == []
    assert [(fact.text, fact.dropped_by_bounds) for fact in pruned.used] == [("a IN (0, 1, 2)", 1)]
    # Bounds leave two of the three values, which the filters can answer.
    assert kept(Pruner(a.isin([0, 1, 2]), hopeless=0.8).can_match(index)) == [0, 1]
    assert index.probes == [(("a",), 2)]
    # What bounds cannot answer either has the reason of the filters.
    pruned = pruner.can_match(ExactFilters(UNITS[:2], TYPES, rate=0.5))
    assert [fact.reason for fact in pruned.unused] == [Reason.NOT_SELECTIVE]


def test_whole_numbers_of_a_range_are_not_those_of_other_columns() -> None:
    prices = [pa.table({"a": pa.array([low, high], pa.float64())}) for low, high in [(0.5, 2.5), (3.25, 3.75), (8, 9)]]
    index = ExactFilters(prices, {("a",): "double"})
    pruned = can_match((a > 2) & (a < 4), index)
    assert kept(pruned) == [0, 1]
    assert index.probes == []
    assert [fact.text for fact in pruned.used] == ["a > 2", "a < 4"]


def test_values_are_asked_once() -> None:
    index = filters()
    can_match(a.isin([1, 1, 2, Literal("int", 1).decoded(), None]), index)
    assert index.probes == [(("a",), 2)]


def test_lists_of_any_length_are_asked_unless_they_are_hopeless() -> None:
    index = filters()
    values = [f"x{number}" for number in range(50_000)]  # within the bounds of the first unit
    assert kept(can_match(b.isin(values), index)) == []
    assert index.probes == [(("b",), len(values))]
    index = filters()
    hopeless = Pruner(b.isin(values), hopeless=-1.0).can_match(index)
    assert kept(hopeless) == [0], "bounds still answer"
    assert index.probes == []


def test_facts() -> None:
    predicate = (a == 2) & (b == 5) & (bare == 1) & ODD & (a != 9) & (a < 3) & (b == "nowhere") & (a == 3)
    pruned = can_match(predicate, filters())
    assert [(fact.text, fact.column, fact.units_asked, fact.units_dropped) for fact in pruned.used] == [
        ("a < 3", ("a",), 5, 3),
        ("a = 2", ("a",), 2, 0),
        ("b = 'nowhere'", ("b",), 2, 2),
    ]
    assert [fact.dropped_by_bounds for fact in pruned.used] == [1, 0, 2]
    assert [(fact.text, fact.column, fact.reason.value) for fact in pruned.unused] == [
        ("b = 5", ("b",), "TYPE_MISMATCH"),
        ("bare = 1", ("bare",), "NO_INDEX"),
        ("odd(a)", None, "NOT_SUPPORTED"),
        ("a <> 9", ("a",), "NEGATED"),
        ("a = 3", ("a",), "NOT_NEEDED"),
    ]


def test_facts_of_an_or_that_keeps_everything_name_every_reason() -> None:
    pruned = can_match((a == 1) | ODD | (bare == 1), filters())
    assert pruned.used == ()
    assert [fact.reason.value for fact in pruned.unused] == ["NOT_SUPPORTED", "NO_INDEX", "OR_NOT_ANSWERED"]


def test_facts_of_what_needs_no_filter() -> None:
    pruned = can_match((a == None) | b.is_null(), filters())  # noqa: E711
    assert pruned.used == (Used(a == None, ("a",), 5, 5), Used(b.is_null(), ("b",), 5, 3))  # noqa: E711
    assert pruned.unused == ()
    assert can_match(bare.is_null(), filters()).unused == (Unused(bare.is_null(), ("bare",), Reason.NO_INDEX),)


def test_a_resolver_decides_about_names() -> None:
    def ignoring_case(column: ColumnPath) -> ColumnPath | None:
        return next((known for known in TYPES if known == tuple(part.lower() for part in column)), None)

    predicate = (col("A") == 1) & (col("BARE") == 1)
    assert kept(can_match(predicate, filters())) == ALL
    pruned = can_match(predicate, filters(), resolve=ignoring_case)
    assert kept(pruned) == [0]
    assert [fact.column for fact in pruned.used] == [("a",)]
    assert [fact.column for fact in pruned.unused] == [("BARE",)]


class Broken(ExactFilters):
    def might_contain_any(self, column: ColumnPath, hashes: HashArray) -> BoolArray:
        raise OSError("disk on fire")


def test_errors_of_the_index_are_passed_on() -> None:
    with pytest.raises(OSError, match="disk on fire"):
        can_match(a == 1, Broken(UNITS, TYPES))
    assert kept(can_match(a.is_null(), Broken(UNITS, TYPES))) == [1, 2]


def test_no_units() -> None:
    assert kept(can_match((a == 1) | b.is_null(), ExactFilters([], TYPES))) == []


def test_a_pruner_hashes_once_for_each_type_of_column(monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[str] = []

    def count(literals: tuple[Literal, ...], column_type: str) -> Probes | None:
        hashed.append(column_type)
        return to_probes(literals, column_type)

    monkeypatch.setattr(prune, "to_probes", count)
    pruner = Pruner(Equals(("a",), Literal("bigint", 1)))
    wider = ExactFilters([pa.table({"a": pa.array([1], pa.int64())})], {("a",): "bigint"})
    assert [kept(pruner.can_match(index)) for index in (filters(), wider, filters(), wider)] == [[0]] * 4
    assert hashed == ["int", "bigint"]
