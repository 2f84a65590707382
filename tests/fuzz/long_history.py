"""How long random histories of tables are: `make fuzz` runs 1,000 commits (``LAKEBLOOM_COMMITS``), `make test` a few.

``tests/index/laws`` has shorter ones with more seeds. A failure prints its seed.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tests.index.laws.random_history import follow

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakebloom import Lakebloom
    from tests.index.laws.random_history import RandomHistory
    from tests.index.logged_lake import LoggedIndexes

COMMITS = int(os.environ.get("LAKEBLOOM_COMMITS", "20"))
SEED = int(os.environ.get("LAKEBLOOM_SEED", "17"))
MOST_FILES = 10
"""Tables stay small: a history of 1,000 commits is about what happens to files, not about how many there are."""


def follow_long(
    indexes: LoggedIndexes, history: RandomHistory, sometimes: Callable[[Lakebloom], None] | None = None
) -> None:
    """Follow a history for so many commits. ``sometimes`` is a check that is made about twenty times in 1,000."""

    def between(lake: Lakebloom) -> None:
        if sometimes is not None and history.random.random() < 20 / max(COMMITS, 200):
            sometimes(lake)

    try:
        follow(indexes, history, COMMITS, between)
    except Exception as error:
        place = f"LAKEBLOOM_SEED={SEED} LAKEBLOOM_COMMITS={COMMITS}, commit {history.commits}"
        raise AssertionError(f"{place}: {error!r}") from error
