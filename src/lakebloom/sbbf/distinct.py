"""Distinct numbers. ``np.unique`` does the same, and loads numpy.ma first, which takes longer than a lookup."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

__all__ = ["distinct_numbers", "runs"]

Numbers: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
IntArray: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"


def runs(ascending: Numbers) -> tuple[Numbers, IntArray]:
    """Return the distinct numbers of an ascending array, and where each of them begins.

    >>> [found.tolist() for found in runs(np.array([3, 3, 5]))]
    [[3, 5], [0, 2]]
    """
    if len(ascending) < 2:
        return ascending, np.zeros(len(ascending), dtype=np.int64)
    firsts = np.flatnonzero(np.append(True, ascending[1:] != ascending[:-1]))
    return ascending[firsts], firsts


def distinct_numbers(numbers: Numbers) -> tuple[Numbers, IntArray]:
    """Return the distinct numbers, ascending, and the place of each given one among them.

    >>> [found.tolist() for found in distinct_numbers(np.array([5, 3, 5]))]
    [[3, 5], [1, 0, 1]]
    """
    if len(numbers) == 1:
        return numbers, np.zeros(1, dtype=np.int64)
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    found, firsts = runs(ordered)
    places = np.empty(len(numbers), dtype=np.int64)
    places[order] = np.repeat(np.arange(len(found)), np.diff(np.append(firsts, len(numbers))))
    return found, places
