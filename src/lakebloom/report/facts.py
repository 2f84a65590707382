"""Everything that the page shows, as records. The numbers are those of the API; the template computes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakebloom.errors import LakebloomError
from lakebloom.index.current_table import recorded_table
from lakebloom.index.lookup.explain_reads import explain_reads
from lakebloom.index.maintain.filter_health import ColumnHealth, SegmentHealth, column_health, segment_health
from lakebloom.index.maintain.freshness import Freshness, freshness
from lakebloom.index.maintain.stored_sizes import StoredColumn, stored_columns
from lakebloom.index.query.pruning import prune
from lakebloom.index.reports import IndexRecord, VersionRecord, history_of
from lakebloom.index.snapshot import Snapshot
from lakebloom.report.next_steps import Step, next_steps

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from lakebloom.index.catalog import Catalog
    from lakebloom.index.current_table import CurrentTable
    from lakebloom.index.query.scan_reports import ScanReport
    from lakebloom.predicate.reasons import Reason
    from lakebloom.predicate.tree import Predicate
    from lakebloom.store.records import TableRecord
    from lakebloom.tables.file_identity import TableFile

__all__ = ["Facts", "SkipMap", "gather"]


@dataclass(frozen=True, slots=True)
class SkipMap:
    """Which files one condition reads and skips."""

    scan: ScanReport
    files: tuple[TableFile, ...]
    """In the order of the scan's states."""
    units: int
    """All units of the index, including those of files that the table no longer has."""
    units_kept: int
    unanswered: tuple[tuple[str, Reason], ...] = ()
    """Parts of the condition that no filter could answer, each with the reason."""


@dataclass(frozen=True, slots=True)
class Facts:
    """An index, as the page shows it."""

    index: IndexRecord
    history: tuple[VersionRecord, ...]
    columns: tuple[ColumnHealth, ...]
    segments: tuple[SegmentHealth, ...]
    freshness: Freshness | None
    """None where the table cannot be listed; then ``problem`` says why."""
    problem: str
    stored: tuple[StoredColumn, ...]
    skip_map: SkipMap | None
    steps: tuple[Step, ...]
    location: str

    @property
    def fpp(self) -> float:
        """The mean rate that filters were sized for."""
        return _mean([column.fpp for column in self.columns], [column.units for column in self.columns])

    @property
    def fpp_measured(self) -> float:
        """The mean rate that their bits show."""
        return _mean([column.fpp_measured for column in self.columns], [column.units for column in self.columns])

    @property
    def false_positives(self) -> float:
        """How many units a query for one absent key is expected to read."""
        return max((column.fpp_measured * column.units for column in self.columns), default=0.0)

    @property
    def filter_bytes(self) -> int:
        """The size of all filters of units."""
        return sum(column.size_bytes for column in self.columns)


def gather(
    catalog: Catalog,
    name: str,
    predicate: Predicate | None = None,
    current: Callable[[Snapshot], CurrentTable] = recorded_table,
) -> Facts:
    """Read what the page needs: the index's log, a part of its bits, a listing of the table, and a few footers.

    ``catalog`` is that of a Lakebloom; ``current`` returns the table of a snapshot as it is now. Raises the errors of
    ``Lakebloom.index``, and CorruptIndexError.
    """
    stored, options = catalog.index(name), catalog.options
    snapshot = Snapshot(stored.storage, stored.log.newest())
    index, history = IndexRecord.of(snapshot.commit), tuple(history_of(stored.log))
    fresh, problem = _fresh(snapshot, options, current)
    files = fresh.listed if fresh is not None else tuple(snapshot.files)
    segments = tuple(segment_health(snapshot))
    columns = tuple(column_health(segments))
    return Facts(
        index=index,
        history=history,
        columns=columns,
        segments=segments,
        freshness=fresh,
        problem=problem,
        stored=tuple(stored_columns(snapshot.commit, files, options)),
        skip_map=None if predicate is None else _skip_map(snapshot, current(snapshot).record, files, predicate),
        steps=tuple(next_steps(index, fresh, columns, history)),
        location=catalog.location,
    )


def _fresh(
    snapshot: Snapshot, options: Mapping[str, str], current: Callable[[Snapshot], CurrentTable]
) -> tuple[Freshness | None, str]:
    try:
        return freshness(snapshot, options, current), ""
    except LakebloomError as error:
        return None, error.message


def _skip_map(snapshot: Snapshot, table: TableRecord, files: Sequence[TableFile], predicate: Predicate) -> SkipMap:
    scan = explain_reads(snapshot, table, predicate, files)
    unanswered = tuple((part.text, reason) for part, reason in scan.unanswered)
    units = sum(int(current.sum()) for current in snapshot.current)
    kept = prune(snapshot, predicate, table=table).by_segment()
    return SkipMap(scan, tuple(files), units, sum(len(numbers) for _, numbers in kept), unanswered)


def _mean(values: list[float], weights: list[int]) -> float:
    return sum(value * weight for value, weight in zip(values, weights, strict=True)) / max(1, sum(weights))
