"""Which row groups of an unindexed file can match, by the filters inside the file.

Whatever cannot be probed keeps every row group: a file without filters, a column with another name in the file, a value
of another kind, an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lakebloom.predicate.prune.hashes import to_array
from lakebloom.predicate.tree import And, Equals, IsIn, operands
from lakebloom.tables.columns import format_name
from lakebloom.tuning import EMBEDDED_FILE_BYTES, EMBEDDED_VALUES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakebloom.predicate.prune.unit_filters import BoolArray
    from lakebloom.predicate.tree import Predicate
    from lakebloom.tables.columns import ColumnPath
    from lakebloom.tables.file_identity import TableFile

__all__ = ["groups_that_can_match"]

_NOT_PROBED = ("timestamp", "timestamp_ntz", "binary")
"""Filters of nanosecond columns have no hashes of microseconds; DuckDB once hashed texts instead of binary values."""


def groups_that_can_match(
    file: TableFile, predicate: Predicate, types: Mapping[ColumnPath, str]
) -> tuple[int, ...] | None:
    """Return the numbers of the row groups that can match; None for all of them."""
    if file.size_bytes < EMBEDDED_FILE_BYTES or not file.uri.startswith("file:"):
        return None
    kept = None
    for leaf in operands(predicate) if isinstance(predicate, And) else [predicate]:
        if isinstance(leaf, Equals | IsIn) and types.get(leaf.column, "binary") not in _NOT_PROBED:
            try:
                passed = _probed(file, leaf, types[leaf.column])
            except Exception:
                continue
            if passed is not None:
                kept = passed if kept is None else kept & passed
    return None if kept is None else tuple(np.flatnonzero(kept).tolist())


def _probed(file: TableFile, leaf: Equals | IsIn, column_type: str) -> BoolArray | None:
    # Imported here: most lookups meet no such file, and the reader of footers takes time to load.
    from lakebloom.parquet.reader import might_contain

    literals = [leaf.value] if isinstance(leaf, Equals) else leaf.values
    values = [literal for literal in literals if not literal.is_null]  # NULL equals nothing
    array = to_array(values, column_type) if 0 < len(values) <= EMBEDDED_VALUES else None
    return None if array is None else np.any(might_contain(file.uri, format_name(leaf.column), array), axis=1)
