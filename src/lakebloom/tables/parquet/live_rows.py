"""Which rows of a Parquet file count, where a table's log says that some are deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from lakebloom.locks import new_lock
from lakebloom.tables.parquet.views import rows_without_columns
from lakebloom.tuning import KEPT_VECTORS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lakebloom.sbbf.kernels import BoolArray
    from lakebloom.tables.formats.table_snapshot import Deletes, RowDeletes
    from lakebloom.tables.parquet.pages.row_ranges import Numbers

__all__ = ["KeptDeletes", "LiveRows"]


class LiveRows:
    """The rows of one file that count."""

    def __init__(self, deletes: RowDeletes | None, row_starts: Sequence[int]) -> None:
        """``row_starts`` are the numbers of the first rows of its row groups."""
        self._deletes, self._row_starts = deletes, row_starts

    def mask(self, row_group: int, numbers: Numbers) -> BoolArray | None:
        """Tell for each of some rows of a row group, by its number in it, whether it counts; None: all do."""
        if self._deletes is None:
            return None
        return ~self._deletes.deleted(numbers + self._row_starts[row_group])

    def among(self, row_group: int, numbers: Numbers) -> Numbers:
        """Return those of some rows of a row group, by their numbers in it, that count."""
        live = self.mask(row_group, numbers)
        return numbers if live is None else numbers[live]

    def of_table(self, row_group: int, numbers: Numbers, table: pa.Table) -> pa.Table:
        """Return the rows that count of a table, whose rows have these numbers in the row group."""
        live = self.mask(row_group, numbers)
        if live is None:
            return table
        if not table.num_columns:  # Arrow forgets the number of rows
            return rows_without_columns(int(live.sum()))
        return table.filter(pa.array(live))


class KeptDeletes:
    """Deleted rows that were read before. A vector never changes: a file with other deleted rows has another one."""

    def __init__(self) -> None:
        self._known: dict[Deletes, RowDeletes] = {}
        self._lock = new_lock()

    def of(self, deletes: Deletes, options: Mapping[str, str]) -> RowDeletes:
        """Return the deleted rows, open."""
        found = self._known.get(deletes)
        if found is None:
            found = deletes.open(options)
            with self._lock:
                while len(self._known) >= KEPT_VECTORS:
                    del self._known[next(iter(self._known))]
                self._known[deletes] = found
        return found
