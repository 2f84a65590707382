"""The cost and the expected gain of an index, estimated from a few footers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lakebloom.display.tables import Printable, amount
from lakebloom.index.build import estimate
from lakebloom.sbbf import sizing
from lakebloom.tables.columns import format_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakebloom.index.units import Shape
    from lakebloom.store.records import ConfigRecord, Granularity, TableRecord
    from lakebloom.tables.file_identity import TableFile

_UNITS = {"file": "files", "row_group": "row groups", "page": "page ranges"}


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
    index_bytes_by_file: int = 0
    """The size with one filter for each file instead."""

    @classmethod
    def of(
        cls, config: ConfigRecord, table: TableRecord, files: Sequence[TableFile], shape: Shape, fpp: float
    ) -> PriceTag:
        """Return the price of an index with this configuration over a table of this shape."""
        units = max(1, round(shape.units))
        known = shape.rows > 0 or config.expected_items is not None
        filters = estimate.filter_bytes(shape, len(config.columns), fpp, config.expected_items) if known else 0
        whole = replace(shape, units=len(files))
        file_fpp = sizing.auto_fpp(len(files)) if config.fpp is None else fpp
        return cls(
            name=config.name,
            source=table.name or ", ".join(table.locations),
            columns=tuple(format_name(column.path) for column in config.columns),
            files=len(files),
            source_bytes=sum(file.size_bytes for file in files),
            bytes_to_read=round(shape.column_bytes),
            rows=round(shape.rows),
            units=units,
            granularity=_granularity(config, units, len(files)),
            fpp=fpp,
            index_bytes=filters,
            expected_skip=(units - 1) * (1 - fpp) / units,
            index_bytes_by_file=(
                estimate.filter_bytes(whole, len(config.columns), file_fpp, config.expected_items) if known else 0
            ),
        )

    def shown(self) -> list[tuple[str, str]]:
        """Return the fields as (name, text)."""
        unit = _UNITS.get(str(self.granularity), "zones")
        unnecessary = (self.units - 1) * self.fpp
        return [
            ("index", f"{self.name} on {', '.join(self.columns)}"),
            ("source", self.source),
            ("files", f"{self.files:,}, {amount(self.source_bytes)}"),
            ("to read", f"about {amount(self.bytes_to_read)}" if self.bytes_to_read else "all files, by a Spark scan"),
            ("filters", f"{self.units:,}, one for each of the {unit}, at a rate of {self.fpp:.3g}"),
            ("index size", self._size()),
            (
                "one key",
                f"skips {self.expected_skip:.2%} of {self.units:,} {unit} if one holds it; "
                f"{unnecessary:.2g} unnecessary reads",
            ),
        ]

    def _size(self) -> str:
        if not self.index_bytes:
            return "known after the scan"
        about = f"about {amount(self.index_bytes)}, less where values repeat"
        keys = self.rows * len(self.columns)
        if self.granularity == "file" or not keys:
            return about
        bits, by_file = 8 * self.index_bytes / keys, 8 * self.index_bytes_by_file / keys
        return f"{about}: {bits:.0f} bits a key, with one filter a file {by_file:.0f}"


def _granularity(config: ConfigRecord, units: int, files: int) -> Granularity:
    if config.granularity != "auto":
        return config.granularity
    return "file" if units <= files else "page"
