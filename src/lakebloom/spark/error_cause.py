"""Finds the line of a Spark error that names the cause."""

from __future__ import annotations

import re

_CONDITION = re.compile(r"\[[A-Z][A-Z0-9_.]+\].*")
_TRACEBACK = "Traceback (most recent call last)"
_RAISED = re.compile(r"[A-Za-z_][\w.]*(Error|Exception|Interrupt|Exit)\b")
"""How the last line of a Python traceback begins."""
_CALLING = "An error occurred while calling "
_LOST = re.compile(r"Lost task \S+ in stage .*? executor \S+?\): (.+)")


def cause(error: Exception) -> str:
    """Return the last line of the worker's traceback, or the line with Spark's error condition, or the first message.

    >>> cause(Exception("An error occurred\\n: org.apache.spark.SparkException: [PATH_NOT_FOUND] No such path: x"))
    '[PATH_NOT_FOUND] No such path: x'
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    tracebacks = [number for number, line in enumerate(lines) if line.startswith(_TRACEBACK)]
    if tracebacks:
        raised = next((line for line in lines[tracebacks[-1] + 1 :] if _RAISED.match(line)), None)
        if raised is not None:
            return raised
    conditions = (_CONDITION.search(line) for line in lines)
    return next((found.group() for found in conditions if found), _message(lines))


def _message(lines: list[str]) -> str:
    """Return the first line that is a message: py4j says before it which call failed, Spark which task."""
    first = lines[1] if len(lines) > 1 and lines[0].startswith(_CALLING) else lines[0]
    lost = _LOST.search(first)
    return (lost[1] if lost else first).removeprefix(": ")
