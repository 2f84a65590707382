"""lakebloom: Bloom-filter indexes for data lakes on Spark.

Names load on first use: importing the package reads no environment, has no side effect, and loads neither numpy
nor pyarrow, numba or pyspark.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lakebloom import errors, sizing
    from lakebloom.errors import LakebloomError
    from lakebloom.index.config import BloomIndexConfig
    from lakebloom.lake import Lakebloom
    from lakebloom.predicate.column import col
    from lakebloom.sbbf.filter import Sbbf
    from lakebloom.sbbf.hashing.hash_values import hash_values

__version__ = "0.1.0"

__all__ = [
    "BloomIndexConfig",
    "Lakebloom",
    "LakebloomError",
    "Sbbf",
    "__version__",
    "col",
    "errors",
    "hash_values",
    "sizing",
]

_HOME_OF = {
    "BloomIndexConfig": "lakebloom.index.config",
    "Lakebloom": "lakebloom.lake",
    "LakebloomError": "lakebloom.errors",
    "Sbbf": "lakebloom.sbbf.filter",
    "col": "lakebloom.predicate.column",
    "hash_values": "lakebloom.sbbf.hashing.hash_values",
}
_MODULES = frozenset({"errors", "sizing"})


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"lakebloom.{name}")
    if name in _HOME_OF:
        value = getattr(importlib.import_module(_HOME_OF[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'lakebloom' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
