"""Creating and refreshing indexes, estimating their cost, and advice on columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lakebloom.index.arguments import column_list
from lakebloom.lake.state import LakeState

# Modules that only building and maintaining need are imported where they are used, so that a lookup starts sooner.

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lakebloom.display.progress import ProgressOption, Report
    from lakebloom.display.tables import RecordTable
    from lakebloom.index.build.column_advice import ColumnAdvice
    from lakebloom.index.build.price import PriceTag
    from lakebloom.index.build.refresh import RefreshMode
    from lakebloom.index.build.report import BuildReport
    from lakebloom.index.build.run import Workshop
    from lakebloom.index.config import BloomIndexConfig
    from lakebloom.store.records import TableRecord

__all__ = ["Building"]


class Building(LakeState):
    """Creates and refreshes indexes."""

    def create_index(
        self,
        source: Any,
        config: BloomIndexConfig,
        *,
        from_embedded: bool = False,
        replace: bool = False,
        progress: ProgressOption = None,
        quoted: Callable[[PriceTag], None] | None = None,
    ) -> BuildReport:
        """Build an index over a table: a path, the name of a table, or a DataFrame that reads files.

        Returns what was built, and how long each phase took. All arguments are checked before anything is written. A
        build that fails leaves no files behind.

        On a terminal and in a notebook, a build of more than two seconds shows its progress. If ``progress`` is a
        function, it is called with the number of files, bytes and rows done instead; False shows nothing. ``quoted``
        is called with the estimated cost before anything is written.

        With ``from_embedded``, filters that the Parquet files already have are imported instead of reading the column,
        where they use the same hashes. The report says which columns had to be read, and why. Imported filters have
        the false-positive rate that the writer of the files chose.

        With ``replace``, an index of the same name is used until the new one is committed, which then replaces it.
        """
        from lakebloom.index.operation import Phases

        phases = Phases()  # before anything else is loaded: a first call waits for that, too
        with self._shown(f"building {config.name}", progress) as tell:
            with phases.timed("check"):
                from lakebloom.index.build.create import create_index

                workshop, record = self._resolved(source, tell)
            report = create_index(
                workshop, record, config, quoted, from_embedded=from_embedded, replace=replace, phases=phases
            )
            with phases.timed("commit"):
                self._publish()
        return report.with_seconds(phases.seconds)

    def price_index(self, source: Any, config: BloomIndexConfig, *, replace: bool = False) -> PriceTag:
        """Estimate what ``create_index`` would read and write, and how much a lookup would skip. Builds nothing.

        Without a session, ``source`` must be a path to Parquet files.
        """
        from lakebloom.index.build.create import price_index

        if self._spark is None:
            return price_index(*self._directory(source), config, replace=replace)
        return price_index(*self._resolved(source, None), config, replace=replace)

    def advise(self, source: Any, columns: Sequence[str] | None = None) -> RecordTable[ColumnAdvice]:
        """Sample a table and say for each column whether it is worth an index, and why. Builds nothing.

        Without a session, ``source`` must be a path to Parquet files.
        """
        if self._spark is None:
            from lakebloom.index.build.advise import advise_on_path

            return advise_on_path(source, column_list(columns), self._catalog.options)
        from lakebloom.spark.column_sampling import advise

        return advise(self._session(), source, column_list(columns), self._catalog.options)

    def _directory(self, source: Any) -> tuple[Workshop, TableRecord]:
        """Return what planning needs to know about Parquet files at a path, without Spark."""
        from lakebloom.index.build.parquet_directory import ParquetDirectory, parquet_source
        from lakebloom.index.build.run import Workshop

        options = self._catalog.options
        record = parquet_source(source, options)
        return Workshop(self._catalog, ParquetDirectory(options), self._settings()), record

    def _resolved(self, source: Any, progress: Report | None) -> tuple[Workshop, TableRecord]:
        from lakebloom.spark.sources.resolve import resolve

        spark, workshop = self._workshop(progress)
        record = resolve(spark, source, self._catalog.options)
        return workshop, record

    def refresh_index(
        self,
        name: str,
        mode: RefreshMode = "quick",
        *,
        from_embedded: bool = False,
        allow_shrink: bool = False,
        progress: ProgressOption = None,
    ) -> BuildReport:
        """Index new and changed files ("quick"); "full" also drops deleted files and merges segments.

        ``from_embedded`` and ``progress`` are those of ``create_index``. If the table has no files any more, or lost
        more than half of the indexed files, this raises TableShrunkError, because a mount may be missing;
        ``allow_shrink`` refreshes anyway.
        """
        from lakebloom.index.build.refresh import refresh_index

        with self._shown(f"refreshing {name}", progress) as tell:
            _, workshop = self._workshop(tell)
            return refresh_index(workshop, name, mode, from_embedded=from_embedded, allow_shrink=allow_shrink)
