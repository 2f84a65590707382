"""The predicate tree, and its JSON.

The Java rule writes this JSON, and Python decodes it strictly: an unknown field or kind, or a malformed literal, is an
error.

    {"kind": "and", "children": [
        {"kind": "equals", "column": ["user_id"], "value": {"type": "bigint", "value": 42}},
        {"kind": "not", "child": {"kind": "is_null", "column": ["s", "k"]}},
        {"kind": "in", "column": ["price"], "values": [{"type": "decimal(10,2)", "value": "150"}]},
        {"kind": "unknown", "reason": "NOT_SUPPORTED", "text": "upper(name) = 'X'"}]}

    kind                                fields
    and, or                             children: a whole chain is one node; none at all is TRUE, FALSE
    not                                 child
    equals, equals_null_safe            column, value
    in                                  column, values
    is_null, is_not_null                column
    compare                             column, op ("<", "<=", ">", ">="), value
    starts_with                         column, value: a string or a binary
    truth                               child, among ("true", "false", "null"): TRUE where the child's truth is among
                                        them, FALSE elsewhere. ``x IS TRUE`` is among ["true"]
    if                                  condition, then, otherwise: "then" where the condition is TRUE
    null                                NULL as a truth
    unknown                             reason (a code of ``reasons``, or any words), text: any other condition

A column is the list of its name's parts. A literal is ``type``, Spark's simpleString, and ``value``:

    boolean                             true or false
    tinyint, smallint, int, bigint      a JSON number, all 64 bits of it
    date                                days since 1970-01-01, a JSON number
    timestamp, timestamp_ntz            microseconds since then (UTC; wall clock), a JSON number
    float, double                       text as Java's Double.toString: "1.5", "-0.0", "NaN", "-Infinity"; a float is
                                        widened first, "0.10000000149011612"
    decimal(p,s)                        text: the unscaled digits, "150" for 1.50 in decimal(10,2)
    string                              the text
    binary                              base64
    any type, for NULL                  null ("void" is the type of an untyped NULL)
    any other type                      text, a number or a boolean: it is only shown

Null means NULL, which equals nothing. A writer that cannot write a value (an interval, a string that is not UTF-8) must
send the comparison as ``unknown``, never null or a replacement.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterator
from functools import cache
from typing import Annotated, NoReturn, TypeAlias

import msgspec

from lakebloom.errors import InvalidArgumentError
from lakebloom.predicate.spark_types import JsonValue, PlainValue, SparkType, decode, is_legal, spark_type
from lakebloom.tables.columns import ColumnPath

__all__ = [
    "MAX_DEPTH",
    "NULL",
    "And",
    "Compare",
    "Equals",
    "EqualsNullSafe",
    "If",
    "IsIn",
    "IsNotNull",
    "IsNull",
    "Literal",
    "Node",
    "Not",
    "Null",
    "Operator",
    "Or",
    "Predicate",
    "StartsWith",
    "TruthIs",
    "TruthName",
    "Unknown",
    "columns",
    "flat",
    "from_json",
    "operands",
    "renamed",
    "to_json",
]

MAX_DEPTH = 200
"""Nesting depth of AND, OR, NOT and CASE. A chain of ANDs, or of ORs, is one level."""

_Column: TypeAlias = Annotated[ColumnPath, msgspec.Meta(min_length=1)]
Operator: TypeAlias = typing.Literal["<", "<=", ">", ">="]
TruthName: TypeAlias = typing.Literal["true", "false", "null"]


class Literal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A value with its Spark type. The module's docstring has the form of each type.

    Raises InvalidArgumentError for a value in another form.
    """

    type: str
    value: JsonValue | None

    def __post_init__(self) -> None:
        value = self.value
        if type(value) is str and self.type == "string" and value.isascii():
            return  # as most keys are
        if value is not None and not is_legal(self.spark_type, value):
            raise InvalidArgumentError(f"a literal of type {self.type} cannot hold this value", found=self.value)

    @property
    def is_null(self) -> bool:
        """Whether this is NULL."""
        return self.value is None

    @property
    def spark_type(self) -> SparkType:
        """The parsed type."""
        return spark_type(self.type)

    def decoded(self) -> PlainValue:
        """Return the value of a literal that is not NULL, as ``spark_types.decode`` does."""
        assert self.value is not None
        return decode(self.spark_type, self.value)


NULL = Literal("void", None)


class Node(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind"):
    """Base of all nodes: ``&``, ``|`` and ``~``."""

    def __and__(self, other: Predicate) -> And:
        return And((*_chain(And, self), *_chain(And, other))) if isinstance(other, Node) else NotImplemented

    def __or__(self, other: Predicate) -> Or:
        return Or((*_chain(Or, self), *_chain(Or, other))) if isinstance(other, Node) else NotImplemented

    def __invert__(self) -> Not:
        return Not(typing.cast("Predicate", self))

    def __bool__(self) -> NoReturn:
        raise InvalidArgumentError(
            "a predicate has no truth value: `and`, `or`, `not`, `if` and chained comparisons cannot use it",
            hint="use & | ~ with parentheses: (col('a') > 1) & ~(col('b') == 2)",
        )


class And(Node, frozen=True, tag="and"):
    """TRUE where every child is; TRUE without children."""

    children: tuple[Predicate, ...]


class Or(Node, frozen=True, tag="or"):
    """TRUE where any child is; FALSE without children."""

    children: tuple[Predicate, ...]


class Not(Node, frozen=True, tag="not"):
    """TRUE where the child is FALSE, NULL where the child is NULL."""

    child: Predicate


class Equals(Node, frozen=True, tag="equals"):
    """``column = value``."""

    column: _Column
    value: Literal


class EqualsNullSafe(Node, frozen=True, tag="equals_null_safe"):
    """``column <=> value``: never NULL, and NULL equals NULL."""

    column: _Column
    value: Literal


class IsIn(Node, frozen=True, tag="in"):
    """``column IN (values)``; without values it is FALSE, even for NULL."""

    column: _Column
    values: tuple[Literal, ...]


class IsNull(Node, frozen=True, tag="is_null"):
    """``column IS NULL``."""

    column: _Column


class IsNotNull(Node, frozen=True, tag="is_not_null"):
    """``column IS NOT NULL``."""

    column: _Column


class Compare(Node, frozen=True, tag="compare"):
    """``column < value`` and the like."""

    column: _Column
    op: Operator
    value: Literal


class StartsWith(Node, frozen=True, tag="starts_with"):
    """``column LIKE 'value%'``: the column's bytes begin with those of the value."""

    column: _Column
    value: Literal


class TruthIs(Node, frozen=True, tag="truth"):
    """TRUE where the child's truth is among those named, FALSE elsewhere; never NULL."""

    child: Predicate
    among: tuple[TruthName, ...]


class If(Node, frozen=True, tag="if"):
    """``then`` where the condition is TRUE, ``otherwise`` where it is FALSE or NULL."""

    condition: Predicate
    then: Predicate
    otherwise: Predicate


class Null(Node, frozen=True, tag="null"):
    """NULL as a truth: neither TRUE nor FALSE."""


class Unknown(Node, frozen=True, tag="unknown"):
    """A condition that lakebloom does not understand: every unit may match it."""

    reason: str
    text: str


Predicate: TypeAlias = (
    And
    | Or
    | Not
    | Equals
    | EqualsNullSafe
    | IsIn
    | IsNull
    | IsNotNull
    | Compare
    | StartsWith
    | TruthIs
    | If
    | Null
    | Unknown
)


@cache
def _decoder() -> msgspec.json.Decoder[Predicate]:
    return msgspec.json.Decoder(Predicate)


def to_json(predicate: Predicate) -> bytes:
    """Return the tree as JSON.

    Raises InvalidArgumentError for a tree that is too deep.

    >>> to_json(IsNull(("s", "k")))
    b'{"kind":"is_null","column":["s","k"]}'
    """
    try:
        return msgspec.json.encode(predicate)
    except RecursionError:
        return msgspec.json.encode(flat(predicate))


def from_json(data: bytes | str) -> Predicate:
    """Return the tree that this JSON describes. Raises InvalidArgumentError for anything else.

    >>> from_json('{"kind":"equals","column":["id"],"value":{"type":"bigint","value":5}}')
    Equals(column=('id',), value=Literal(type='bigint', value=5))
    """
    try:
        return _decoder().decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise InvalidArgumentError("this JSON is not a predicate tree", found=str(error)) from error


def operands(node: And | Or) -> Iterator[Predicate]:
    """Yield the operands of a chain of one connective in order, at any nesting depth.

    >>> a, b, c = IsNull(("a",)), IsNull(("b",)), IsNull(("c",))
    >>> list(operands(And((And((a, b)), c)))) == [a, b, c]
    True
    """
    waiting: list[Predicate] = [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, type(node)):
            waiting.extend(reversed(part.children))
        else:
            yield part


def columns(predicate: Predicate) -> frozenset[ColumnPath]:
    """Return the columns that a predicate names.

    >>> sorted(columns(IsNull(("a",)) & ~IsNull(("s", "k"))))
    [('a',), ('s', 'k')]
    """
    found: set[ColumnPath] = set()
    waiting: list[Predicate] = [predicate]
    while waiting:
        part = waiting.pop()
        if isinstance(part, And | Or):
            waiting.extend(part.children)
        elif isinstance(part, Not | TruthIs):
            waiting.append(part.child)
        elif isinstance(part, If):
            waiting += [part.condition, part.then, part.otherwise]
        elif not isinstance(part, Unknown | Null):
            found.add(part.column)
    return frozenset(found)


def flat(predicate: Predicate) -> Predicate:
    """Return the same predicate with every chain of one connective as one node.

    Recursive code works on flat predicates only. Raises InvalidArgumentError beyond ``MAX_DEPTH``.

    >>> flat(And((And((IsNull(("a",)), IsNull(("b",)))), IsNull(("c",))))) == And(
    ...     (IsNull(("a",)), IsNull(("b",)), IsNull(("c",))))
    True
    """
    return _flat(predicate, 0)


def _flat(predicate: Predicate, depth: int) -> Predicate:
    if not isinstance(predicate, And | Or | Not | TruthIs | If):
        return predicate
    if depth == MAX_DEPTH:
        raise InvalidArgumentError(
            f"a predicate has at most {MAX_DEPTH} levels of AND, OR, NOT and CASE",
            found="more levels",
            hint="write it as one chain of AND or OR, or as a list of values with isin",
        )
    if isinstance(predicate, Not):
        return Not(_flat(predicate.child, depth + 1))
    if isinstance(predicate, TruthIs):
        return TruthIs(_flat(predicate.child, depth + 1), predicate.among)
    if isinstance(predicate, If):
        parts = (predicate.condition, predicate.then, predicate.otherwise)
        return If(*[_flat(part, depth + 1) for part in parts])
    return type(predicate)(tuple([_flat(part, depth + 1) for part in operands(predicate)]))


def renamed(predicate: Predicate, rename: Callable[[ColumnPath], ColumnPath]) -> Predicate:
    """Return the same predicate with other columns. Passes on what ``rename`` raises.

    >>> renamed(IsNull(("KEY",)) & ~IsNull(("k",)), lambda path: tuple(part.lower() for part in path))
    And(children=(IsNull(column=('key',)), Not(child=IsNull(column=('k',)))))
    """
    if isinstance(predicate, Equals):  # as most are
        column = rename(predicate.column)
        return predicate if column == predicate.column else Equals(column, predicate.value)
    if isinstance(predicate, And | Or):
        return msgspec.structs.replace(predicate, children=tuple(renamed(part, rename) for part in operands(predicate)))
    if isinstance(predicate, Not):
        return Not(renamed(predicate.child, rename))
    if isinstance(predicate, TruthIs):
        return TruthIs(renamed(predicate.child, rename), predicate.among)
    if isinstance(predicate, If):
        parts = (predicate.condition, predicate.then, predicate.otherwise)
        return If(*(renamed(part, rename) for part in parts))
    if isinstance(predicate, Unknown | Null):
        return predicate
    column = rename(predicate.column)
    return predicate if column == predicate.column else msgspec.structs.replace(predicate, column=column)


def _chain(connective: type[And] | type[Or], node: Node) -> tuple[Predicate, ...]:
    return node.children if isinstance(node, connective) else (typing.cast("Predicate", node),)
