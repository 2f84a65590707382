"""How the files of a table are opened, and how columns are found in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["LOCAL", "TableAccess"]


@dataclass(frozen=True, slots=True)
class TableAccess:
    """What every reader of a table's files needs beside their names."""

    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Those of an object store; local disk needs none. They may hold secrets, and are not shown."""
    case_sensitive: bool = False
    """Whether names of columns are compared with regard to case, as they were when the table was indexed."""
    name_mapping: str | None = None
    """Which ids the names of files without ids mean (``name_mapping``), where a table says that."""


LOCAL = TableAccess()
"""That of files on local disk, whose columns Spark finds by default."""
