"""A page about an index: one HTML file without network, scripts or other files. Needs no Spark."""

from __future__ import annotations

from lakebloom.report.facts import Facts, gather
from lakebloom.report.page import render

__all__ = ["Facts", "gather", "render"]
