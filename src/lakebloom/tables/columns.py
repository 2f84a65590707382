"""Names and types of columns, in Spark's terms.

A name is a tuple of parts: ``s.k`` is the leaf ``k`` of the struct ``s``, and a column that is itself called ``s.k`` is
written with backticks. Inside lakebloom only the tuples travel, so the two are never mistaken for each other.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeAlias

import pyarrow as pa

from lakebloom.errors import InvalidArgumentError, UnsupportedTypeError

__all__ = ["ColumnPath", "arrow_type", "folded_name", "format_name", "parse_name", "top_level_name"]

ColumnPath: TypeAlias = tuple[str, ...]

_PART = re.compile(r"`(?P<quoted>(?:[^`]|``)+)`|(?P<plain>[^.`]+)")
_NEEDS_QUOTES = re.compile(r"[.`]|^$")
_DECIMAL = re.compile(r"decimal\((?P<precision>\d+), ?(?P<scale>\d+)\)")

_MOST_DIGITS = 38
_ARROW_TYPES = {
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "string": pa.string(),
    "binary": pa.binary(),
}
_REFUSED = [
    (re.compile(r"boolean|tinyint"), "a Bloom filter over at most 256 values skips nothing"),
    (re.compile(r"string collate .*"), "values that its collation calls equal have different hashes"),
    (re.compile(r"(char|varchar)\(.*"), "Spark pads and trims its values when it compares them"),
    (re.compile(r"(array|map|struct)<.*"), "only plain values have a hash; a struct's leaf can be named as a.b"),
]


def parse_name(name: str) -> ColumnPath:
    """Return the parts of a name written in Spark's convention.

    >>> parse_name("s.k"), parse_name("`a.b`"), parse_name("s.`odd``name`")
    (('s', 'k'), ('a.b',), ('s', 'odd`name'))
    """
    parts: list[str] = []
    at = 0
    while True:
        match = _PART.match(name, at)
        if match is None:
            raise InvalidArgumentError(
                "a column name is parts joined by dots; a part with a dot in it stands in backticks",
                found=name,
                hint="write `a.b` (with backticks) for a column whose name contains a dot",
            )
        quoted = match["quoted"]
        parts.append(match["plain"] if quoted is None else quoted.replace("``", "`"))
        at = match.end()
        if at == len(name):
            return tuple(parts)
        if name[at] != ".":
            raise InvalidArgumentError("a column name's parts are joined by dots", found=name)
        at += 1


def top_level_name(name: str) -> str:
    """Return the name of a whole column, without quotes. Raises InvalidArgumentError for a leaf of a struct.

    >>> top_level_name("`a.b`")
    'a.b'
    """
    path = parse_name(name)
    if len(path) > 1:
        raise InvalidArgumentError(
            "whole columns are read, not leaves of structs",
            found=format_name(path),
            hint=f"ask for {format_name(path[:1])}",
        )
    return path[0]


def format_name(path: Sequence[str]) -> str:
    """Return the name that ``parse_name`` reads as these parts.

    >>> format_name(("s", "k")), format_name(("a.b",))
    ('s.k', '`a.b`')
    """
    return ".".join("`" + part.replace("`", "``") + "`" if _NEEDS_QUOTES.search(part) else part for part in path)


def folded_name(path: ColumnPath) -> ColumnPath:
    """Return a name as it is compared without regard to case.

    >>> folded_name(("S", "k"))
    ('s', 'k')
    """
    return tuple(part.lower() for part in path)


def arrow_type(spark_type: str) -> pa.DataType:
    """Return the Arrow type in which values of a Spark type are hashed.

    ``spark_type`` is what Spark calls ``simpleString``. Raises UnsupportedTypeError, with the reason, for a type that
    cannot have an index.

    >>> arrow_type("bigint"), arrow_type("decimal(10,2)")
    (DataType(int64), Decimal128Type(decimal128(10, 2)))
    """
    name = spark_type.lower()
    if name in _ARROW_TYPES:
        return _ARROW_TYPES[name]
    decimal = _DECIMAL.fullmatch(name)
    if decimal is not None and 1 <= int(decimal["precision"]) <= _MOST_DIGITS:
        return pa.decimal128(int(decimal["precision"]), int(decimal["scale"]))
    reason = next((why for pattern, why in _REFUSED if pattern.fullmatch(name)), "its values have no hash")
    raise UnsupportedTypeError(
        f"a column of type {spark_type} cannot have a Bloom index: {reason}",
        found=spark_type,
        hint="index another column",
    )
