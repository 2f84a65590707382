"""The report of a create or refresh."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from lakebloom.display.tables import Printable
from lakebloom.index.reports import NOTHING_TO_DO
from lakebloom.tables.columns import format_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakebloom.index.build.plan import BuildResult, ReadAnyway, RejectedFile
    from lakebloom.store.records import Commit

__all__ = ["BuildReport"]


@dataclass(frozen=True, slots=True, repr=False)
class BuildReport(Printable):
    """What a create or refresh built."""

    name: str
    version: int
    committed: bool
    files: int
    units: int
    rows: int
    fpp: float
    bytes_read: int
    bytes_written: int
    skipped: tuple[RejectedFile, ...] = ()
    seconds: dict[str, float] = field(default_factory=dict)
    filters_imported: int = 0
    """How many filters were imported from the files (``from_embedded``)."""
    read_anyway: tuple[ReadAnyway, ...] = ()
    """The columns whose filters could not be imported, and why."""
    left_out: tuple[str, ...] = ()
    """What could not be built, and why."""

    def shown(self) -> list[tuple[str, str]]:
        """Return the fields as (name, text), those about ``from_embedded`` only if it was used."""
        if not self.committed:
            return [("name", self.name), ("version", f"{self.version:,}"), ("result", self.result)]
        *rows, imported, anyway, left_out = Printable.shown(self)
        rows += [imported, anyway] if self.filters_imported or self.read_anyway else []
        return [*rows, left_out] if self.left_out else rows

    @property
    def result(self) -> str:
        """The result in words."""
        if self.committed:
            return "committed"
        if self.skipped:
            return f"nothing indexed: none of {len(self.skipped):,} new files could be read"
        return NOTHING_TO_DO

    @classmethod
    def of(cls, commit: Commit, result: BuildResult, seconds: dict[str, float]) -> BuildReport:
        """Return the report of a build that was committed as ``commit``."""
        segments = result.segments
        return cls(
            name=commit.config.name,
            version=commit.version,
            committed=True,
            files=sum(segment.num_files for segment in segments),
            units=sum(segment.num_units for segment in segments),
            rows=sum(segment.num_rows for segment in segments),
            fpp=max((segment.fpp for segment in segments), default=0.0),
            bytes_read=sum(shard.bytes_read for shard in result.shards),
            bytes_written=sum(segment.size_bytes for segment in segments),
            skipped=result.rejected,
            seconds=dict(seconds),
            filters_imported=result.filters_imported,
            read_anyway=result.read_anyway,
            left_out=_left_out(commit),
        )

    def with_seconds(self, seconds: Mapping[str, float]) -> BuildReport:
        """Return the report with the times of these phases."""
        return replace(self, seconds=dict(seconds))

    @classmethod
    def unchanged(
        cls, commit: Commit, seconds: dict[str, float], skipped: tuple[RejectedFile, ...] = ()
    ) -> BuildReport:
        """Return the report of a refresh that had nothing to do, or could read no file."""
        return cls(commit.config.name, commit.version, False, 0, 0, 0, 0.0, 0, 0, skipped, dict(seconds))


def _left_out(commit: Commit) -> tuple[str, ...]:
    built = {record.column for record in commit.global_filters}
    return tuple(
        f"{format_name(column.path)} has no global filter: it would be full at spark.lakebloom.global.maxBytes"
        for number, column in enumerate(commit.config.columns)
        if commit.config.global_filter and number not in built
    )
