"""Makes text from outside safe to print: characters that would control the terminal are escaped.

Names of columns, files and tables may contain anything. Escape codes could clear the screen or set its title, and marks
of direction could make a line read backwards. Everything printed goes through ``visible``.
"""

from __future__ import annotations

import re

__all__ = ["visible", "visible_json", "visible_lines"]

# Controls (C0, DEL, C1), marks of direction and other invisible marks, separators of lines, halves of characters.
# The two joiners (U+200C, U+200D) stay: scripts and emoji need them.
_STEERING = (
    "\x00-\x1f\x7f-\x9f\xad\u061c\u070f\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f"
)
# Patterns as text are compiled when they are first used: most processes print nothing.
_STEERS = f"[{_STEERING}]"
_STEERS_WITHIN_LINES = f"(?!\n)[{_STEERING}]"


def visible(text: str) -> str:
    r"""Return a text on one line, with control characters escaped as in Python.

    >>> print(visible("k\x1b[2J\n\N{RIGHT-TO-LEFT OVERRIDE}é"))
    k\x1b[2J\n\u202eé
    """
    return text if text.isprintable() else re.sub(_STEERS, _written, text)


def visible_lines(text: str) -> str:
    """Return a text of several lines, with control characters escaped in each."""
    return text if text.isprintable() else re.sub(_STEERS_WITHIN_LINES, _written, text)


def visible_json(text: str) -> str:
    r"""Return equivalent JSON, with control characters escaped as in JSON.

    >>> print(visible_json('{\n  "\x9b": 1}'))
    {
      "\u009b": 1}
    """
    return text if text.isprintable() else re.sub(_STEERS_WITHIN_LINES, _written_in_json, text)


def _written(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")


def _written_in_json(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
