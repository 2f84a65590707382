"""A column to read of a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from lakebloom.tables.columns import ColumnPath

__all__ = ["ColumnSpec"]


class ColumnSpec(msgspec.Struct, frozen=True):
    """A column as files call it, with its Spark type (what Spark calls simpleString)."""

    path: ColumnPath
    type: str
    ids: tuple[int, ...] = ()
    """The ids of its parts, where the file is read by ids and its names mean nothing."""
