"""Bloom filters inside Parquet files: read them, ask them, and put them into files that have none.

Names load on first use, so that importing this package loads neither numba nor pyspark.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lakebloom.parquet.embedded_filter import EmbeddedFilter
    from lakebloom.parquet.embedding import EmbedReport, embed
    from lakebloom.parquet.reader import filters, might_contain

__all__ = ["EmbedReport", "EmbeddedFilter", "embed", "filters", "might_contain"]

# No module here may have the name of a function: importing it would put the module in the function's place.
_HOME_OF = {
    "EmbeddedFilter": "lakebloom.parquet.embedded_filter",
    "EmbedReport": "lakebloom.parquet.embedding",
    "embed": "lakebloom.parquet.embedding",
    "filters": "lakebloom.parquet.reader",
    "might_contain": "lakebloom.parquet.reader",
}


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        value = getattr(importlib.import_module(_HOME_OF[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'lakebloom.parquet' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
