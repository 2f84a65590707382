"""Pairs: a predicate, and where it can be TRUE."""

from __future__ import annotations

import pytest

from lakebloom.predicate.column import col
from lakebloom.predicate.prune.normalise import (
    AllOf,
    AnyOf,
    Beginning,
    Bound,
    HoldsNull,
    HoldsValue,
    Keep,
    Never,
    Normal,
    OneOf,
    normalise,
)
from lakebloom.predicate.sql.text import to_text
from lakebloom.predicate.tree import NULL as NOTHING
from lakebloom.predicate.tree import And, If, Not, Null, Or, Predicate, StartsWith, TruthIs, Unknown

a, b, c = col("a"), col("b"), col("c")
ODD = Unknown("NOT_SUPPORTED", "odd(a)")
NULL = None  # == NULL reads better than == None, and means the same


def shown(normal: Normal) -> str:
    match normal:
        case AllOf(children):
            return "(" + " & ".join(map(shown, children)) + ")"
        case AnyOf(children):
            return "(" + " | ".join(map(shown, children)) + ")"
        case OneOf(_, (column,), values):
            return f"{column} in {[value.value for value in values]}"
        case Bound(_, (column,), op, value):
            return f"{column} {op} {value.value}"
        case Beginning(_, (column,), value):
            return f"{column} begins {value.value}"
        case HoldsNull(_, (column,)):
            return f"{column} null"
        case HoldsValue(_, (column,)):
            return f"{column} value"
        case Never():
            return "never"
        case Keep(part, _, reason):
            return f"keep {to_text(part)}: {reason.value}"
        case _:
            raise AssertionError(normal)


PAIRS: list[tuple[Predicate, str]] = [
    # leaves
    (a == 1, "a in [1]"),
    (a.eq_null_safe(1), "a in [1]"),
    (a.isin([1, 2]), "a in [1, 2]"),
    (a.is_null(), "a null"),
    (a.is_not_null(), "a value"),
    (a < 1, "a < 1"),
    (ODD, "keep odd(a): NOT_SUPPORTED"),
    (Unknown("COLLATION", "x"), "keep x: COLLATION"),
    (Unknown("because", "x"), "keep x: NOT_SUPPORTED"),
    # NULL
    (a == NULL, "never"),
    (a.eq_null_safe(NULL), "a null"),
    (a.isin([1, NULL]), "a in [1]"),
    (a.isin([NULL, NULL]), "never"),
    (a.isin([]), "never"),
    (a < NULL, "never"),
    # NOT
    (a != 1, "keep a <> 1: NEGATED"),
    (~a.eq_null_safe(1), "keep NOT a <=> 1: NEGATED"),
    (~a.isin([1, 2]), "keep a NOT IN (1, 2): NEGATED"),
    (~a.is_null(), "a value"),
    (~a.is_not_null(), "a null"),
    (~(a < 1), "a >= 1"),
    (~ODD, "keep NOT odd(a): NOT_SUPPORTED"),
    (~~(a == 1), "a in [1]"),
    (~~~(a == 1), "keep a <> 1: NEGATED"),
    (~~~~a.is_null(), "a null"),
    # NOT and NULL
    (a != NULL, "never"),
    (~a.eq_null_safe(NULL), "a value"),
    (~a.isin([1, NULL]), "never"),
    (~a.isin([NULL]), "never"),
    (~a.isin([]), "keep a NOT IN (): NEGATED"),
    (~(a < NULL), "never"),
    # De Morgan
    (~((a == 1) & b.is_null()), "(keep a <> 1: NEGATED | b value)"),
    (~((a == 1) | b.is_null()), "(keep a <> 1: NEGATED & b value)"),
    (~((a != 1) | (b != 2)), "(a in [1] & b in [2])"),
    (~((a != 1) & ~b.isin([2])), "(a in [1] | b in [2])"),
    (~((a == NULL) & (b == 1)), "(never | keep b <> 1: NEGATED)"),
    # chains
    (And((a == 1, And((b == 2, And((c == 3,)))))), "(a in [1] & b in [2] & c in [3])"),
    (Or((a == 1, Or((b == 2, And((c == 3,)))))), "(a in [1] | b in [2] | c in [3])"),
    (And((a == 1, Not(Or((b != 2, c != 3))))), "(a in [1] & b in [2] & c in [3])"),
    (Or((a == 1, Not(And((b != 2, c != 3))))), "(a in [1] | b in [2] | c in [3])"),
    (((a == 1) | (b == 2)) & (c == 3), "((a in [1] | b in [2]) & c in [3])"),
    # tests of a truth
    (TruthIs(a == 1, ("true",)), "a in [1]"),
    (TruthIs(a == 1, ("null",)), "a null"),
    (TruthIs(a == 1, ("true", "null")), "(a in [1] | a null)"),
    (TruthIs(a == 1, ("false", "null")), "keep (a = 1) IS NOT TRUE: NEGATED"),
    (~TruthIs(a != 1, ("true", "null")), "a in [1]"),
    (TruthIs(a == 1, ()), "()"),
    (TruthIs((a == 1) & (b == 2), ("null",)), "((a in [1] | a null) & (b in [2] | b null) & (a null | b null))"),
    (TruthIs(a.is_null(), ("null",)), "never"),
    (TruthIs(a.isin([1, NULL]), ("null",)), "keep (a IN (1, NULL)) IS NULL: NEGATED"),
    (TruthIs(Null(), ("true",)), "()"),
    # branches
    (If(a == 1, b == 2, Or(())), "(a in [1] & b in [2])"),
    (If(a.is_null(), Or(()), b == 2), "(a value & b in [2])"),
    (If(a.is_null(), b == 1, b == 2), "((a null & b in [1]) | (a value & b in [2]))"),
    (If(a == 1, And(()), Null()), "a in [1]"),
    # ranges
    ((a >= 3) & (a <= 3), "a in [3]"),
    ((a > 2) & (a <= 5), "a in [3, 4, 5]"),
    ((a > 2) & (a < 3), "a in []"),
    ((a >= "x") & (a <= "x"), "a in ['x']"),
    ((a >= "x") & (a < "x"), "(a >= x & a < x)"),
    (~((a < 3) | (a > 3)), "a in [3]"),
    ((a >= 1) & (a <= 100) & (b == 1), f"(b in [1] & a in {list(range(1, 101))})"),
    ((a >= 0) & (a <= 100), "(a >= 0 & a <= 100)"),
    ((a >= 3) & (b <= 3), "(a >= 3 & b <= 3)"),
    ((a >= 3) & (a <= NULL), "(a >= 3 & never)"),
    (a.between(1, 1000), "(a >= 1 & a <= 1000)"),
    (~a.between(1, 1000), "(a < 1 | a > 1000)"),
    (TruthIs(a < 1, ("true", "null")), "(a < 1 | a null)"),
    (TruthIs(a < 1, ("false", "null")), "(a >= 1 | a null)"),
    (TruthIs(a < 1, ("true", "false")), "(a < 1 | a >= 1)"),
    (TruthIs(a < NULL, ("null",)), "()"),
    # beginnings
    (a.startswith("x"), "a begins x"),
    (~a.startswith("x"), "keep a NOT LIKE 'x%': NEGATED"),
    (TruthIs(a.startswith("x"), ("true", "null")), "(a begins x | a null)"),
    (StartsWith(("a",), NOTHING), "never"),
    (~StartsWith(("a",), NOTHING), "never"),
    (TruthIs(StartsWith(("a",), NOTHING), ("null",)), "()"),
    (And(()), "()"),
    (Or(()), "()"),
    (Or((a == 1,)), "a in [1]"),
]


@pytest.mark.parametrize(("predicate", "expected"), PAIRS, ids=[to_text(predicate) for predicate, _ in PAIRS])
def test_pairs(predicate: Predicate, expected: str) -> None:
    assert shown(normalise(predicate)) == expected


def test_nothing_of_a_chain_is_all_or_none() -> None:
    assert normalise(And(())) == normalise(Not(Or(()))) == AllOf(())
    assert normalise(Or(())) == normalise(Not(And(()))) == AnyOf(())


def test_deep_conditions_of_conditions_do_not_grow_without_end() -> None:
    """Each level asks for its condition twice."""
    predicate: Predicate = a == 1
    for _ in range(60):
        predicate = If(predicate, b == 2, c == 3)
    assert len(shown(normalise(predicate))) < 100_000
