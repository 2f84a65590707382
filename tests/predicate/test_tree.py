"""The tree: its JSON to the letter, what is refused, and the operators that combine its parts."""

from __future__ import annotations

from functools import reduce
from operator import and_, or_
from typing import Any

import pytest

from lakebloom.errors import InvalidArgumentError
from lakebloom.predicate.column import col
from lakebloom.predicate.prune.normalise import AnyOf, normalise
from lakebloom.predicate.sql.text import to_text
from lakebloom.predicate.tree import (
    NULL,
    And,
    Compare,
    Equals,
    EqualsNullSafe,
    IsIn,
    IsNotNull,
    IsNull,
    Literal,
    Not,
    Or,
    Predicate,
    Unknown,
    columns,
    from_json,
    operands,
    to_json,
)

a, b, c = IsNull(("a",)), IsNull(("b",)), IsNull(("c",))

JSON: list[tuple[str, Predicate]] = [
    ('{"kind":"is_null","column":["a"]}', a),
    ('{"kind":"is_not_null","column":["s","k"]}', IsNotNull(("s", "k"))),
    (
        '{"kind":"equals","column":["a.b"],"value":{"type":"bigint","value":9223372036854775807}}',
        Equals(("a.b",), Literal("bigint", 2**63 - 1)),
    ),
    (
        '{"kind":"equals_null_safe","column":["a"],"value":{"type":"void","value":null}}',
        EqualsNullSafe(("a",), NULL),
    ),
    (
        '{"kind":"in","column":["a"],"values":[{"type":"decimal(10,2)","value":"-150"},'
        '{"type":"double","value":"-0.0"},{"type":"binary","value":"AP8="}]}',
        IsIn(("a",), (Literal("decimal(10,2)", "-150"), Literal("double", "-0.0"), Literal("binary", "AP8="))),
    ),
    (
        '{"kind":"compare","column":["a"],"op":"<=","value":{"type":"timestamp","value":-1}}',
        Compare(("a",), "<=", Literal("timestamp", -1)),
    ),
    (
        '{"kind":"and","children":[{"kind":"or","children":[]},{"kind":"not","child":'
        '{"kind":"unknown","reason":"COLLATION","text":"f(a)"}}]}',
        And((Or(()), Not(Unknown("COLLATION", "f(a)")))),
    ),
]


@pytest.mark.parametrize(("text", "tree"), JSON)
def test_json_to_the_letter(text: str, tree: Predicate) -> None:
    assert to_json(tree).decode() == text
    assert from_json(text) == tree


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"kind":"like","column":["a"]}',
        '{"kind":"is_null"}',
        '{"kind":"is_null","column":[]}',
        '{"kind":"is_null","column":"a"}',
        '{"kind":"is_null","column":["a"],"extra":1}',
        '{"kind":"compare","column":["a"],"op":"<>","value":{"type":"int","value":1}}',
        '{"kind":"equals","column":["a"],"value":{"type":"int"}}',
        '{"kind":"equals","column":["a"],"value":{"type":"int","value":"1"}}',
        '{"kind":"equals","column":["a"],"value":{"type":"double","value":1.5}}',
        '{"kind":"equals","column":["a"],"value":{"type":"int","value":1,"scale":0}}',
        '{"kind":"equals","column":["a"],"value":{"type":"string","value":"\\ud800"}}',
        '{"kind":"not","child":' * 100_000,
    ],
)
def test_other_json_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match="not a predicate tree"):
        from_json(text)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("boolean", 1), ("boolean", "true"), ("tinyint", 128), ("smallint", -32_769), ("int", 2**31), ("bigint", 2**63),
        ("bigint", True), ("bigint", "1"), ("date", 2**31), ("timestamp", 2**63), ("timestamp_ntz", "1"),
        ("double", "one"), ("double", 1), ("float", "0.1"), ("float", "1e300"), ("decimal(3,2)", "1000"),
        ("decimal(3,2)", "1.5"), ("decimal(38,0)", 1), ("binary", "?"), ("binary", "A"), ("string", 1),
        ("string", "\udcff"),
    ],
)  # fmt: skip
def test_a_literal_has_one_form(name: str, value: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="cannot hold this value"):
        Literal(name, value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("float", "0.10000000149011612"), ("float", "NaN"), ("float", "-Infinity"), ("double", "1.0E10"),
        ("decimal(3,2)", "-999"), ("DECIMAL(3, 2)", "0"), ("binary", ""), ("string collate UTF8_LCASE", "x"),
        ("interval day to second", 5), ("char(3)", "a"), ("decimal(5,-2)", "anything"), ("int", None),
        ("anything", None),
    ],
)  # fmt: skip
def test_literals_that_are_carried(name: str, value: Any) -> None:
    made = Literal(name, value)
    assert made.is_null == (value is None)
    assert from_json(to_json(Equals(("a",), made))) == Equals(("a",), made)


def test_operators_join_chains_without_nesting() -> None:
    assert (a & b) & c == a & (b & c) == And((a, b, c))
    assert (a | b) | c == a | (b | c) == Or((a, b, c))
    assert (a | b) & ~c == And((Or((a, b)), Not(c)))
    assert reduce(and_, [a] * 50) == And((a,) * 50)


@pytest.mark.parametrize("use", [lambda: a and b, lambda: a or b, lambda: not a, lambda: 1 < col("a") < 5])
def test_python_s_own_logic_is_refused_with_a_hint(use: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=r"no truth value.*use & \| ~"):
        use()


def test_only_predicates_combine() -> None:
    for combine in (and_, or_):
        with pytest.raises(TypeError):
            combine(a, True)


def test_a_chain_of_any_depth_is_one_chain() -> None:
    deep: Predicate = a
    for _ in range(5000):
        deep = Or((deep, b))
    assert len(list(operands(deep))) == 5001
    normal = normalise(deep)
    assert isinstance(normal, AnyOf)
    assert len(normal.children) == 5001
    assert columns(deep) == {("a",), ("b",)}
    assert to_text(reduce(or_, [a] * 5000)).endswith("… 4990 more")


def test_columns() -> None:
    tree = ~(col("a").is_null() | (col("s.k") == 1)) & (col("a") > 1) & Unknown("", "f(z)")
    assert columns(tree) == {("a",), ("s", "k")}
