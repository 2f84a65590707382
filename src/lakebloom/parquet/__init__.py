"""Bloom filters inside Parquet files: read and probe them, and embed them into files that have none.

Names load on first use, so that importing this package loads neither numba nor pyspark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakebloom._lazy import lazy_names

if TYPE_CHECKING:
    from lakebloom.parquet.embedded_filter import EmbeddedFilter
    from lakebloom.parquet.embedding import EmbedReport, embed
    from lakebloom.parquet.reader import filters, might_contain

__all__ = ["EmbedReport", "EmbeddedFilter", "embed", "filters", "might_contain"]

# No module here may have the name of a function: importing the module would replace the function.
_HOME_OF = {
    "EmbeddedFilter": "lakebloom.parquet.embedded_filter",
    "EmbedReport": "lakebloom.parquet.embedding",
    "embed": "lakebloom.parquet.embedding",
    "filters": "lakebloom.parquet.reader",
    "might_contain": "lakebloom.parquet.reader",
}

__getattr__, __dir__ = lazy_names(__name__, _HOME_OF)
