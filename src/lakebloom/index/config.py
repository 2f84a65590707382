"""The configuration of an index, checked when it is created."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from lakebloom.errors import InvalidArgumentError
from lakebloom.index.arguments import kind_of, typed_arguments
from lakebloom.sbbf.sizing import rate_argument, whole
from lakebloom.tables.columns import ColumnPath, format_name, parse_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakebloom.store.records import ConfigRecord, Granularity

_NAMED = ("auto", "file", "row_group", "page")
_GRANULARITIES = {name: f'did you mean granularity="{name}"?' for name in _NAMED} | {
    "rowgroup": 'did you mean granularity="row_group"?'
}
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")


@typed_arguments
@dataclass(frozen=True, slots=True)
class BloomIndexConfig:
    """The configuration of a Bloom index.

    ``columns`` are names in Spark's convention (``a.b`` is a field of a struct); each column gets its own filters.
    ``fpp`` is the false-positive rate of one filter. "auto" computes it from the number of units, so that a lookup
    opens 0.25 unnecessary units on average. ``expected_items`` is the number of distinct values per unit for which
    filters are sized; by default the values are counted. ``granularity`` is what one filter covers: a "file", a
    "row_group", one or more "page"s of the first column with at least 16,384 rows, or a number of rows. "auto" is pages
    for files in which several such units fit, as long as the index stays small, and otherwise files.
    ``global_filter`` also builds one filter over each whole column, for joins.
    ``allow_plaintext_filters`` allows indexing columns that are encrypted in Parquet files, read by Spark with the
    session's keys. The filters are not encrypted: everyone who can read the index can test which values a file may
    hold (docs/SECURITY.md).

    >>> BloomIndexConfig("by_user", ["user_id"]).granularity
    'auto'
    """

    name: str
    columns: Sequence[str]
    fpp: float | Literal["auto"] = "auto"
    expected_items: int | None = None
    granularity: Granularity = "auto"
    global_filter: bool = False
    allow_plaintext_filters: bool = False

    def __post_init__(self) -> None:
        require_name(self.name)
        self._set("columns", _column_names(self.columns))
        if not isinstance(self.fpp, str) or self.fpp != "auto":
            self._set("fpp", rate_argument(self.fpp))
        if self.expected_items is not None:
            self._set("expected_items", _count("expected_items", self.expected_items))
        if not isinstance(self.granularity, str) or self.granularity not in _NAMED:
            if isinstance(self.granularity, (bool, str)) or not hasattr(self.granularity, "__index__"):
                raise InvalidArgumentError(
                    'granularity must be "auto", "file", "row_group", "page" or a number of rows',
                    found=kind_of(self.granularity),
                    hint=_GRANULARITIES.get(str(self.granularity).lower().replace(" ", "_").rstrip("s"), ""),
                )
            self._set("granularity", _count("granularity", self.granularity))
        for name in ("global_filter", "allow_plaintext_filters"):
            if not isinstance(getattr(self, name), bool):
                raise InvalidArgumentError(f"{name} must be True or False", found=getattr(self, name))

    @classmethod
    def lance(
        cls,
        name: str,
        columns: Sequence[str],
        fpp: float | Literal["auto"] = 0.00057,
        expected_items: int | None = None,
        granularity: Granularity = 8192,
        global_filter: bool = False,
        allow_plaintext_filters: bool = False,
    ) -> BloomIndexConfig:
        """Return a configuration with the zones of a Lance index: one filter for 8192 rows, at a rate of 0.00057.

        All defaults can be overridden by keyword.

        >>> zones = BloomIndexConfig.lance("by_user", ["user_id"])
        >>> zones.granularity, zones.fpp
        (8192, 0.00057)
        """
        return cls(name, columns, fpp, expected_items, granularity, global_filter, allow_plaintext_filters)

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    @property
    def paths(self) -> list[ColumnPath]:
        """The columns as tuples of parts."""
        return [parse_name(column) for column in self.columns]


def config_of(record: ConfigRecord) -> BloomIndexConfig:
    """Return a recorded configuration as a BloomIndexConfig. Raises InvalidArgumentError for an invalid one."""
    return BloomIndexConfig(
        record.name,
        [format_name(column.path) for column in record.columns],
        "auto" if record.fpp is None else record.fpp,
        record.expected_items,
        record.granularity,
        record.global_filter,
    )


def _column_names(columns: Sequence[str]) -> tuple[str, ...]:
    names = (columns,) if isinstance(columns, str) else tuple(columns)
    if not names:
        raise InvalidArgumentError("an index needs at least one column", found="none", hint='columns=["user_id"]')
    for name in names:
        if not isinstance(name, str):
            raise InvalidArgumentError("a column name must be a string", found=name, hint='columns=["user_id"]')
    paths = [parse_name(name) for name in names]
    repeated = sorted({name for name, path in zip(names, paths, strict=True) if paths.count(path) > 1})
    if repeated:
        raise InvalidArgumentError("a column can be indexed only once", found=f"{', '.join(repeated)} more than once")
    return names


def _count(name: str, value: int) -> int:
    """Return a number of at least one as a Python int: numpy's integers cannot be written to the log."""
    if isinstance(value, bool):
        raise InvalidArgumentError(f"{name} must be a whole number", found=value)
    return whole(name, value, least=1)


def is_name(name: str) -> bool:
    """Tell whether an index can have this name."""
    return _NAME.fullmatch(name) is not None


def require_name(name: object) -> str:
    """Return a legal name of an index. It is one segment of a path and never a path itself."""
    if not isinstance(name, str):
        hint = 'pass a string such as "by_user"'
        raise InvalidArgumentError("an index name is a string", found=kind_of(name), hint=hint)
    if not _NAME.fullmatch(name):
        raise InvalidArgumentError(
            "an index name has letters, digits, '_', '-' and '.', does not start with '.' or '-', at most 128 of them",
            found=name,
            hint="choose a name such as events_by_user",
        )
    return name
