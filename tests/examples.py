"""How many examples of each law run: all of them in `make test`, a few in `make fast`."""

from __future__ import annotations

import os

__all__ = ["most"]

_MOST = int(os.environ.get("LAKEBLOOM_EXAMPLES", "0"))


def most(count: int) -> int:
    """Return so many examples, or fewer if the run is to be short."""
    return min(count, _MOST) if _MOST else count
