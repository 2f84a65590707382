"""What to do next with an index: each step with the reason and the command."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lakebloom.index.maintain.filter_health import ColumnHealth
    from lakebloom.index.maintain.freshness import Freshness
    from lakebloom.index.reports import IndexRecord, VersionRecord

__all__ = ["Step", "next_steps"]

_MANY_SEGMENTS = 16
"""A question reads a row of each segment's tiles."""
_MANY_VERSIONS = 50
_WORSE = 2.0
_OF_UNITS_IN_VAIN = 1.0


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to do."""

    title: str
    why: str
    command: str


def next_steps(
    index: IndexRecord, fresh: Freshness | None, columns: Sequence[ColumnHealth], history: Sequence[VersionRecord]
) -> list[Step]:
    """Return what is worth doing, the most urgent first; nothing for an index that is as it should be."""
    if index.state == "deleted":
        why = "Queries do not use it. It can be brought back until it is vacuumed."
        return [Step("Restore this index, or remove it for good", why, f"lakebloom restore {index.name}")]
    return list(_steps(index, fresh, columns, history))


def _steps(
    index: IndexRecord, fresh: Freshness | None, columns: Sequence[ColumnHealth], history: Sequence[VersionRecord]
) -> Iterator[Step]:
    if fresh is not None:
        unknown = len(fresh.new) + len(fresh.stale)
        if unknown:
            why = f"{_files(unknown)} came or changed since; every query reads them in full."
            yield Step("Refresh the index", why, f"lakebloom refresh {index.name}")
        if fresh.missing:
            why = f"The table has lost {_files(len(fresh.missing))} that the index still keeps filters for."
            yield Step("Drop filters of files that are gone", why, f"lakebloom refresh {index.name} --mode full")
    if index.segments > _MANY_SEGMENTS:
        why = f"Each question reads a row in each of {index.segments:,} segments; merged, it reads few."
        yield Step("Merge small segments", why, f"lakebloom optimize {index.name}")
    for column in columns:
        if column.measured > _WORSE * column.promised or column.measured * column.units > _OF_UNITS_IN_VAIN:
            vain = column.measured * column.units
            why = f"A key of {column.column} that is nowhere reads {vain:.2g} units in vain, at {column.measured:.2g}."
            again = f"lakebloom create {index.name}_2 {index.source} -c {column.column} --fpp auto"
            yield Step(f"Build the filters of {column.column} anew with a lower rate", why, again)
    if len(history) > _MANY_VERSIONS:
        why = f"{len(history):,} versions are kept; old ones take room and nobody reads them."
        yield Step("Remove old versions", why, f"lakebloom vacuum {index.name}")


def _files(count: int) -> str:
    return f"{count:,} file{'s' * (count != 1)}"
