"""What the units of an index are."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lakebloom.store.records import Commit, Granularity

__all__ = ["granularity_of"]


def granularity_of(commit: Commit) -> Granularity:
    """Return what one filter of an index covers; for "auto" what was chosen, which is "page" if it is for some file."""
    if commit.config.granularity != "auto":
        return commit.config.granularity
    segments = commit.segments
    files, units = sum(each.num_files for each in segments), sum(each.num_units for each in segments)
    return "file" if units == files else "page"
