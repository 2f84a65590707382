"""Optimizing, deleting, restoring, vacuuming, verifying and repairing indexes."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING

from lakebloom.errors import (
    InvalidArgumentError,
)
from lakebloom.lake.building import Building

# Modules that only building and maintaining need are imported where they are used, so that a lookup starts sooner.

if TYPE_CHECKING:
    from lakebloom.display.progress import ProgressOption
    from lakebloom.index.build.report import BuildReport
    from lakebloom.index.maintain.repair import RepairReport, Salvage
    from lakebloom.index.maintain.vacuum import VacuumReport
    from lakebloom.index.maintain.verify import VerifyReport
    from lakebloom.index.reports import OperationReport

__all__ = ["Maintaining"]


class Maintaining(Building):
    """Maintains indexes."""

    def optimize_index(self, name: str, *, progress: ProgressOption = None) -> OperationReport:
        """Merge segments into few wide ones. Reads no data files. ``progress`` is that of ``create_index``.

        With a session, a large merge is a Spark job; without one it runs here, in bounded memory.
        """
        from lakebloom.index.maintain.optimize import optimize_index

        run = None
        if self._spark is not None:
            from lakebloom.spark.merge import spark_merger

            run = spark_merger(self._spark, self._catalog.index(name))
        with self._shown(f"optimizing {name}", progress) as tell:
            return optimize_index(self._catalog, name, tell, run)

    def delete_index(self, name: str, force: bool = False) -> OperationReport:
        """Stop using an index. Until it is vacuumed, ``restore_index`` brings it back.

        With ``force`` the index is removed at once and permanently, even if it is damaged; its name is then free.
        """
        from lakebloom.index.maintain.lifecycle import delete_index
        from lakebloom.index.maintain.repair import remove_index

        report = remove_index(self._catalog, name) if force else delete_index(self._catalog, name)
        self._publish()
        return report

    def restore_index(self, name: str) -> OperationReport:
        """Bring a deleted index back."""
        from lakebloom.index.maintain.lifecycle import restore_index

        report = restore_index(self._catalog, name)
        self._publish()
        return report

    def vacuum_index(
        self, name: str, retention: datetime.timedelta | None = None, *, progress: ProgressOption = None
    ) -> VacuumReport:
        """Remove old versions and unused files; of a deleted index, everything.

        ``retention`` is how long replaced versions stay readable (default: ``spark.lakebloom.vacuum.retentionMs``).
        Files that may belong to a running build, and commits whose numbers a writer may be about to use, are kept for
        ``spark.lakebloom.vacuum.graceMs``.
        """
        from lakebloom.index.maintain.vacuum import vacuum_index

        settings = self._settings()
        retention_ms = settings.vacuum_retention_ms
        if retention is not None:
            retention_ms = round(retention.total_seconds() * 1000)
            if retention_ms < 0:
                raise InvalidArgumentError("retention must not be negative", found=retention)
        with self._shown(f"vacuuming {name}", progress) as tell:
            return vacuum_index(self._catalog, name, retention_ms, settings.vacuum_grace_ms, tell)

    def verify_index(self, name: str, sample: float | None = None, *, progress: ProgressOption = None) -> VerifyReport:
        """Check every checksum, and hash the data again to prove that no value is missing from its filter.

        ``sample`` is the fraction of data files to read (default: all).
        """
        from lakebloom.index.maintain.verify import verify_index

        with self._shown(f"verifying {name}", progress) as tell:
            return verify_index(self._catalog.index(name), sample, self._current, tell)

    def repair_index(self, name: str, *, progress: ProgressOption = None) -> RepairReport:
        """Repair a damaged index: drop what is damaged, and rebuild it from the table. Returns what was done.

        If the newest commit cannot be read, the last readable one replaces it. Without Spark, damaged parts are only
        dropped: queries and lookups work again, and the report says what is left to do. An undamaged index is not
        changed.
        """
        from lakebloom.index.maintain.repair import Rebuild, repair_index

        with self._shown(f"repairing {name}", progress) as tell:
            told = False if tell is None else tell
            rebuild = None
            if self._spark is not None:
                rebuild = Rebuild(
                    refresh=lambda mode: self.refresh_index(name, mode, progress=told),
                    create=lambda found: self._created_anew(found, told),
                )
            report = repair_index(self._catalog, name, rebuild)
        self._publish()
        return report

    def _created_anew(self, found: Salvage, progress: ProgressOption) -> BuildReport:
        """Create an index in place of one whose log cannot be read."""
        from lakebloom.index.config import config_of
        from lakebloom.spark.sources.resolve import reopened

        table, config = reopened(self._session(), found.table), config_of(found.config)
        return self.create_index(table, config, replace=True, progress=progress)
