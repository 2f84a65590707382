"""Finding a column of the table in a file, the way Spark resolves names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakebloom.errors import ColumnNotFoundError, UnsupportedTypeError
from lakebloom.tables.columns import format_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakebloom.tables.columns import ColumnPath

__all__ = ["find_leaf"]


def find_leaf(leaves: Sequence[Sequence[str]], wanted: ColumnPath, *, case_sensitive: bool) -> int | None:
    """Return which of a file's leaves is the column `wanted`, or None if the file has no such column.

    `leaves` are the paths of all leaves, in the order of the file. Raises ColumnNotFoundError where several names fit,
    and UnsupportedTypeError where one is a group in the file and a column in the table, or the other way round.

    >>> find_leaf([["id"], ["s", "K"]], ("S", "k"), case_sensitive=False)
    1
    """
    candidates = list(range(len(leaves)))
    for depth, part in enumerate(wanted):
        if any(len(leaves[i]) == depth for i in candidates):
            _refuse(wanted[:depth], "a plain column in the file and a struct in the table")
        candidates = _named(leaves, candidates, depth, part, case_sensitive)
        if not candidates:
            return None
    if any(len(leaves[i]) > len(wanted) for i in candidates):
        _refuse(wanted, "a group of columns in the file and a plain one in the table")
    if len(candidates) > 1:
        raise _ambiguous(wanted, [leaves[i][-1] for i in candidates])
    return candidates[0]


def _named(
    leaves: Sequence[Sequence[str]], candidates: Sequence[int], depth: int, part: str, case_sensitive: bool
) -> list[int]:
    if case_sensitive:
        return [i for i in candidates if leaves[i][depth] == part]
    folded = part.lower()
    found = [i for i in candidates if leaves[i][depth].lower() == folded]
    names = {leaves[i][depth] for i in found}
    if len(names) > 1:
        raise _ambiguous((part,), sorted(names))
    return found


def _ambiguous(wanted: Sequence[str], names: Sequence[str]) -> ColumnNotFoundError:
    return ColumnNotFoundError(
        f"several columns of the file are called {format_name(wanted)}",
        found=", ".join(names),
        hint="rewrite the file with different names, or set spark.sql.caseSensitive",
    )


def _refuse(path: Sequence[str], mismatch: str) -> None:
    raise UnsupportedTypeError(
        f"{format_name(path)} is {mismatch}",
        hint="rewrite the file with the table's schema; until then it has no filter",
    )
