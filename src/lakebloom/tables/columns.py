"""Names and types of columns, in Spark's terms.

A name is a tuple of parts: ``s.k`` is the leaf ``k`` of the struct ``s``, and a column that is itself called ``s.k`` is
written with backticks. Inside lakebloom only the tuples travel, so the two are never mistaken for each other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TypeAlias

import pyarrow as pa

from lakebloom.errors import ColumnNotFoundError, InvalidArgumentError, UnsupportedTypeError
from lakebloom.tuning import CACHED_ANSWERS

__all__ = ["ColumnNames", "ColumnPath", "arrow_type", "folded_name", "format_name", "parse_name", "top_level_name"]

ColumnPath: TypeAlias = tuple[str, ...]

_PART = re.compile(r"`(?P<quoted>(?:[^`]|``)+)`|(?P<plain>[^.`]+)")
_NEEDS_QUOTES = re.compile(r"[.`]|^$")
_DECIMAL = r"decimal\((?P<precision>\d+), ?(?P<scale>\d+)\)"  # patterns that few calls need are compiled then

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
    (r"boolean|tinyint", "a Bloom filter over at most 256 values skips nothing"),
    (r"string collate .*", "values that its collation calls equal have different hashes"),
    (r"(char|varchar)\(.*", "Spark pads and trims its values when it compares them"),
    (r"(array|map|struct)<.*", "only plain values have a hash; a struct's leaf can be named as a.b"),
]


@lru_cache(maxsize=CACHED_ANSWERS)
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
                "a column name consists of parts joined by dots; a part that contains a dot needs backticks",
                found=name,
                hint="write `a.b` (with backticks) for a column whose name contains a dot",
            )
        quoted = match["quoted"]
        parts.append(match["plain"] if quoted is None else quoted.replace("``", "`"))
        at = match.end()
        if at == len(name):
            return tuple(parts)
        if name[at] != ".":
            raise InvalidArgumentError("the parts of a column name are joined by dots", found=name)
        at += 1


def top_level_name(name: str) -> str:
    """Return the name of a whole column, without quotes. Raises InvalidArgumentError for a leaf of a struct.

    >>> top_level_name("`a.b`")
    'a.b'
    """
    path = parse_name(name)
    if len(path) > 1:
        raise InvalidArgumentError(
            "only whole columns can be returned, not fields of structs",
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
    return (path[0].lower(),) if len(path) == 1 else tuple(part.lower() for part in path)


class ColumnNames:
    """Finds columns by name as Spark does: the one rule for names.

    With regard to case, a name means the column spelt exactly so. Without, it means the column spelt so in any case,
    and nothing if there are several: an exact spelling does not decide between them. The parts of a nested name are
    found one after the other, so that nothing is found below two structs ``s`` and ``S``. Letters are compared by their
    lower case, as Spark's readers compare them.

    >>> names = ColumnNames([("K",), ("s",), ("s", "X")], case_sensitive=False)
    >>> names.find(("k",)), names.find(("S", "x")), names.find(("x",))
    (('K',), ('s', 'X'), None)
    """

    def __init__(self, paths: Iterable[ColumnPath], *, case_sensitive: bool) -> None:
        self.case_sensitive = case_sensitive
        self._paths = tuple(paths)
        self._found: dict[ColumnPath, list[int]] = {}
        for number, path in enumerate(self._paths):
            self._found.setdefault(path if case_sensitive else folded_name(path), []).append(number)
        self._ambiguous = {key for key, numbers in self._found.items() if len(numbers) > 1}

    def matches(self, wanted: ColumnPath) -> list[int]:
        """Return the places of all columns that a name fits."""
        key = wanted if self.case_sensitive else folded_name(wanted)
        return self._found.get(key, [])

    def find(self, wanted: ColumnPath) -> ColumnPath | None:
        """Return the column that a name means; None where there is none, or where there are several."""
        key = wanted if self.case_sensitive else folded_name(wanted)
        numbers = self._found.get(key)
        if numbers is None or (self._ambiguous and self._doubtful(key) is not None):
            return None
        return self._paths[numbers[0]]

    def require(self, wanted: ColumnPath, *, where: str = "the table") -> ColumnPath:
        """Return the column that a name means. Raises ColumnNotFoundError."""
        found = self.find(wanted)
        if found is not None:
            return found
        doubtful = self._doubtful(wanted if self.case_sensitive else folded_name(wanted))
        if doubtful is None:
            below = [format_name(path) for path in self._paths if path[: len(wanted)] == wanted]
            raise ColumnNotFoundError.among(format_name(wanted), self.texts, where=where, below=below)
        several = [format_name(self._paths[number]) for number in self._found[doubtful]]
        raise ColumnNotFoundError.ambiguous(format_name(wanted[: len(doubtful)]), several, where=where)

    @property
    def texts(self) -> list[str]:
        """The names as they are written."""
        return [format_name(path) for path in self._paths]

    def _doubtful(self, key: ColumnPath) -> ColumnPath | None:
        """Return the first part of a name that means several columns."""
        return next((key[:end] for end in range(1, len(key) + 1) if key[:end] in self._ambiguous), None)


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
    decimal = re.fullmatch(_DECIMAL, name)
    if decimal is not None and 1 <= int(decimal["precision"]) <= _MOST_DIGITS:
        return pa.decimal128(int(decimal["precision"]), int(decimal["scale"]))
    reason = next((why for pattern, why in _REFUSED if re.fullmatch(pattern, name)), "its values have no hash")
    raise UnsupportedTypeError(
        f"a column of type {spark_type} cannot have a Bloom index: {reason}",
        found=spark_type,
        hint="index another column",
    )
