"""Long and deep predicates: the right answer or a typed error, in work that grows with the length, not its square."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from functools import reduce
from operator import or_

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakebloom.errors import InvalidArgumentError, LakebloomError, PredicateSyntaxError
from lakebloom.predicate.column import col
from lakebloom.predicate.prune.normalise import normalise
from lakebloom.predicate.prune.shorten import long_lists
from lakebloom.predicate.rows.evaluate import row_mask
from lakebloom.predicate.sql.parse import parse
from lakebloom.predicate.sql.text import to_text
from lakebloom.predicate.tree import MAX_DEPTH, And, Equals, Not, Or, Predicate, columns, flat, from_json, to_json
from tests.examples import most

TYPES = {("k",): "bigint", ("s",): "string"}
COLUMNS = list(TYPES.items())
TABLE = pa.table({"k": [1, 2, None], "s": ["a", "b", "c"]})
LONG, DEEP = 20_000, 10_000

WALKS: dict[str, Callable[[Predicate], object]] = {
    "normalise": normalise,
    "rows": lambda predicate: row_mask(predicate, TABLE, TYPES),
    "json": to_json,
    "text": to_text,
    "columns": columns,
    "lists": long_lists,
    "flat": flat,
}


def chain(count: int) -> Predicate:
    return reduce(or_, [col("k") == 7] * (count - 1) + [col("k") == 2])


def nested_chain(count: int) -> Predicate:
    """An OR inside an OR, as Spark's optimizer leaves it."""
    predicate: Predicate = col("k") == 2
    for _ in range(count):
        predicate = Or((predicate, col("k") == 7))
    return predicate


def alternating(depth: int) -> Predicate:
    predicate: Predicate = col("k") == 2
    for level in range(depth):
        other = Equals(("s",), (col("s") == "b").value)
        predicate = Or((predicate, other)) if level % 2 else And((predicate, other))
    return predicate


def negated(depth: int) -> Predicate:
    predicate: Predicate = col("k") == 2
    for _ in range(depth):
        predicate = Not(predicate)
    return predicate


@pytest.mark.slow
@pytest.mark.parametrize("make", [chain, nested_chain], ids=lambda make: make.__name__)
def test_a_chain_may_be_long_however_it_is_nested(make: Callable[[int], Predicate]) -> None:
    predicate = make(LONG)
    assert row_mask(predicate, TABLE, TYPES).to_pylist() == [False, True, False]
    assert columns(predicate) == {("k",)}
    assert len(to_text(predicate)) < 1000
    assert flat(from_json(to_json(predicate))) == flat(predicate)
    assert len(normalise(predicate).children) >= LONG  # type: ignore[union-attr]
    assert long_lists(predicate) == []


@pytest.mark.slow
@pytest.mark.parametrize("make", [alternating, negated], ids=lambda make: make.__name__)
@pytest.mark.parametrize("walk", WALKS)
def test_a_deep_tree_is_answered_or_refused(make: Callable[[int], Predicate], walk: str) -> None:
    try:
        WALKS[walk](make(DEEP))
    except LakebloomError as error:
        assert "levels" in str(error)  # noqa: PT017


@pytest.mark.slow
@settings(max_examples=most(30), deadline=None)
@given(depth=st.integers(0, MAX_DEPTH), make=st.sampled_from([alternating, negated]))
def test_every_walk_reaches_the_allowed_depth(depth: int, make: Callable[[int], Predicate]) -> None:
    predicate = make(depth)
    is_second = make is alternating or depth % 2 == 0
    assert row_mask(predicate, TABLE, TYPES).to_pylist() == [not is_second, is_second, False]
    for walk in WALKS.values():
        walk(predicate)
    assert from_json(to_json(predicate)) == predicate


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, DEEP])
def test_json_that_is_too_deep_is_refused(depth: int) -> None:
    text = '{"kind":"not","child":' * depth + '{"kind":"is_null","column":["k"]}' + "}" * depth
    with pytest.raises(InvalidArgumentError):
        normalise(from_json(text))


def steps(text: str) -> int:
    """How many lines run while a condition is read: the same on every machine."""
    count = 0

    def trace(frame: object, event: str, argument: object) -> object:
        nonlocal count
        count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)  # type: ignore[arg-type]
    try:
        parse(text, COLUMNS)
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize(
    "make",
    [
        lambda n: " OR ".join(["k = 1"] * n),
        lambda n: "k IN (" + ", ".join(map(str, range(n))) + ")",
        lambda n: " AND ".join(["K <> 1"] * n),
        lambda n: "k = 1" + " " * n,
    ],
    ids=["or", "in", "and", "blanks"],
)
def test_reading_a_condition_is_linear(make: Callable[[int], str]) -> None:
    once, ten_times = steps(make(100)), steps(make(1000))
    assert ten_times <= 11 * once


HOSTILE = [
    "k = " + "1" * 300_000,
    "k = " + "1" * 300_000 + "a",
    "k = 1." + "1" * 300_000 + "a",
    "k = 1e" + "1" * 300_000,
    "s = '" + "a" * 300_000,
    "s = '" + "''" * 300_000,
    "`" + "``" * 300_000,
    "a." * 100_000,
    "x" + " " * 300_000 + "x",
    "x " * 100_000,
    "k in (" * 10_000,
    "not " * 10_000 + "k = 1",
    "(" * 10_000 + "k = 1" + ")" * 10_000,
    "k = 1 or " * 10_000,
    "k" * 300_000 + " = 1",
    "k = 1 " + "\N{RIGHT-TO-LEFT OVERRIDE}" * 300_000,
    "k = '" + "7" * 300_000 + "'",
]


@pytest.mark.slow
@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:8])
def test_messages_about_long_conditions_are_short(text: str) -> None:
    with pytest.raises(PredicateSyntaxError) as caught:
        parse(text, COLUMNS)
    error = caught.value
    assert len(str(error)) < 10_000
    assert len(error.text) < 1000 or error.text == text
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.position, copy.text) == (str(error), error.position, error.text)


@pytest.mark.slow
@settings(max_examples=most(20), deadline=None)
@given(st.integers(0, 5000))
def test_the_place_of_an_error_is_shown_in_a_long_condition(terms: int) -> None:
    text = "k = 1 AND " * terms + "k ! 1"
    with pytest.raises(PredicateSyntaxError) as caught:
        parse(text, COLUMNS)
    error = caught.value
    assert error.text[error.position :].startswith("! 1")
    assert error.skipped + error.position == len(text) - 3


@settings(max_examples=most(20))
@given(st.integers(0, 5000), st.integers(0, 5000), st.integers(0, 5000))
def test_no_message_is_long(message: int, found: int, hint: int) -> None:
    assert len(str(LakebloomError("m" * message, found="f" * found, hint="h" * hint))) < 6500
