"""Durations in the properties of a Delta table: ``interval 7 days``, ``interval 1 week 12 hours``."""

from __future__ import annotations

import re

__all__ = ["interval_ms"]

_UNIT_MS = {
    "microsecond": 0.001,
    "millisecond": 1,
    "second": 1_000,
    "minute": 60_000,
    "hour": 3_600_000,
    "day": 86_400_000,
    "week": 604_800_000,
}
_PART = re.compile(r"\s*(-?\d{1,12})\s+([a-z]+?)s?(?=\s|$)")


def interval_ms(text: str) -> int | None:
    """Return a duration in milliseconds; None for one that is not written like this. Months have no fixed length.

    >>> interval_ms("interval 1 week"), interval_ms("INTERVAL 2 days 1 hour"), interval_ms("interval 1 month")
    (604800000, 176400000, None)
    """
    rest = re.sub(r"^\s*interval\b", "", text.lower()).rstrip()
    total, at = 0.0, 0
    while at < len(rest):
        part = _PART.match(rest, at)
        if part is None or part[2] not in _UNIT_MS:
            return None
        total += int(part[1]) * _UNIT_MS[part[2]]
        at = part.end()
    return int(total) if at else None
