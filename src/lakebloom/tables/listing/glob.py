r"""Hadoop's glob patterns, which are Spark's.

A pattern is matched component by component, so a wildcard never crosses a slash:

    *  ?            any characters, one character
    [abc] [a-z]     one of a set; [^abc] and [!abc] none of it
    {a,b}           alternatives; they may hold slashes, {2023/12,2024/01}, and be nested
    \x              x itself

A text with one of ``{}[]*?\`` in it is a pattern, as Spark has it: `escape` writes the pattern of a literal text.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise
from typing import NoReturn

from lakebloom.errors import InvalidArgumentError
from lakebloom.tuning import CACHED_ANSWERS

__all__ = ["compile_component", "escape", "expand_braces", "fixed_part", "is_glob", "unescape"]

_SPECIAL = re.compile(r"[{}\[\]*?\\]")


def is_glob(text: str) -> bool:
    """Tell a pattern from a plain path."""
    return _SPECIAL.search(text) is not None


def escape(text: str) -> str:
    r"""Return the pattern that matches this text only.

    >>> escape("/data/[x]")
    '/data/\\[x\\]'
    """
    return _SPECIAL.sub(r"\\\g<0>", text)


def unescape(component: str) -> str | None:
    r"""Return the only name that a component matches, or None if it may match several.

    >>> unescape(r"\[x\]"), unescape("[x]")
    ('[x]', None)
    """
    plain = re.sub(r"\\(.)", "", component, flags=re.DOTALL)
    return None if re.search(r"[{\[*?\\]", plain) else re.sub(r"\\(.)", r"\1", component, flags=re.DOTALL)


@lru_cache(maxsize=CACHED_ANSWERS)  # each query needs that of its table
def fixed_part(pattern: str) -> str:
    r"""Return the directory below which everything lies that a pattern matches, or the only path it matches.

    >>> fixed_part(r"s3://lake/t\[1\]/day=*/x.parquet")
    's3://lake/t[1]'
    """
    names = [unescape(component) for component in pattern.split("/")]
    known = names.index(None) if None in names else len(names)
    return "/".join(name for name in names[:known] if name is not None)


def expand_braces(pattern: str) -> list[str]:
    """Return patterns whose components can be matched one by one: alternatives with a slash in them are written out.

    >>> expand_braces("/{2023/12,2024/01}/{a,b}")
    ['/2023/12/{a,b}', '/2024/01/{a,b}']
    """
    group = _group_with_slash(pattern)
    if group is None:
        return [pattern]
    start, end, commas = group
    cuts = [start, *commas, end]
    options = [pattern[a + 1 : b] for a, b in pairwise(cuts)]
    return [whole for option in options for whole in expand_braces(pattern[:start] + option + pattern[end + 1 :])]


def _group_with_slash(pattern: str) -> tuple[int, int, list[int]] | None:
    """Find the first outermost {…} that holds a slash: where it opens, where it closes, where its commas are."""
    depth = start = at = 0
    commas: list[int] = []
    slash = False
    while at < len(pattern):
        char = pattern[at]
        if char == "\\":
            at += 1
        elif char == "{":
            depth += 1
            if depth == 1:
                start, commas, slash = at, [], False
        elif char == "}" and depth:
            depth -= 1
            if depth == 0 and slash:
                return start, at, commas
        elif char == "," and depth == 1:
            commas.append(at)
        elif char == "/" and depth:
            slash = True
        at += 1
    if depth:
        _refuse("a group is never closed", pattern)
    return None


def compile_component(component: str) -> re.Pattern[str]:
    """Return what a name has to match in full. Raises InvalidArgumentError for a pattern that is none.

    >>> bool(compile_component("part-*.{parquet,pq}").fullmatch("part-7.pq"))
    True
    """
    parts: list[str] = []
    depth = at = 0
    while at < len(component):
        char = component[at]
        if char == "\\":
            at += 1
            if at == len(component):
                _refuse("nothing follows the last backslash", component)
            parts.append(re.escape(component[at]))
        elif char == "*":
            parts.append(".*")
        elif char == "?":
            parts.append(".")
        elif char == "{":
            depth += 1
            parts.append("(?:")
        elif char == "}" and depth:
            depth -= 1
            parts.append(")")
        elif char == "," and depth:
            parts.append("|")
        elif char == "[":
            text, at = _character_set(component, at)
            parts.append(text)
        else:
            parts.append(re.escape(char))
        at += 1
    if depth:
        _refuse("a group is never closed", component)
    return re.compile("".join(parts), re.DOTALL)


def _character_set(component: str, start: int) -> tuple[str, int]:
    """Translate the set that opens at `start`; return it and the position of its closing bracket."""
    at = start + 1
    negated = component[at : at + 1] in {"^", "!"}
    at += negated
    first = at
    members: list[str] = []
    while at < len(component) and (component[at] != "]" or at == first):
        if component[at] == "\\":
            at += 1
            members.append(re.escape(component[at : at + 1]))
        elif component[at] == "-" and at != first and component[at + 1 : at + 2] != "]":
            members.append("-")  # a range
        else:
            members.append(re.escape(component[at]))
        at += 1
    if at >= len(component):
        _refuse("a set of characters is never closed", component)
    try:
        text = f"[{'^' if negated else ''}{''.join(members)}]"
        re.compile(text)
    except re.error as error:
        _refuse(f"a set of characters is none: {error.msg}", component)
    return text, at


def _refuse(reason: str, pattern: str) -> NoReturn:
    raise InvalidArgumentError(
        f"this glob pattern cannot be read: {reason}",
        found=pattern,
        hint="put a backslash before a bracket or brace that is part of a name",
    )
