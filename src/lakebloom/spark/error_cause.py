"""Finds the line of a Spark error that names the cause."""

from __future__ import annotations

import re

_CONDITION = re.compile(r"\[[A-Z][A-Z0-9_.]+\].*")
_TRACEBACK = "Traceback (most recent call last)"
_RAISED = re.compile(r"[A-Za-z_][\w.]*(Error|Exception|Interrupt|Exit)\b")
"""How the last line of a Python traceback begins."""


def cause(error: Exception) -> str:
    """Return the last line of the worker's traceback, or the line with Spark's error condition, or the first line.

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
    return next((found.group() for found in conditions if found), lines[0])
