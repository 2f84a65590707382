"""Builds one segment from units. All ways of reading a table end here.

``begin`` a unit, ``add`` the hashes, null counts and bounds of its columns, ``end`` it; ``finish`` writes the unit
table. If the plan has global filters, the same hashes are inserted into a partial one for each column.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakebloom.index.build.tile_builder import TileBuilder
from lakebloom.index.build.value_bounds import UNKNOWN, Bounds, joined
from lakebloom.index.units import Span
from lakebloom.sbbf.filter import Sbbf
from lakebloom.store.segments import SegmentWriter
from lakebloom.store.unit_table import ColumnFacts, Unit

if TYPE_CHECKING:
    from lakebloom.index.build.plan import BuildPlan
    from lakebloom.sbbf.kernels import HashArray
    from lakebloom.storage import Storage
    from lakebloom.store.records import SegmentRecord
    from lakebloom.tables.file_identity import TableFile

_FULL = 1 - 1e-9


class SegmentBuilder:
    """Collects the units of one segment."""

    def __init__(self, plan: BuildPlan, storage: Storage, shard: int) -> None:
        self._plan = plan
        self._writer = SegmentWriter(storage, plan.segment_id(shard), [column.path for column in plan.columns])
        self._tiles = TileBuilder(self._writer, len(plan.columns), plan.fpp, plan.expected_items)
        self._null_counts: list[int] = []
        self._bounds: list[list[Bounds]] = []
        self._imported_rates: list[list[float]] = [[] for _ in plan.columns]
        self.units: list[Unit] = []
        self.pages: bytes | None = None
        """Where pages of the file lie whose first unit is ended next; None if that is not recorded."""
        self._num_files = 0
        wanted = 0 if plan.global_blocks is None else len(plan.columns)
        self.global_filters = [Sbbf(plan.global_blocks or 1) for _ in range(wanted)]

    def begin(self) -> None:
        """Start a unit. Discards one that was begun and not ended."""
        self._null_counts = [0] * len(self._plan.columns)
        self._bounds = [[] for _ in self._plan.columns]
        for column in range(len(self._plan.columns)):
            self._tiles.begin(len(self.units), column)

    def add(
        self, column: int, hashes: HashArray, null_count: int, rows_in_unit: int, bounds: Bounds | None = UNKNOWN
    ) -> None:
        """Add values of a column to the unit: their hashes, the number of NULLs, and the bounds of the values.

        ``bounds`` is None if there are no values but NULLs, or if ``widen`` is told.
        """
        self._null_counts[column] += null_count
        if bounds is not None and len(hashes):
            self._bounds[column].append(bounds)
        self._tiles.add(column, hashes, rows_in_unit)
        if self.global_filters:
            self.global_filters[column].insert_hashes(hashes)

    def widen(self, column: int, bounds: Bounds) -> None:
        """Add the bounds of values that were, or will be, added to the unit without."""
        self._bounds[column].append(bounds)

    def take(self, column: int, filter: Sbbf, null_count: int, bounds: Bounds | None = UNKNOWN) -> None:
        """Give the unit an imported filter instead of values. ``bounds`` is None if all values are NULL."""
        self._null_counts[column] = null_count
        self._bounds[column] = [] if bounds is None else [bounds]
        self._tiles.take(column, filter)
        self._imported_rates[column].append(filter.fpp)

    def end(self, file: TableFile, span: Span) -> None:
        """Finish the unit."""
        if not self.units or self.units[-1].file != file:
            if self.pages is not None:
                self._writer.pages.add(self._num_files, self.pages)
            self._num_files += 1
        facts = tuple(map(_facts, self._null_counts, self._bounds))
        self.units.append(
            Unit(
                file,
                span.row_start,
                span.row_count,
                span.row_group_start,
                span.row_group_count,
                facts,
                span.byte_start,
                span.byte_count,
            )
        )
        for column in range(len(facts)):
            self._tiles.end(column)

    def add_empty(self, file: TableFile) -> None:
        """Add a file without rows as a unit without values."""
        self.begin()
        self.end(file, Span(0, 0))

    def abandon(self) -> None:
        """Delete the files of a segment that will not be finished. Vacuum removes what cannot be deleted here."""
        self._writer.abandon()

    def finish(self) -> SegmentRecord | None:
        """Write the remaining tiles and the unit table; None if there are no units."""
        self._tiles.flush()
        if not self.units:
            return None
        return self._writer.finish(self.units, [column.type for column in self._plan.columns], self._rate())

    @property
    def filters_imported(self) -> int:
        """How many filters were imported."""
        return sum(map(len, self._imported_rates))

    def _rate(self) -> float:
        """Return the highest rate of a column: the planned one, or that of the imported filters' bits."""
        units = max(1, len(self.units))
        planned = self._plan.fpp
        rates = (sum(imported) + (units - len(imported)) * planned for imported in self._imported_rates)
        return min(max(planned, *(rate / units for rate in rates)), _FULL)


def _facts(null_count: int, parts: list[Bounds]) -> ColumnFacts:
    bounds = joined(parts) or UNKNOWN
    return ColumnFacts(null_count, min=bounds.low, max=bounds.high)
