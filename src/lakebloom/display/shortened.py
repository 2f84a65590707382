"""Long texts and long lists of names, cut to what a person reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["cut", "some"]

_MOST_NAMES = 20
_NOTE_CHARACTERS = 40


def cut(text: str, most: int) -> str:
    """Return a text of at most this many characters, with a note about the rest. A text that was cut stays as it is."""
    kept = most - _NOTE_CHARACTERS
    return text if len(text) <= most else f"{text[:kept]}… ({len(text) - kept:,} more characters)"


def some(names: Sequence[str]) -> str:
    """Return the first names of a list, and how many more there are.

    >>> some(["a", "b"])
    'a, b'
    """
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more
