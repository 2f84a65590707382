"""Bloom filter indexes of Lance datasets: read, probe and write them.

``lakebloom.spark.lance.build_index`` builds one for a dataset, as a Spark job. Names load on first use. Reading and
writing need pylance (``pip install 'lakebloom[lance]'``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakebloom._lazy import lazy_names

if TYPE_CHECKING:
    from lakebloom.lance.reader import candidates, filters, might_contain, open_index
    from lakebloom.lance.zones import LanceIndex, ZoneFilter

__all__ = ["LanceIndex", "ZoneFilter", "candidates", "filters", "might_contain", "open_index"]

# No module here may have the name of a function: importing the module would replace the function.
_HOME_OF = {
    "LanceIndex": "lakebloom.lance.zones",
    "ZoneFilter": "lakebloom.lance.zones",
    "candidates": "lakebloom.lance.reader",
    "filters": "lakebloom.lance.reader",
    "might_contain": "lakebloom.lance.reader",
    "open_index": "lakebloom.lance.reader",
}

__getattr__, __dir__ = lazy_names(__name__, _HOME_OF)
