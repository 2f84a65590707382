"""Error messages: one paragraph with the code, what was found and what to do; JSON for programs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakebloom.display.secrets import without_secrets
from lakebloom.display.visible import visible
from lakebloom.errors import LakebloomError, PredicateSyntaxError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ErrorMessage"]

_WIDTH = 70

# Hints name Python calls; on the command line they must name commands.
_AS_COMMANDS: list[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]]] = [
    (re.compile(r"(?:lake\.)?indexes\(\)"), "`lakebloom list`"),
    (re.compile(r"(?:lake\.)?(\w+)_index\('([^']*)'\)"), r"`lakebloom \1 \2`"),
    (
        re.compile(r"(?:lake\.)?(\w+)_index\('([^']*)', (\w+)=True\)"),
        lambda match: f"`lakebloom {match[1]} {match[2]} --{match[3].replace('_', '-')}`",
    ),
    (re.compile(r"(?:lake\.)?\b(delete|vacuum|refresh|restore|optimize|verify)_index\b"), r"`lakebloom \1`"),
    (re.compile(r"lake\.candidates\(\)"), "`lakebloom candidates`"),
    (re.compile(r'granularity="?(\w+)"?'), r"--granularity \1"),
    (re.compile(r'unindexed="(\w+)"'), r"--unindexed \1"),
    (re.compile(r'Lakebloom\(location="[^"]*"\)'), "--location PATH, or set LAKEBLOOM_LOCATION"),
    (re.compile(r"pass a DataFrame for another format, such as [^)]*\)"), "use --format for another format"),
    (re.compile(r"set (spark\.[\w.]+)=(\w+)"), r"pass --conf \1=\2"),
    (re.compile(r"raise (spark\.[\w.]+)"), r"pass --conf \1=…"),
]


@dataclass(frozen=True, slots=True)
class ErrorMessage:
    """The parts of an error message."""

    code: str
    message: str
    found: str = ""
    hint: str = ""
    pointer: tuple[str, int] | None = None
    """A text, and the position in it that the message points at."""

    @classmethod
    def of(cls, error: LakebloomError) -> ErrorMessage:
        """Return the message for an error that lakebloom raised."""
        hint = error.hint
        for pattern, words in _AS_COMMANDS:
            hint = pattern.sub(words, hint)
        is_typed = isinstance(error, PredicateSyntaxError) and error.text
        pointer = (error.text, error.position) if isinstance(error, PredicateSyntaxError) and is_typed else None
        return cls(error.code, error.message, error.found, hint, pointer)

    @classmethod
    def unexpected(cls, error: BaseException) -> ErrorMessage:
        """Return the message for an unexpected error."""
        lines = str(error).strip().splitlines() or [""]
        hint = "run the command again with --debug, and report what it prints"
        return cls(
            "UNEXPECTED",
            "this is a bug in lakebloom or in one of its libraries",
            without_secrets(f"{type(error).__name__}: {lines[0]}"),
            hint,
        )

    def paragraph(self) -> str:
        """Return the error as a paragraph; for a syntax error, with a pointer to its position."""
        parts = [f"error {self.code}: {_sentence(self.message)}"]
        if self.found:
            parts.append(f"Found: {_sentence(self.found)}")
        if self.hint:
            parts.append(f"What to do: {_sentence(self.hint)}")
        return " ".join(parts) + ("" if self.pointer is None else _pointed(*self.pointer))

    def as_json(self) -> dict[str, Any]:
        """Return the error for programs."""
        place = {} if self.pointer is None else {"text": self.pointer[0], "position": self.pointer[1]}
        return {"error": {"code": self.code, "message": self.message, "found": self.found, "hint": self.hint, **place}}


def _pointed(text: str, position: int) -> str:
    """Return the part of a text around a position, and an arrow to it: two lines short enough for any terminal.

    >>> print(_pointed("k = 1 AND AND s = 'x'", 10))
    <BLANKLINE>
      k = 1 AND AND s = 'x'
                ^
    """
    line = " ".join(text.splitlines()) if "\n" in text else text
    start = 0 if len(line) <= _WIDTH else max(0, min(position - _WIDTH // 2, len(line) - _WIDTH))
    before, after = ("…" if start else ""), ("…" if start + _WIDTH < len(line) else "")
    left, right = visible(line[start:position]), visible(line[position : start + _WIDTH])
    return f"\n  {before}{left}{right}{after}\n  {' ' * (len(before) + len(left))}^"


def _sentence(text: str) -> str:
    line = visible(text)
    return line if line.endswith((".", "!", "?", "`")) else f"{line}."
