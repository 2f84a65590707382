"""Random histories of a table, with lookups that must give what a scan of the same version gives.

What a scan gives is said by a model of the table, by the format's own reader, or by both.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from lakebloom import Lakebloom, col
from tests.index.logged_lake import NAME, LoggedIndexes, ordered

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

NAMES = ("k", "s", "p", "x", "y", "z")
"""Columns are renamed to one of these."""
MOST_SEEN = 100


class RandomHistory(ABC):
    """A random history of a table. Versions are what a reader can ask for by number."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.judged = 0
        """How often the format's own reader was asked."""
        self.seen: list[Any] = []
        """Values that were there in some version. Later ones may lack them."""

    @property
    @abstractmethod
    def commits(self) -> int:
        """How many commits there were."""

    @abstractmethod
    def versions(self) -> Sequence[int]:
        """Return the versions that can be read."""

    @abstractmethod
    def columns(self, version: int | None) -> Mapping[str, type]:
        """Return the columns of a version, with the types of their values; None is the table now."""

    @abstractmethod
    def rows(self, version: int | None) -> list[dict[str, Any]]:
        """Return the rows of a version."""

    def judge(self, version: int | None) -> list[dict[str, Any]] | None:
        """Return the rows of a version as the format's own reader reads it; None where it cannot."""
        return None

    @abstractmethod
    def step(self) -> None:
        """Do something to the table."""


def compare(lake: Lakebloom, history: RandomHistory, version: int | None) -> None:
    """Look for values and for NULL in every column."""
    rows = history.rows(version)
    judged = history.judge(version)
    if judged is not None:
        history.judged += 1
        assert ordered(judged) == ordered(rows), version
    for name, kind in history.columns(version).items():
        present = sorted({row[name] for row in rows if row[name] is not None})
        seen = [value for value in history.seen if type(value) is kind]
        pools = [pool for pool in (present, present, seen) if pool]
        asked = dict.fromkeys(history.random.choice(pool) for pool in pools)  # in their order: a seed must say it all
        history.seen = [*history.seen[-MOST_SEEN:], *asked]
        for value in [None, *asked]:
            found = lake.lookup(NAME, col(name).is_null() if value is None else col(name) == value, version=version)
            expected = [row for row in rows if row[name] == value]
            assert ordered(found.to_pylist()) == ordered(expected), (version, name, value)


def follow(
    indexes: LoggedIndexes,
    history: RandomHistory,
    commits: int,
    between: Callable[[Lakebloom], None] | None = None,
) -> None:
    """Index the table, and compare the newest and some older version after every step until there are enough commits.

    The index is refreshed now and then. ``between`` is another check after each step.
    """
    indexes.create("k", "s", granularity=history.random.choice(["file", "row_group"]))
    lake = indexes.open()
    while history.commits < commits:
        history.step()
        if history.random.random() < 0.25:
            indexes.refresh(history.random.choice(["quick", "quick", "full"]))
        compare(lake, history, None)
        compare(lake, history, history.random.choice(history.versions()))
        if between is not None:
            between(lake)
    assert indexes.open().verify_index(NAME).false_negatives == 0
