"""What to do next with an index: each step with the reason and the command."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakebloom.tuning import EXPECTED_FALSE_POSITIVES, MANY_SEGMENTS, MANY_VERSIONS, WORSE_FPP

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lakebloom.index.maintain.filter_health import ColumnHealth
    from lakebloom.index.maintain.freshness import Freshness
    from lakebloom.index.reports import IndexRecord, VersionRecord

__all__ = ["Step", "next_steps"]


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to do."""

    title: str
    why: str
    command: str


def next_steps(
    index: IndexRecord, fresh: Freshness | None, columns: Sequence[ColumnHealth], history: Sequence[VersionRecord]
) -> list[Step]:
    """Return the steps, the most urgent first; none for an index in good state."""
    if index.state == "deleted":
        why = "Queries do not use it. It can be restored until it is vacuumed."
        return [Step("Restore this index, or remove it for good", why, f"lakebloom restore {index.name}")]
    return list(_steps(index, fresh, columns, history))


def _steps(
    index: IndexRecord, fresh: Freshness | None, columns: Sequence[ColumnHealth], history: Sequence[VersionRecord]
) -> Iterator[Step]:
    if fresh is not None:
        unindexed = len(fresh.new) + len(fresh.stale)
        if unindexed:
            why = f"New or changed since it was indexed: {_files(unindexed)}. Every query reads these in full."
            yield Step("Refresh the index", why, f"lakebloom refresh {index.name}")
        if fresh.missing:
            why = f"The index still has filters of {_files(len(fresh.missing))} that the table no longer has."
            yield Step("Drop filters of files that are gone", why, f"lakebloom refresh {index.name} --mode full")
    if index.segments > MANY_SEGMENTS:
        why = f"Each lookup reads a row in each of {index.segments:,} segments; after merging it reads fewer."
        yield Step("Merge small segments", why, f"lakebloom optimize {index.name}")
    for column in columns:
        false_positives = column.fpp_measured * column.units
        if column.fpp_measured > WORSE_FPP * column.fpp or false_positives > EXPECTED_FALSE_POSITIVES:
            why = (
                f"A lookup of a key that {column.column} does not hold reads {false_positives:.2g} unnecessary units: "
                f"the false-positive rate is {column.fpp_measured:.2g}."
            )
            again = f"lakebloom create {index.name}_2 {index.source} -c {column.column} --fpp auto"
            yield Step(f"Build the filters of {column.column} again with a lower rate", why, again)
    if len(history) > MANY_VERSIONS:
        why = f"{len(history):,} versions are stored; old versions take space."
        yield Step("Remove old versions", why, f"lakebloom vacuum {index.name}")


def _files(count: int) -> str:
    return f"{count:,} file{'s' * (count != 1)}"
