"""The cost and the expected gain of an index, estimated from a few footers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakebloom.display.tables import Printable, amount
from lakebloom.index.build import estimate
from lakebloom.tables.columns import format_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakebloom.index.units import Shape
    from lakebloom.store.records import ConfigRecord, TableRecord
    from lakebloom.tables.file_identity import TableFile


@dataclass(frozen=True, slots=True)
class PriceTag(Printable):
    """A price tag: what a build reads and writes, and how much one key will skip.

    The size is that of columns without repeated values; if values repeat, the index is smaller. 0 means that only a
    scan can tell: rows, bytes to read and index size of files that are not Parquet.
    """

    name: str
    source: str
    columns: tuple[str, ...]
    files: int
    source_bytes: int
    bytes_to_read: int
    rows: int
    units: int
    granularity: str | int
    fpp: float
    index_bytes: int
    expected_skip: float
    """The share of units that a lookup of one key skips, if one unit holds the key."""

    @classmethod
    def of(
        cls, config: ConfigRecord, table: TableRecord, files: Sequence[TableFile], shape: Shape, fpp: float
    ) -> PriceTag:
        """Return the price of an index with this configuration over a table of this shape."""
        units = max(1, round(shape.units))
        known = shape.rows > 0 or config.expected_items is not None
        filters = estimate.filter_bytes(shape, len(config.columns), fpp, config.expected_items) if known else 0
        return cls(
            name=config.name,
            source=table.name or ", ".join(table.locations),
            columns=tuple(format_name(column.path) for column in config.columns),
            files=len(files),
            source_bytes=sum(file.size_bytes for file in files),
            bytes_to_read=round(shape.column_bytes),
            rows=round(shape.rows),
            units=units,
            granularity=config.granularity,
            fpp=fpp,
            index_bytes=filters,
            expected_skip=(units - 1) * (1 - fpp) / units,
        )

    def shown(self) -> list[tuple[str, str]]:
        """Return the fields as (name, text)."""
        unit = {"file": "files", "row_group": "row groups"}.get(str(self.granularity), "zones")
        unnecessary = (self.units - 1) * self.fpp
        return [
            ("index", f"{self.name} on {', '.join(self.columns)}"),
            ("source", self.source),
            ("files", f"{self.files:,}, {amount(self.source_bytes)}"),
            ("to read", f"about {amount(self.bytes_to_read)}" if self.bytes_to_read else "all files, by a Spark scan"),
            ("filters", f"{self.units:,}, one for each of the {unit}, at a rate of {self.fpp:.3g}"),
            ("index size", _size(self.index_bytes)),
            (
                "one key",
                f"skips {self.expected_skip:.2%} of {self.units:,} {unit} if one holds it; "
                f"{unnecessary:.2g} unnecessary reads",
            ),
        ]


def _size(index_bytes: int) -> str:
    return f"about {amount(index_bytes)}, less where values repeat" if index_bytes else "known after the scan"
