"""The life of an index after it was built."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING

from lakebloom.errors import (
    InvalidArgumentError,
)
from lakebloom.lake.building import Building

# What only building and maintaining need is imported where it is used: a process that looks one key up starts sooner.

if TYPE_CHECKING:
    from lakebloom.display.progress import ProgressOption
    from lakebloom.index.build.report import BuildReport
    from lakebloom.index.maintain.repair import RepairReport, Salvage
    from lakebloom.index.maintain.vacuum import VacuumReport
    from lakebloom.index.maintain.verify import VerifyReport
    from lakebloom.index.reports import OperationReport

__all__ = ["Maintaining"]


class Maintaining(Building):
    """Optimizes, removes, proves and mends indexes."""

    def optimize_index(self, name: str, *, progress: ProgressOption = None) -> OperationReport:
        """Merge small segments; no data file is read. ``progress`` is that of ``create_index``."""
        from lakebloom.index.maintain.optimize import optimize_index

        with self._shown(f"optimizing {name}", progress) as tell:
            return optimize_index(self._catalog, name, tell)

    def delete_index(self, name: str, force: bool = False) -> OperationReport:
        """Stop using an index; ``restore_index`` brings it back until it is vacuumed.

        With ``force`` it is removed for good and at once, whatever is damaged; its name is free then.
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
        """Remove old versions and left-over files; a deleted index is removed altogether.

        ``retention`` is how long replaced versions stay readable (``spark.lakebloom.vacuum.retentionMs`` otherwise).
        Files that may belong to a build that is still running are left alone, and so are log entries whose numbers a
        writer may be about to take, both for ``spark.lakebloom.vacuum.graceMs``.
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

        ``sample`` is the share of files to read, all of them if None.
        """
        from lakebloom.index.maintain.verify import verify_index

        with self._shown(f"verifying {name}", progress) as tell:
            return verify_index(self._catalog.index(name), sample, self._catalog.options, self._current, tell)

    def repair_index(self, name: str, *, progress: ProgressOption = None) -> RepairReport:
        """Mend a damaged index, and tell what was done: what is damaged is dropped, and built anew from the table.

        A newest log entry that cannot be read is replaced by the last one that can. Without Spark, what is damaged is
        only dropped: answers are right again, and the report says what is left to do. Does nothing to a sound index.
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

        source, config = reopened(self._session(), found.source), config_of(found.config)
        return self.create_index(source, config, replace=True, progress=progress)
