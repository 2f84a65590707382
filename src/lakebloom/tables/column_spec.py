"""A column to read of a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lakebloom.tables.columns import ColumnPath

__all__ = ["ColumnSpec"]


@dataclass(frozen=True, slots=True)
class ColumnSpec:
    """A column as files call it, with its Spark type (what Spark calls simpleString)."""

    path: ColumnPath
    type: str
    ids: tuple[int, ...] = ()
    """The ids of its parts, where the file is read by ids and its names mean nothing."""
