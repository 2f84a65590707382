"""Pairs: a predicate, and where it can be TRUE."""

from __future__ import annotations

import pytest

from lakebloom.predicate.build import col
from lakebloom.predicate.normalise import AllOf, AnyOf, HoldsNull, HoldsValue, Keep, Never, Normal, OneOf, normalise
from lakebloom.predicate.text import to_text
from lakebloom.predicate.tree import And, Not, Or, Predicate, Unknown

A, B, C = col("a"), col("b"), col("c")
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
        case HoldsNull(_, (column,)):
            return f"{column} null"
        case HoldsValue(_, (column,)):
            return f"{column} value"
        case Never():
            return "never"
        case Keep(source, _, reason):
            return f"keep {to_text(source)}: {reason.value}"
        case _:
            raise AssertionError(normal)


PAIRS: list[tuple[Predicate, str]] = [
    # leaves
    (A == 1, "a in [1]"),
    (A.eq_null_safe(1), "a in [1]"),
    (A.isin([1, 2]), "a in [1, 2]"),
    (A.is_null(), "a null"),
    (A.is_not_null(), "a value"),
    (A < 1, "keep a < 1: NOT_SUPPORTED"),
    (ODD, "keep odd(a): NOT_SUPPORTED"),
    (Unknown("COLLATION", "x"), "keep x: COLLATION"),
    (Unknown("because", "x"), "keep x: NOT_SUPPORTED"),
    # NULL
    (A == NULL, "never"),
    (A.eq_null_safe(NULL), "a null"),
    (A.isin([1, NULL]), "a in [1]"),
    (A.isin([NULL, NULL]), "never"),
    (A.isin([]), "never"),
    (A < NULL, "never"),
    # NOT
    (A != 1, "keep a <> 1: NEGATED"),
    (~A.eq_null_safe(1), "keep NOT a <=> 1: NEGATED"),
    (~A.isin([1, 2]), "keep a NOT IN (1, 2): NEGATED"),
    (~A.is_null(), "a value"),
    (~A.is_not_null(), "a null"),
    (~(A < 1), "keep NOT a < 1: NOT_SUPPORTED"),
    (~ODD, "keep NOT odd(a): NOT_SUPPORTED"),
    (~~(A == 1), "a in [1]"),
    (~~~(A == 1), "keep a <> 1: NEGATED"),
    (~~~~A.is_null(), "a null"),
    # NOT and NULL
    (A != NULL, "never"),
    (~A.eq_null_safe(NULL), "a value"),
    (~A.isin([1, NULL]), "never"),
    (~A.isin([NULL]), "never"),
    (~A.isin([]), "keep a NOT IN (): NEGATED"),
    (~(A < NULL), "never"),
    # De Morgan
    (~((A == 1) & B.is_null()), "(keep a <> 1: NEGATED | b value)"),
    (~((A == 1) | B.is_null()), "(keep a <> 1: NEGATED & b value)"),
    (~((A != 1) | (B != 2)), "(a in [1] & b in [2])"),
    (~((A != 1) & ~B.isin([2])), "(a in [1] | b in [2])"),
    (~((A == NULL) & (B == 1)), "(never | keep b <> 1: NEGATED)"),
    # chains
    (And((A == 1, And((B == 2, And((C == 3,)))))), "(a in [1] & b in [2] & c in [3])"),
    (Or((A == 1, Or((B == 2, And((C == 3,)))))), "(a in [1] | b in [2] | c in [3])"),
    (And((A == 1, Not(Or((B != 2, C != 3))))), "(a in [1] & b in [2] & c in [3])"),
    (Or((A == 1, Not(And((B != 2, C != 3))))), "(a in [1] | b in [2] | c in [3])"),
    (((A == 1) | (B == 2)) & (C == 3), "((a in [1] | b in [2]) & c in [3])"),
    (And(()), "()"),
    (Or(()), "()"),
    (Or((A == 1,)), "a in [1]"),
]


@pytest.mark.parametrize(("predicate", "expected"), PAIRS, ids=[to_text(predicate) for predicate, _ in PAIRS])
def test_pairs(predicate: Predicate, expected: str) -> None:
    assert shown(normalise(predicate)) == expected


def test_nothing_of_a_chain_is_all_or_none() -> None:
    assert normalise(And(())) == normalise(Not(Or(()))) == AllOf(())
    assert normalise(Or(())) == normalise(Not(And(()))) == AnyOf(())
