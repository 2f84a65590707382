"""The progress bar of a running job, the same as in Python (``lakebloom.display.progress``)."""

from __future__ import annotations

from lakebloom.display.progress import pace
from lakebloom.display.progress_bar import bar

__all__ = ["bar", "pace"]
