"""Making indexes, and what comes before: prices and advice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lakebloom.index.arguments import column_list
from lakebloom.lake.state import LakeState
from lakebloom.store.records import ColumnRecord

# What only building and maintaining need is imported where it is used: a process that looks one key up starts sooner.

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
    from lakebloom.store.records import SourceRecord

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
        """Build an index over a DataFrame that reads files, a path, or a table's name.

        On a terminal and in a notebook a build that takes longer than two seconds shows how far it is. A function as
        ``progress`` is called with how many files, bytes and rows are done instead; False turns it off. ``quoted`` is
        called with the price before anything is written. Returns what was built and how long each phase took.
        Everything is checked before anything is written; nothing is left behind by a failure.

        With ``from_embedded``, filters that the Parquet files already have are taken instead of reading the column,
        where they hold the same hashes; the report says which columns had to be read, and why. Their rate is what the
        files' writer chose.

        With ``replace``, an index of this name goes on answering until the new one is committed, and is then gone.
        """
        from lakebloom.index.operation import Phases

        phases = Phases()  # before anything else is loaded: a first call waits for that, too
        with self._shown(f"building {config.name}", progress) as tell:
            with phases.timed("check"):
                from lakebloom.index.build.create import create_index

                workshop, record, schema = self._resolved(source, tell)
            report = create_index(
                workshop, record, schema, config, quoted, from_embedded=from_embedded, replace=replace, phases=phases
            )
            with phases.timed("commit"):
                self._publish()
        return report.with_seconds(phases.seconds)

    def price_index(self, source: Any, config: BloomIndexConfig, *, replace: bool = False) -> PriceTag:
        """Tell what ``create_index`` would read and write, and how much one key would then skip. Builds nothing.

        Without a session ``source`` is the path of Parquet files.
        """
        from lakebloom.index.build.create import price_index

        if self._spark is None:
            return price_index(*self._directory(source), config, replace=replace)
        return price_index(*self._resolved(source, None), config, replace=replace)

    def advise(self, source: Any, columns: Sequence[str] | None = None) -> RecordTable[ColumnAdvice]:
        """Sample a table and tell for each column whether it is worth an index, and why. Builds nothing.

        Without a session ``source`` is the path of Parquet files.
        """
        if self._spark is None:
            from lakebloom.index.build.advise import advise_on_path

            return advise_on_path(source, column_list(columns), self._catalog.options)
        from lakebloom.spark.column_sampling import advise

        return advise(self._session(), source, column_list(columns), self._catalog.options)

    def _directory(self, source: Any) -> tuple[Workshop, SourceRecord, list[ColumnRecord]]:
        """Return what planning needs of Parquet files at a path where there is no Spark."""
        from lakebloom.index.build.parquet_directory import ParquetDirectory, parquet_source
        from lakebloom.index.build.run import Workshop
        from lakebloom.tables.spark_schema import leaf_types

        options = self._catalog.options
        record = parquet_source(source, options)
        schema = [ColumnRecord(path, kind) for path, kind in leaf_types(record.schema_json or "")]
        return Workshop(self._catalog, ParquetDirectory(options), self._settings()), record, schema

    def _resolved(self, source: Any, progress: Report | None) -> tuple[Workshop, SourceRecord, list[ColumnRecord]]:
        from lakebloom.spark.sources.resolve import resolve
        from lakebloom.tables.spark_schema import leaf_types

        spark, workshop = self._workshop(progress)
        record = resolve(spark, source, self._catalog.options)
        return workshop, record, [ColumnRecord(path, kind) for path, kind in leaf_types(record.schema_json or "")]

    def refresh_index(
        self,
        name: str,
        mode: RefreshMode = "quick",
        *,
        from_embedded: bool = False,
        allow_shrink: bool = False,
        progress: ProgressOption = None,
    ) -> BuildReport:
        """Index what is new: "quick" adds new and changed files, "full" also drops what is gone and compacts.

        ``from_embedded`` is that of ``create_index``. A table that has no files any more, or lost more than half of
        those that the index knows, is a TableShrunkError unless ``allow_shrink``: a mount may be missing.
        """
        from lakebloom.index.build.refresh import refresh_index

        with self._shown(f"refreshing {name}", progress) as tell:
            _, workshop = self._workshop(tell)
            return refresh_index(workshop, name, mode, from_embedded=from_embedded, allow_shrink=allow_shrink)
