"""The bar of a running job. It is drawn as Python draws it (``lakebloom.index.progress``)."""

from __future__ import annotations

from lakebloom.index.progress import pace
from lakebloom.index.progress_bar import bar

__all__ = ["bar", "pace"]
