"""Parses a condition: ``user_id = 42 AND country IN ('de', 'fr')``.

    condition   term { OR term }
    term        factor { AND factor }
    factor      NOT factor | test
    test        ( ( condition ) | comparison ) { IS [NOT] ( TRUE | FALSE | UNKNOWN | NULL ) }
    comparison  column ( = == <=> <> != < <= > >= ) value
              | column [NOT] IN ( value {, value} )
              | column [NOT] BETWEEN value AND value
              | column [NOT] LIKE pattern
              | column IS [NOT] ( NULL | TRUE | FALSE )
    column      names joined by dots; backticks quote a name with a dot or a blank
    pattern     a string, with no wildcard or with one % at its end; a backslash quotes %, _ and itself
    value       see ``values.py``

Keywords are not case-sensitive. A value is read as the type of the column that it is compared with. Every error names
the position in the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NoReturn, cast

from lakebloom.errors import ColumnNotFoundError, LakebloomError, PredicateSyntaxError
from lakebloom.predicate.sql.values import NOT_VALID, Written, typed
from lakebloom.predicate.tree import (
    MAX_DEPTH,
    And,
    Compare,
    Equals,
    EqualsNullSafe,
    IsIn,
    IsNotNull,
    IsNull,
    Literal,
    Not,
    Operator,
    Or,
    Predicate,
    StartsWith,
    TruthIs,
    TruthName,
)
from lakebloom.tables.columns import ColumnNames, ColumnPath, format_name, parse_name

__all__ = ["parse"]

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<prefixed>(?i:x|date|timestamp|timestamp_ntz)\s*'(?:[^']|'')*')
    | (?P<string>'(?:[^']|'')*')
    | (?P<number>[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?![\w.]))
    | (?P<name>(?:`(?:[^`]|``)+`|[^\W\d]\w*)(?:\.(?:`(?:[^`]|``)+`|[^\W\d]\w*))*)
    | (?P<sign><=>|<>|<=|>=|==|!=|[=<>(),])
    )""",
    re.VERBOSE,
)
_PATTERN = re.compile(r"(?P<text>(?:[^%_\\]|\\[%_\\])*)(?P<wildcard>%?)", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_BLANKS = re.compile(r"\s*")
_WORDS = frozenset({"AND", "OR", "NOT", "IN", "IS", "NULL", "BETWEEN", "TRUE", "FALSE"})
_TRUTHS: dict[str, TruthName] = {"TRUE": "true", "FALSE": "false", "UNKNOWN": "null", "NULL": "null"}
_SIGNS = ("=", "==", "<=>", "<>", "!=", "<", "<=", ">", ">=")
_MAX_BRACKETS = MAX_DEPTH // 2
"""Nesting depth, NOTs included. Each level of brackets may be two levels of the tree, an OR and an AND."""


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    """word, name, string, prefixed, number, sign or end."""
    text: str
    at: int


def parse(text: str, columns: Iterable[tuple[ColumnPath, str]], *, case_sensitive: bool = False) -> Predicate:
    """Return the predicate of a condition. ``columns`` are those of the table, each with its Spark type.

    ``case_sensitive`` tells how columns are found by name (``ColumnNames``).

    Raises PredicateSyntaxError.

    >>> parse("user_id = 42 and (s.k is null or day in ('2024-02-29'))",
    ...       [(("user_id",), "bigint"), (("s", "k"), "string"), (("day",), "date")])
    And(children=(Equals(column=('user_id',), value=Literal(type='bigint', value=42)), Or(children=(IsNull(column=('s', 'k')), IsIn(column=('day',), values=(Literal(type='date', value=19782),))))))
    """  # noqa: E501
    return _Parser(text, dict(columns), case_sensitive).whole()


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    at, end = 0, len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None:
            start = cast("re.Match[str]", _BLANKS.match(text, at)).end()
            what = "a quote that is not closed" if text[start] in "'`" else f"{text[start]!r}"
            raise PredicateSyntaxError("cannot read the condition", found=what, text=text, position=start)
        kind = cast("str", match.lastgroup)
        value = match[kind]
        is_word = kind == "name" and value.upper() in _WORDS
        found.append(_Token("word" if is_word else kind, value.upper() if is_word else value, match.start(kind)))
        at = match.end()
    return [*found, _Token("end", "", end)]


class _Parser:
    def __init__(self, text: str, types: Mapping[ColumnPath, str], case_sensitive: bool) -> None:
        self._text = text
        self._types = types
        self._names = ColumnNames(types, case_sensitive=case_sensitive)
        self._tokens = _tokens(text)
        self._next = 0
        self._depth = 0

    def whole(self) -> Predicate:
        predicate = self._condition()
        if self._token.kind != "end":
            self._refuse("AND, OR or the end")
        return predicate

    # Grammar, loosest first

    def _condition(self) -> Predicate:
        terms = self._joined("OR", self._term)
        return terms[0] if len(terms) == 1 else Or(tuple(terms))

    def _term(self) -> Predicate:
        factors = self._joined("AND", self._factor)
        return factors[0] if len(factors) == 1 else And(tuple(factors))

    def _joined(self, word: str, part: Callable[[], Predicate]) -> list[Predicate]:
        parts = [part()]
        while self._take("word", word):
            parts.append(part())
        return parts

    def _factor(self) -> Predicate:
        self._depth += 1
        if self._depth > _MAX_BRACKETS:
            self._refuse(f"at most {_MAX_BRACKETS} brackets and NOTs inside each other")
        if self._take("word", "NOT"):
            predicate: Predicate = Not(self._factor())
        elif self._take("sign", "("):
            predicate = self._condition()
            self._expect("sign", ")", "a closing bracket")
            predicate = self._tested(predicate)
        else:
            predicate = self._tested(self._comparison())
        self._depth -= 1
        return predicate

    def _tested(self, predicate: Predicate) -> Predicate:
        """Parse any number of ``IS [NOT] TRUE`` and the like after a condition."""
        tests = 0
        while self._take("word", "IS"):
            tests += 1
            negated = self._take("word", "NOT")
            truth = _TRUTHS.get(self._token.text.upper())
            if truth is None or tests > _MAX_BRACKETS:
                self._refuse("TRUE, FALSE, UNKNOWN or NULL")
            self._taken()
            others = tuple(name for name in dict.fromkeys(_TRUTHS.values()) if name != truth)
            predicate = TruthIs(predicate, others if negated else (truth,))
        return predicate

    def _comparison(self) -> Predicate:
        column, kind = self._column()
        if self._take("word", "IS"):
            negated = self._take("word", "NOT")
            if kind == "boolean" and self._token.text in ("TRUE", "FALSE"):
                is_this = EqualsNullSafe(column, Literal(kind, self._taken().text == "TRUE"))
                return Not(is_this) if negated else is_this
            self._expect("word", "NULL", "NULL or NOT NULL")
            return IsNotNull(column) if negated else IsNull(column)
        negated = self._take("word", "NOT")
        if self._take("word", "IN"):
            found: Predicate = IsIn(column, self._list(kind, column))
            return Not(found) if negated else found
        if self._take("word", "BETWEEN"):
            low = self._value(kind, column)
            self._expect("word", "AND", "AND")
            found = And((Compare(column, ">=", low), Compare(column, "<=", self._value(kind, column))))
            return Not(found) if negated else found
        if self._token.kind == "name" and self._token.text.upper() == "LIKE":
            self._taken()
            found = self._pattern(kind, column)
            return Not(found) if negated else found
        if negated or self._token.text not in _SIGNS:
            signs = "a comparison: = <=> <> < <= > >=, IN, BETWEEN, LIKE or IS NULL"
            self._refuse("IN, BETWEEN or LIKE" if negated else signs)
        sign = self._taken().text
        return _compared(column, sign, self._value(kind, column))

    def _list(self, kind: str, column: ColumnPath) -> tuple[Literal, ...]:
        self._expect("sign", "(", "a bracket with values")
        values = [self._value(kind, column)]
        while self._take("sign", ","):
            values.append(self._value(kind, column))
        self._expect("sign", ")", "a comma or a closing bracket")
        return tuple(values)

    def _pattern(self, kind: str, column: ColumnPath) -> Equals | StartsWith:
        """Parse what follows LIKE."""
        token = self._token
        if kind != "string":
            self._refuse(f"a string column before LIKE, and {format_name(column)} is of type {kind},")
        value = self._value(kind, column)
        if value.is_null:
            return StartsWith(column, value)
        match = _PATTERN.fullmatch(str(value.value))
        if match is None:
            raise PredicateSyntaxError(
                "LIKE takes a pattern without wildcards, or with one % at its end",
                found=token.text,
                hint="put a backslash before a % or _ that stands for itself; filter other patterns after the lookup",
                text=self._text,
                position=token.at,
            )
        literal = Literal("string", _ESCAPED.sub(r"\1", match["text"]))
        return StartsWith(column, literal) if match["wildcard"] else Equals(column, literal)

    def _column(self) -> tuple[ColumnPath, str]:
        if self._token.kind != "name":
            self._refuse("a column's name")
        token = self._taken()
        try:
            path = self._names.require(parse_name(token.text))
        except ColumnNotFoundError as error:
            raise PredicateSyntaxError(
                error.message,
                found=error.found,
                hint=error.hint,
                text=self._text,
                position=token.at,
            ) from error
        return path, self._types[path]

    def _value(self, kind: str, column: ColumnPath) -> Literal:
        token = self._token
        is_value = token.kind in ("string", "prefixed", "number") or token.text in ("TRUE", "FALSE", "NULL")
        if not is_value:
            hint = "put text in single quotes" if token.kind == "name" else ""
            self._refuse("a value", hint)
        self._taken()
        try:
            return typed(Written.of(token.kind, token.text), kind)
        except LakebloomError as error:
            details = "" if error.message == NOT_VALID else f": {error.message}"
            raise PredicateSyntaxError(
                f"{token.text} is not a valid {kind} for column {format_name(column)}{details}",
                found=error.found or token.text,
                hint=error.hint,
                text=self._text,
                position=token.at,
            ) from error

    # Tokens

    @property
    def _token(self) -> _Token:
        return self._tokens[self._next]

    def _taken(self) -> _Token:
        token = self._token
        self._next += 1
        return token

    def _take(self, kind: str, text: str) -> bool:
        if (self._token.kind, self._token.text) != (kind, text):
            return False
        self._next += 1
        return True

    def _expect(self, kind: str, text: str, what: str) -> None:
        if not self._take(kind, text):
            self._refuse(what)

    def _refuse(self, expected: str, hint: str = "") -> NoReturn:
        token = self._token
        found = "the end" if token.kind == "end" else token.text
        raise PredicateSyntaxError(
            f"the condition needs {expected} here",
            found=found,
            hint=hint or "write for example user_id = 42 AND country IN ('de', 'fr')",
            text=self._text,
            position=token.at,
        )


def _compared(column: ColumnPath, sign: str, value: Literal) -> Predicate:
    if sign == "<=>":
        return EqualsNullSafe(column, value)
    if sign in ("=", "=="):
        return Equals(column, value)
    if sign in ("<>", "!="):
        return Not(Equals(column, value))
    return Compare(column, cast("Operator", sign), value)
