"""lakebloom: Bloom-filter indexes for data lakes on Spark.

Names load on first use: importing the package reads no environment, has no side effect, and loads neither numpy
nor pyarrow, numba or pyspark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakebloom._lazy import lazy_names

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
_MODULES = ("errors", "sizing")

__getattr__, __dir__ = lazy_names(__name__, _HOME_OF, _MODULES)
