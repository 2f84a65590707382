"""``Lakebloom``, the facade: hands work to Spark, or does without it.

With a Spark session it creates and maintains indexes. With only a location it reads them: candidates and lookups need
no Spark, no JVM and no pyspark. What only some methods need loads with the first call, because commands of a few
milliseconds go through here.
"""

from __future__ import annotations

import datetime
import pathlib
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, cast

from lakebloom.display.visible import visible
from lakebloom.errors import (
    IndexNotFoundError,
    InvalidArgumentError,
    LakebloomError,
    StorageError,
    UnsupportedSessionError,
    UnsupportedSourceError,
)
from lakebloom.index.arguments import column_list, kind_of, typed_arguments
from lakebloom.index.catalog import Catalog
from lakebloom.index.current_table import recorded_table
from lakebloom.index.query.reader import Reader, candidate_table
from lakebloom.index.settings import TIMEOUT_KEY, Settings
from lakebloom.index.threads import closed, opened
from lakebloom.spark.conf import default_location, settings_of
from lakebloom.store.records import ColumnRecord
from lakebloom.tables.columns import parse_name

# What only building and maintaining need is imported where it is used: a process that looks one key up starts sooner.

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession

    from lakebloom.display.progress import ProgressOption, Report
    from lakebloom.display.tables import RecordTable
    from lakebloom.index.build.column_advice import ColumnAdvice
    from lakebloom.index.build.price import PriceTag
    from lakebloom.index.build.refresh import RefreshMode
    from lakebloom.index.build.report import BuildReport
    from lakebloom.index.build.run import Workshop
    from lakebloom.index.config import BloomIndexConfig
    from lakebloom.index.current_table import CurrentTable
    from lakebloom.index.lookup.file_reads import Unindexed
    from lakebloom.index.lookup.lookup import Lookups
    from lakebloom.index.maintain.repair import RepairReport, Salvage
    from lakebloom.index.maintain.status import IndexStatus
    from lakebloom.index.maintain.vacuum import VacuumReport
    from lakebloom.index.maintain.verify import VerifyReport
    from lakebloom.index.query.join_filters import JoinFilters
    from lakebloom.index.query.scan_reports import LastQuery, QueryReport
    from lakebloom.index.reports import IndexRecord, OperationReport, VersionRecord
    from lakebloom.index.snapshot import Snapshot
    from lakebloom.predicate.tree import Predicate
    from lakebloom.spark.auto_refresh import WriteWatch
    from lakebloom.spark.connect_reads import ConnectReads
    from lakebloom.spark.rule.install import Skipping
    from lakebloom.spark.sources.catalog_tables import CatalogTables
    from lakebloom.store.records import Entry, SourceRecord
    from lakebloom.tables.columns import ColumnPath

__all__ = ["Lakebloom"]

_LISTED_S = 60.0
"""How long the background waits for the newest state of all indexes."""
_PATIENCE_S = 5.0
"""How long a listing of the location may take that only makes an error better."""


@typed_arguments
class Lakebloom:
    """Bloom-filter indexes below one location.

    ``location`` is a directory or an object-store URI; with a session it may be left out, and is then
    ``spark.lakebloom.location``, or the directory beside Spark's warehouse. ``options`` configure an object
    store, such as ``{"region": "eu-west-1"}``.
    """

    def __init__(
        self,
        spark: SparkSession | None = None,
        location: str | os.PathLike[str] | None = None,
        *,
        options: Mapping[str, str] | None = None,
    ) -> None:
        _require_session(spark)
        self._spark = spark
        chosen = location or (None if spark is None else default_location(spark))
        if chosen is None:
            raise InvalidArgumentError(
                "without a Spark session the location of the indexes must be given",
                found="neither",
                hint='Lakebloom(location="/path/to/indexes")',
            )
        classic = spark if spark is not None and hasattr(spark, "_jsparkSession") else None
        self._catalog = Catalog(chosen, options, classic)
        opened(self)
        self._readers: dict[str, Reader] = {}
        self._lookups: dict[str, Lookups] = {}
        self._skipping: Skipping | None = None
        self._known_join_filters: JoinFilters | None = None
        self._registered = False
        self._published: dict[str, Entry] = {}
        self._writes: WriteWatch | None = None
        self._tables: CatalogTables | None = None

    def __repr__(self) -> str:
        session = "without Spark" if self._spark is None else f"with Spark {self._spark.version}"
        try:
            names = ", ".join(self._catalog.names()) or "none"
        except LakebloomError as error:
            names = str(error)
        return visible(f"Lakebloom at {self.location}, {session}; indexes: {names}")

    @property
    def location(self) -> str:
        """Where the indexes are, as a URI."""
        return self._catalog.location

    @property
    def catalog(self) -> Catalog:
        """The indexes as tools see them: their logs and their files."""
        return self._catalog

    def _current(self, snapshot: Snapshot) -> CurrentTable:
        """Return the table of an index as it is now: a session asks its catalog, without one the index remembers."""
        if self._spark is None or snapshot.entry.source.catalog is None:
            return recorded_table(snapshot)
        if self._tables is None:
            from lakebloom.spark.sources.catalog_tables import CatalogTables

            self._tables = CatalogTables(self._spark)
        return self._tables.of_snapshot(snapshot)

    def _settings(self) -> Settings:
        return Settings() if self._spark is None else settings_of(self._spark)

    def _session(self) -> SparkSession:
        if self._spark is None:
            raise UnsupportedSessionError(
                "this needs Spark",
                found="a Lakebloom without a session",
                hint="use Lakebloom(spark, location=...)",
            )
        return self._spark

    def _workshop(self, progress: Report | None) -> tuple[SparkSession, Workshop]:
        if self._spark is None:
            raise UnsupportedSourceError(
                "building an index needs Spark",
                found="a Lakebloom without a session",
                hint="use Lakebloom(spark, location=...) to create and refresh; this one can read and look up",
            )
        from lakebloom.index.build.run import Workshop
        from lakebloom.spark.build.job import SparkBuilder

        settings = self._settings()
        builder = SparkBuilder(self._spark, self._catalog, settings.build_driver_max_bytes)
        return self._spark, Workshop(self._catalog, builder, settings, progress)

    # Building

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

    # Life

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

    # Asking

    def indexes(self) -> RecordTable[IndexRecord]:
        """Return all indexes, deleted ones too. One that cannot be read has the state "damaged" or "unreadable"."""
        from lakebloom.display.tables import RecordTable
        from lakebloom.index.reports import records_of

        return RecordTable(records_of(self._catalog))

    def index(self, name: str) -> IndexRecord:
        """Return one index as it is now."""
        from lakebloom.index.reports import IndexRecord

        return IndexRecord.of(self._catalog.index(name).log.newest())

    def status(self, name: str | None = None) -> RecordTable[IndexStatus]:
        """Compare an index, or all that are in use, with their tables: coverage, lag, size, rate. Lists the tables."""
        from lakebloom.display.tables import RecordTable
        from lakebloom.index.maintain.status import statuses

        found = statuses(self._catalog, name, self._current)
        if self._writes is not None:
            found = [replace(each, refresh_problem=self._writes.background.problem(each.name)) for each in found]
        return RecordTable(found)

    def history(self, name: str) -> RecordTable[VersionRecord]:
        """Return the versions of an index, the newest first."""
        from lakebloom.display.tables import RecordTable
        from lakebloom.index.reports import history_of

        return RecordTable(history_of(self._catalog.index(name).log))

    def report(self, name: str, path: str | os.PathLike[str], predicate: Predicate | str | None = None) -> pathlib.Path:
        """Write a page about an index to a file, and return where: coverage, sizes, rates, and what to do next.

        With a predicate the page also shows which files it skips.
        """
        from lakebloom.report import gather, render

        chosen = None if predicate is None else self._predicate(name, predicate)
        page = render(gather(self._catalog, name, chosen, self._current)).encode()
        target = pathlib.Path(path)
        try:
            target.write_bytes(page)
        except OSError as error:
            raise StorageError(f"cannot write {target}", found=str(error), hint="choose another place") from error
        return target

    def columns(self, name: str) -> list[tuple[ColumnPath, str]]:
        """Return all columns of an index's table as it was when indexed: the parts of each name, and its Spark type."""
        from lakebloom.tables.schema import table_schema

        return list(table_schema(self._catalog.index(name).log.newest().source.schema_json).types.items())

    def _predicate(self, name: str, predicate: Predicate | str) -> Predicate:
        """Return a predicate, whether it was made by ``col`` or typed as SQL."""
        if not isinstance(predicate, str):
            return predicate
        from lakebloom.predicate.sql.parse import parse
        from lakebloom.tables.schema import table_schema

        source = self._catalog.index(name).log.newest().source
        types = table_schema(source.schema_json).types
        return parse(predicate, types.items(), case_sensitive=source.case_sensitive)

    def candidates(self, name: str, predicate: Predicate | str) -> pa.Table:
        """Return the units that can match: path, row_start, row_count, row_groups. Reads only the index.

        Here and everywhere, a predicate is made by ``col``, or is SQL text such as ``"user_id = 42"``.

        The answer is about the files as they were indexed. One that is new or changed since is not in it.
        """
        found = self._reader(name).candidates(self._predicate(name, predicate), self._catalog.options, self._current)
        return candidate_table(found)

    def lookup(
        self,
        name: str,
        predicate: Predicate | str,
        columns: Sequence[str] | None = None,
        limit: int | None = None,
        *,
        unindexed: Unindexed = "scan",
    ) -> pa.Table:
        """Return the rows for which the predicate is TRUE, as a full scan would.

        Files that the index does not know as they are now are read in full ("scan"), left out ("skip"), or an error.
        """
        predicate = self._predicate(name, predicate)
        if name not in self._lookups:
            from lakebloom.index.lookup.lookup import Lookups

            self._lookups[name] = Lookups(self._reader(name), self._catalog.options, self._current)
        return self._lookups[name].rows(predicate, column_list(columns), limit, unindexed)

    def register_source(self) -> None:
        """Let the session read ``spark.read.format("lakebloom").load(name)``, in SQL and on Spark Connect too.

        The source finds indexes at this object's location, unless a query names another; see docs/DATA_SOURCE.md.
        """
        from lakebloom.spark.data_source.source import register

        spark, _ = self._workshop(None)
        register(spark, self.location, options=self._catalog.options)
        self._registered = True

    def read(
        self, name: str, predicate: Predicate | str | None = None, columns: Sequence[str] | None = None
    ) -> DataFrame:
        """Return the rows for which the predicate is TRUE as a DataFrame, read through the index by the data source."""
        from lakebloom.spark.data_source.source import changed_table, load

        spark, _ = self._workshop(None)
        if not self._registered or self._catalog.options:  # another object's options may have come since
            self.register_source()
        chosen = None if predicate is None else self._predicate(name, predicate)
        snapshot = self._reader(name).snapshot()
        changed = changed_table(snapshot, self._current)
        table = snapshot.entry.source if changed is None else changed.source
        limit_ms = self._settings().query_timeout_ms
        frame = load(
            spark,
            name,
            chosen,
            column_list(columns),
            table=table,
            location=self.location,
            timeout_ms=limit_ms,
            changed=changed,
        )
        if self._reads is not None:
            self._reads.add(frame, name, snapshot.entry.version)
        return frame

    def sql(self, text: str) -> DataFrame:
        """Run ``CREATE BLOOM INDEX …``, ``SHOW BLOOM INDEXES`` and the like (docs/SQL.md); all else is Spark's SQL."""
        from lakebloom.spark.sql import run

        return run(self._session(), self, text)

    # The end

    def close(self) -> None:
        """Give back what this object holds: rule, callbacks, threads, watches, everything that it read.

        Queries of the session go on without it. Closing twice is fine, and so is using it again: what is needed is then
        opened again.
        """
        writes, skipping = self._writes, self._skipping
        self._writes = self._skipping = self._known_join_filters = None
        if writes is not None:
            writes.close()
        if skipping is not None:
            skipping.close()
        self._readers, self._lookups = {}, {}
        closed(self)

    def __enter__(self) -> Lakebloom:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Skipping in queries

    @property
    def enabled(self) -> bool:
        """Whether the session's queries use these indexes."""
        return self._skipping is not None and self._skipping.installed

    def enable(self, auto_refresh: bool = False) -> None:
        """Let every later query of the session skip files that cannot match. Call it again after changes elsewhere.

        What this object creates, refreshes or deletes is noticed by itself; so are new versions of known indexes,
        whoever writes them. Raises UnsupportedSessionError on Spark Connect.

        With ``auto_refresh``, an index is also refreshed in the background after this session wrote to its table, until
        ``disable()``. No write waits for it or fails because of it; ``status`` shows why a refresh failed.
        """
        if auto_refresh:
            self._watched_writes().start()
        skipping = self._rule()
        skipping.advisor.wake()
        self._publish()
        skipping.install()

    def disable(self) -> None:
        """Let later queries read everything again, and end auto_refresh. Other rules of the optimizer stay."""
        if self._writes is not None:
            self._writes.stop()
        if self._skipping is not None:
            self._skipping.remove()

    @property
    def auto_refresh(self) -> bool:
        """Whether indexes are refreshed after this session wrote to their tables."""
        return self._writes is not None and self._writes.background.running

    def wait_for_refresh(self, timeout_s: float | None = None) -> bool:
        """Wait until auto_refresh has done its work for all writes so far; False where it has not in this time."""
        return self._writes is None or self._writes.wait(timeout_s)

    def _watched_writes(self) -> WriteWatch:
        from lakebloom.spark.auto_refresh import WriteWatch

        if self._writes is None:
            newest = partial(self._catalog.newest_entries, _LISTED_S)
            self._writes = WriteWatch(self._spark, newest, partial(self.refresh_index, progress=False))
        return self._writes

    def explain(self, query: DataFrame | str, predicate: Predicate | str | None = None) -> QueryReport:
        """Tell for each table that a query reads which files are skipped, by which index, and why not more.

        ``query`` is a DataFrame or SQL text, of which nothing is run. ``explain(name, predicate)`` tells the same of a
        condition on an index, as ``lookup`` and ``read`` would answer it now; that also works without Spark.
        """
        if predicate is not None:
            return self._explain_condition(query, predicate)
        from lakebloom.index.query.explain import covering, explain
        from lakebloom.spark.connect_reads import explain_on_connect
        from lakebloom.spark.data_source.source import explain_source
        from lakebloom.spark.query_text import execution_of, require_query
        from lakebloom.spark.sources.resolve import is_connect

        require_query(self._spark, query, self._catalog.names)
        spark = self._session()
        if is_connect(spark):
            return explain_on_connect(spark, cast("DataFrame", query))
        skipping = self._rule()
        found = self._publish()
        execution = execution_of(spark, query)
        scans = skipping.describe(execution)
        covers = lambda roots: covering(found, roots)  # noqa: E731
        read = lambda options: explain_source(spark, options)  # noqa: E731
        report = explain(skipping.advisor, covers, scans, self._timeout_s(), read)
        return replace(report, joins=skipping.describe_joins(execution))

    def _explain_condition(self, name: object, predicate: Predicate | str) -> QueryReport:
        from lakebloom.index.lookup.explain_reads import explain_condition

        if not isinstance(name, str):
            raise InvalidArgumentError(
                "a condition is explained for an index",
                found=kind_of(name),
                hint='lake.explain("by_user", "user_id = 42"), or put the condition into the query: '
                'lake.explain(df.where("user_id = 42"))',
            )
        chosen = self._predicate(name, predicate)
        return explain_condition(self._reader(name), chosen, self._catalog.options, self._current)

    def last_query(self) -> LastQuery | None:
        """Return what the scans of the session's last query counted, as Spark's own metrics have it.

        A command counts where it reads files. None where there was no query since ``enable()``. On Spark Connect it is
        about the newest DataFrame of ``read`` that ran; how many files it read is None where the table changed since.
        """
        if self._reads is not None:
            return self._reads.last()
        return self._rule().last_query()

    @cached_property
    def _reads(self) -> ConnectReads | None:
        from lakebloom.spark.sources.resolve import is_connect

        if self._spark is None or not is_connect(self._spark):
            return None
        from lakebloom.spark.connect_reads import ConnectReads

        return ConnectReads(self._spark)

    def register_functions(self) -> list[str]:
        """Give the session's SQL lakebloom_indexes(), lakebloom_history('index') and lakebloom_candidates('index',
        'column', 'value'), and return these names. Works on Spark Connect, too.

        Raises UnsupportedSessionError without a session, and for a location that only Spark reaches.
        """
        from lakebloom.spark.table_functions import register

        return register(self._session(), self.location, self._catalog.options)

    def might_contain(self, name: str, column: str, spark_column: Column | str) -> Column:
        """Return a Spark column that is False where the indexed column certainly does not hold a value.

        For the other side of a join: ``orders.where(lake.might_contain("by_user", "user_id", orders.user_id))`` drops
        rows without a partner before they are shuffled. The index needs a global filter. Files that it does not know
        yet are read and added, up to ``spark.lakebloom.join.mergeMaxBytes``; beyond it this is a StaleIndexError.
        """
        from lakebloom.spark.build.job import SparkBuilder
        from lakebloom.spark.joins import might_contain_column

        spark, _ = self._workshop(None)
        snapshot = self._reader(name).snapshot()
        files = SparkBuilder(spark, self._catalog).list_files(self._current(snapshot))
        found = self._join_filters().of(snapshot, parse_name(column), files, self._settings())
        return might_contain_column(spark, found, spark_column)

    def prune_join(self, indexed: DataFrame, small: DataFrame, on: str | Sequence[str]) -> DataFrame:
        """Return a DataFrame like ``indexed`` that does not open files which hold no key of ``small``, to be joined.

        ``on`` names the columns that both have in common and are equal in the join: ``lake.prune_join(events, users,
        "user_id").join(users, "user_id")``. The keys of ``small`` are collected, up to ``spark.lakebloom.join.maxKeys``
        distinct ones of each column; where there are more, or where nearly every file holds one, the frame is returned
        as it is, and a log line says so. For joins in which rows of ``indexed`` without a partner are in no result:
        inner, semi, and the outer and anti joins that keep all rows of ``small``.

        On Spark Connect ``indexed`` is a table, a path or ``lake.read`` as it is, and is read anew by ``read`` with the
        keys as a condition.
        """
        from lakebloom.spark.joins import pruned_by_keys
        from lakebloom.spark.sources.resolve import is_connect

        if self._spark is not None and is_connect(self._spark):
            from lakebloom.spark.connect_joins import read_by_keys

            entries = self._catalog.newest_entries(self._timeout_s())
            most = self._settings().join_max_keys
            return read_by_keys(self._spark, (indexed, small), column_list(on), entries, self.read, most)
        skipping = self._rule()
        self._publish()
        return pruned_by_keys(skipping, indexed, small, [on] if isinstance(on, str) else on, self._settings())

    def _rule(self) -> Skipping:
        from lakebloom.index.query.scans import Advisor
        from lakebloom.spark.rule.install import Skipping, require_classic
        from lakebloom.spark.rule.join_callback import JoinCallback

        spark = require_classic(self._spark)
        if self._skipping is None:
            advisor = Advisor(self._reader)
            joins = JoinCallback(self._reader, self._join_filters(), self._settings, advisor)
            self._skipping = Skipping(spark, advisor, self._timeout_s, joins)
        return self._skipping

    def _join_filters(self) -> JoinFilters:
        from lakebloom.index.query.join_filters import JoinFilters

        if self._known_join_filters is None:
            self._known_join_filters = JoinFilters(self._catalog.options)
        return self._known_join_filters

    def _timeout_s(self) -> float:
        # One key only: a query waits for this, and Spark fetches all of them one by one.
        value = None if self._spark is None else self._spark.conf.get(TIMEOUT_KEY, None)
        return Settings.parse({} if value is None else {TIMEOUT_KEY: value}).query_timeout_ms / 1000

    def _publish(self) -> Mapping[str, Entry | Exception]:
        """Tell the optimizer which indexes there are, and return them; those that do not answer stay as they were."""
        if self._skipping is None:
            return {}
        timeout_s = self._timeout_s()
        try:
            found = self._catalog.newest_entries(timeout_s)
        except TimeoutError as error:
            found = {**self._published, self.location: error}
        for name, entry in found.items():
            if isinstance(entry, TimeoutError) and name in self._published:
                found[name] = self._published[name]
        self._published = {name: entry for name, entry in found.items() if not isinstance(entry, Exception)}
        self._skipping.publish(self._published.values())
        return found

    def _shown(self, title: str, progress: ProgressOption) -> AbstractContextManager[Report | None]:
        """Show how far an operation is. Loads with the first one: a lookup does without."""
        from lakebloom.display.progress import shown

        if self._spark is None or progress is False or callable(progress):
            return shown(title, progress)
        from lakebloom.spark.build.progress import spark_bar_quieter

        return shown(title, progress, quieten=spark_bar_quieter(self._spark))

    def _suggested(self, error: IndexNotFoundError) -> IndexNotFoundError:
        """Return the error with the name of an index that was probably meant."""
        import difflib
        from contextlib import suppress

        from lakebloom.index.timeout import within

        wanted = error.message.partition("'")[2].rstrip("'")
        with suppress(LakebloomError, TimeoutError):
            names = {name.lower(): name for name in within(_PATIENCE_S, self._catalog.names)}
            close = difflib.get_close_matches(wanted.lower(), names, n=1, cutoff=0.6)
            if close and names[close[0]] != wanted:
                return IndexNotFoundError(error.message, found=error.found, hint=f"did you mean {names[close[0]]!r}?")
        return error

    def _reader(self, name: str) -> Reader:
        if name not in self._readers:
            self._readers[name] = Reader(self._catalog.index(name))
        return self._readers[name]


def _require_session(spark: object) -> None:
    if spark is not None and not hasattr(spark, "createDataFrame"):
        raise InvalidArgumentError(
            "the first argument is a Spark session",
            found=spark,
            hint='Lakebloom(spark, "/path/to/indexes"), or Lakebloom(location="/path/to/indexes") without Spark; '
            "the table is an argument of create_index",
        )
