"""Values of partition columns, from the names of a file's directories: ``…/day=2024-01-01/k=a%2Fb/part-0.parquet``.

The values are strings, as they stand in the path; what type a partition column has is the table's business.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lakebloom.errors import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["partition_names", "partition_values", "unescape_name"]

_NULL = "__HIVE_DEFAULT_PARTITION__"
_ESCAPED = re.compile("%([0-9A-Fa-f]{2})")


def partition_values(uri: str, base_uris: Sequence[str], names: Sequence[str]) -> dict[str, str | None]:
    """The values of the partition columns `names` for the file at a canonical URI; None is NULL.

    `base_uris` are the table's locations, canonical too: directories above the one that holds the file belong to no
    column. Names match as Spark matches them, whatever their case; an exact match comes first. Raises
    InvalidArgumentError for a file outside the table, or in no directory of one of the columns.

    >>> partition_values("file:///t/day=1/k=a%2Fb/x.parquet", ["file:///t"], ["k", "day"])
    {'k': 'a/b', 'day': '1'}
    """
    in_path = dict(_columns(_directories_below(uri, base_uris)))
    any_case = {name.lower(): name for name in in_path}
    values: dict[str, str | None] = {}
    for name in names:
        written = name if name in in_path else any_case.get(name.lower())
        if written is None:
            raise InvalidArgumentError(
                f"{uri} is not in a directory of the partition column {name}",
                found=", ".join(in_path) or "no partition directories",
                hint="check the table's base locations",
            )
        values[name] = in_path[written]
    return values


def partition_names(uri: str, base_uris: Sequence[str]) -> tuple[str, ...]:
    """The partition columns that the directories of a table's file name, the outermost first.

    >>> partition_names("file:///t/day=1/k=a/x.parquet", ["file:///t"])
    ('day', 'k')
    """
    return tuple(dict(_columns(_directories_below(uri, base_uris))))


def unescape_name(text: str) -> str:
    """Undo Spark's escaping of a directory name: each %XX is the character of that number.

    >>> unescape_name("a%2Fb 100%")
    'a/b 100%'
    """
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)


def _directories_below(uri: str, base_uris: Sequence[str]) -> list[str]:
    # The innermost base counts, as it does for Spark; a base may also be the file itself.
    bases = [base for base in base_uris if uri == base or uri.startswith(base.rstrip("/") + "/")]
    if not bases:
        raise InvalidArgumentError(
            f"{uri} is not a file of this table",
            found=f"the base locations {', '.join(base_uris) or '(none)'}",
            hint="give the table's base locations in their canonical form",
        )
    return uri[len(max(bases, key=len)) :].strip("/").split("/")[:-1]


def _columns(directories: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    for directory in directories:
        name, equals, value = directory.partition("=")
        if equals:
            yield unescape_name(name), None if value == _NULL else unescape_name(value)
