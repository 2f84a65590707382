"""Finding a column of the table in a file, the way Spark resolves names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakebloom.errors import ColumnNotFoundError, UnsupportedTypeError
from lakebloom.tables.columns import ColumnNames, format_name

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
        raise ColumnNotFoundError.ambiguous(
            format_name(wanted), [format_name(leaves[i]) for i in candidates], where="the file"
        )
    return candidates[0]


def _named(
    leaves: Sequence[Sequence[str]], candidates: Sequence[int], depth: int, part: str, case_sensitive: bool
) -> list[int]:
    here = dict.fromkeys((leaves[i][depth],) for i in candidates)
    names = ColumnNames(here, case_sensitive=case_sensitive)
    if not names.matches((part,)):
        return []
    (name,) = names.require((part,), where="the file")
    return [i for i in candidates if leaves[i][depth] == name]


def _refuse(path: Sequence[str], mismatch: str) -> None:
    raise UnsupportedTypeError(
        f"{format_name(path)} is {mismatch}",
        hint="rewrite the file with the table's schema; until then it has no filter",
    )
