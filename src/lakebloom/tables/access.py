"""How the files of a table are opened, and how columns are found in them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

__all__ = ["LOCAL", "TableAccess"]


class TableAccess(msgspec.Struct, frozen=True):
    """What every reader of a table's files needs beside their names."""

    options: Mapping[str, str] = {}  # each gets its own
    """Those of an object store; local disk needs none. They may hold secrets, and are not shown."""
    case_sensitive: bool = False
    """Whether names of columns are compared with regard to case, as they were when the table was indexed."""
    name_mapping: str | None = None
    """Which ids the names of files without ids mean (``name_mapping``), where a table says that."""

    def __repr__(self) -> str:
        return f"TableAccess(case_sensitive={self.case_sensitive}, name_mapping={self.name_mapping!r})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """Return what rich shows, in tracebacks too: msgspec's own method names all fields."""
        return [("case_sensitive", self.case_sensitive), ("name_mapping", self.name_mapping)]


LOCAL = TableAccess()
"""That of files on local disk, whose columns Spark finds by default."""
