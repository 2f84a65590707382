"""SQL about indexes: ``CREATE BLOOM INDEX by_user ON events (user_id) OPTIONS (fpp = 0.001)`` and so on.

    CREATE [OR REPLACE] BLOOM INDEX [IF NOT EXISTS] name ON [TABLE] table ( column {, column} )
        [OPTIONS ( key = value {, … } )]
    REFRESH BLOOM INDEX name [QUICK | FULL] [ALLOW SHRINK]
    OPTIMIZE | VERIFY | REPAIR | RESTORE BLOOM INDEX name
    VACUUM BLOOM INDEX name [RETAIN number HOURS]
    DROP BLOOM INDEX [IF EXISTS] name
    SHOW BLOOM INDEXES
    DESCRIBE [HISTORY] BLOOM INDEX name

A table is a name, a format and a path (``parquet.`/data/events` ``), or a path as a string. Options are the fields of
``BloomIndexConfig``. Any other statement is Spark's.
"""

from __future__ import annotations

import datetime
import difflib
import re
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, NoReturn

from lakebloom.errors import PredicateSyntaxError
from lakebloom.index.config import BloomIndexConfig
from lakebloom.tables.columns import parse_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["CreateIndex", "DropIndex", "OneIndex", "ShowIndexes", "Statement", "parse_statement"]

_BEGIN = re.compile(
    r"\s*(?:CREATE\s+(?:OR\s+REPLACE\s+)?|REFRESH\s+|OPTIMIZE\s+|VERIFY\s+|REPAIR\s+|RESTORE\s+|VACUUM\s+|DROP\s+"
    r"|SHOW\s+|(?:DESCRIBE|DESC)\s+(?:HISTORY\s+)?)BLOOM\s+INDEX(?:ES)?\b",
    re.IGNORECASE,
)
_TOKEN = re.compile(
    r"""\s*(?:
      (?P<string>'(?:[^']|'')*'|"(?:[^"]|"")*")
    | (?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w.]))
    | (?P<name>(?:`(?:[^`]|``)+`|\w[\w-]*)(?:\.(?:`(?:[^`]|``)+`|\w[\w-]*))*)
    | (?P<sign>[=(),;])
    )""",
    re.VERBOSE,
)
_OPTIONS = [field.name for field in fields(BloomIndexConfig) if field.name not in ("name", "columns")]
_VERBS = ("REFRESH", "OPTIMIZE", "VERIFY", "REPAIR", "RESTORE", "VACUUM")


@dataclass(frozen=True, slots=True)
class CreateIndex:
    """CREATE BLOOM INDEX."""

    config: BloomIndexConfig
    table: str
    if_not_exists: bool = False
    or_replace: bool = False


@dataclass(frozen=True, slots=True)
class OneIndex:
    """A statement about one index; ``verb`` is in capitals."""

    verb: str
    name: str
    mode: str = "quick"
    allow_shrink: bool = False
    retention: datetime.timedelta | None = None


@dataclass(frozen=True, slots=True)
class DropIndex:
    """DROP BLOOM INDEX."""

    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class ShowIndexes:
    """SHOW BLOOM INDEXES."""


Statement = CreateIndex | OneIndex | DropIndex | ShowIndexes


def parse_statement(text: str) -> Statement | None:
    """Return a statement about indexes, or None for a statement of Spark. Raises PredicateSyntaxError.

    >>> parse_statement("REFRESH BLOOM INDEX by_user FULL")
    OneIndex(verb='REFRESH', name='by_user', mode='full', allow_shrink=False, retention=None)
    >>> parse_statement("SELECT 1") is None
    True
    """
    if _BEGIN.match(text) is None:
        return None
    return _Parser(text).statement()


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    position: int


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(self._split())
        self._next = 0

    def _split(self) -> Iterator[_Token]:
        position, end = 0, len(self._text.rstrip())
        while position < end:
            match = _TOKEN.match(self._text, position)
            if match is None:
                self._refuse("a name, a value or a sign", position)
            assert match.lastgroup is not None
            yield _Token(match.lastgroup, match[match.lastgroup], match.start(match.lastgroup))
            position = match.end()

    def statement(self) -> Statement:
        verb = self._word()
        parsed = self._of_verb(verb)
        self._accepts(";")
        if self._next < len(self._tokens):
            self._refuse("the end of the statement")
        return parsed

    def _of_verb(self, verb: str) -> Statement:
        if verb == "CREATE":
            return self._create()
        if verb == "DROP":
            self._words("BLOOM", "INDEX")
            if_exists = self._accepts("IF", "EXISTS")
            return DropIndex(self._index_name(), if_exists)
        if verb == "SHOW":
            self._words("BLOOM", "INDEXES")
            return ShowIndexes()
        if verb in ("DESCRIBE", "DESC"):
            verb = "HISTORY" if self._accepts("HISTORY") else "DESCRIBE"
            self._words("BLOOM", "INDEX")
            return OneIndex(verb, self._index_name())
        assert verb in _VERBS
        self._words("BLOOM", "INDEX")
        name = self._index_name()
        if verb == "REFRESH":
            mode = "full" if self._accepts("FULL") else "quick"
            if mode == "quick":
                self._accepts("QUICK")
            return OneIndex(verb, name, mode=mode, allow_shrink=self._accepts("ALLOW", "SHRINK"))
        if verb == "VACUUM" and self._accepts("RETAIN"):
            hours = float(self._take("number", "a number of hours").text)
            self._words("HOURS")
            return OneIndex(verb, name, retention=datetime.timedelta(hours=hours))
        return OneIndex(verb, name)

    def _create(self) -> CreateIndex:
        or_replace = self._accepts("OR", "REPLACE")
        self._words("BLOOM", "INDEX")
        if_not_exists = not or_replace and self._accepts("IF", "NOT", "EXISTS")
        name = self._index_name()
        self._words("ON")
        self._accepts("TABLE")
        table = self._table()
        columns = self._list(lambda: self._take("name", "a column").text)
        options: dict[str, Any] = {}
        if self._accepts("OPTIONS"):
            options = dict(self._list(self._option))
        return CreateIndex(BloomIndexConfig(name, columns, **options), table, if_not_exists, or_replace)

    def _option(self) -> tuple[str, Any]:
        token = self._take("name", "an option")
        key = token.text.lower()
        if key not in _OPTIONS:
            close = difflib.get_close_matches(key, _OPTIONS, n=1)
            hint = f"did you mean {close[0]}?" if close else f"known are {', '.join(_OPTIONS)}"
            raise PredicateSyntaxError(
                "an index has no such option", found=key, hint=hint, text=self._text, position=token.position
            )
        self._words("=")
        return key, self._value()

    def _value(self) -> Any:
        token = self._peek()
        if token is None or token.kind == "sign":
            self._refuse("a value")
        self._next += 1
        if token.kind == "string":
            return _unquoted(token.text)
        if token.kind == "number":
            return float(token.text) if re.search(r"[.eE]", token.text) else int(token.text)
        word = token.text.lower()
        return word == "true" if word in ("true", "false") else None if word == "null" else word

    def _table(self) -> str:
        token = self._peek()
        if token is not None and token.kind == "string":
            self._next += 1
            return _unquoted(token.text)
        return self._take("name", "a table or a path in quotes").text

    def _index_name(self) -> str:
        return ".".join(parse_name(self._take("name", "the name of an index").text))

    def _list(self, item: Callable[[], Any]) -> list[Any]:
        self._words("(")
        items = [item()]
        while self._accepts(","):
            items.append(item())
        self._words(")")
        return items

    def _word(self) -> str:
        token = self._tokens[self._next]
        self._next += 1
        return token.text.upper()

    def _peek(self) -> _Token | None:
        return self._tokens[self._next] if self._next < len(self._tokens) else None

    def _accepts(self, *words: str) -> bool:
        found = [token.text.upper() for token in self._tokens[self._next : self._next + len(words)]]
        if found != list(words):
            return False
        self._next += len(words)
        return True

    def _words(self, *words: str) -> None:
        for word in words:
            if not self._accepts(word):
                self._refuse(word)

    def _take(self, kind: str, wanted: str) -> _Token:
        token = self._peek()
        if token is None or token.kind != kind:
            self._refuse(wanted)
        self._next += 1
        return token

    def _refuse(self, wanted: str, position: int | None = None) -> NoReturn:
        if position is None:
            token = self._peek()
            position = len(self._text) if token is None else token.position
        raise PredicateSyntaxError(
            f"cannot read the statement: expected {wanted}",
            found=repr(self._text[position : position + 20]) if position < len(self._text) else "its end",
            hint="docs/SQL.md has the statements",
            text=self._text,
            position=position,
        )


def _unquoted(text: str) -> str:
    return text[1:-1].replace(text[0] * 2, text[0])
