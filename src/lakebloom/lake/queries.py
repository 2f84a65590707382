"""Skipping files in the session's queries, explaining queries, and joins."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, cast

from lakebloom.errors import (
    InvalidArgumentError,
)
from lakebloom.index.arguments import column_list, kind_of
from lakebloom.lake.erasing import Erasing
from lakebloom.lake.maintaining import Maintaining
from lakebloom.lake.reading import Reading
from lakebloom.tables.columns import parse_name

# Modules that only some methods need are imported where they are used, so that a lookup starts sooner.

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

    from lakebloom.index.query.join_filters import JoinFilters
    from lakebloom.index.query.query_reports import LastQuery, QueryReport
    from lakebloom.index.query.scan_reports import ScanReport
    from lakebloom.predicate.tree import Predicate
    from lakebloom.spark.auto_refresh import WriteWatch
    from lakebloom.spark.rule.install import Skipping

__all__ = ["Queries"]

_LISTED_S = 60.0
"""How long the background waits for the newest state of all indexes."""


class Queries(Maintaining, Reading, Erasing):
    """Lets the session use the indexes."""

    @property
    def enabled(self) -> bool:
        """Whether the session's queries use these indexes."""
        return self._skipping is not None and self._skipping.installed

    def enable(self, auto_refresh: bool = False) -> None:
        """Let all later queries of the session skip files that cannot match.

        Queries use what this object creates, refreshes or deletes, and new versions of indexes that other processes
        write. Call ``enable()`` again to use indexes that other processes created. Raises UnsupportedSessionError on
        Spark Connect.

        With ``auto_refresh``, an index is also refreshed in the background after this session wrote to its table,
        until ``disable()``. Writes do not wait for it, and do not fail because of it; ``status`` shows why a refresh
        failed.
        """
        if auto_refresh:
            self._watched_writes().start()
        skipping = self._rule()
        skipping.scan_pruner.wake()
        self._publish()
        skipping.install()

    def disable(self) -> None:
        """Let later queries read all files again, and stop auto_refresh. Other rules of the optimizer stay."""
        if self._writes is not None:
            self._writes.stop()
        if self._skipping is not None:
            self._skipping.remove()

    @property
    def auto_refresh(self) -> bool:
        """Whether indexes are refreshed in the background after this session wrote to their tables."""
        return self._writes is not None and self._writes.background.running

    def wait_for_refresh(self, timeout_s: float | None = None) -> bool:
        """Wait until auto_refresh has handled all writes so far. Returns False if that exceeds ``timeout_s``."""
        return self._writes is None or self._writes.wait(timeout_s)

    def _watched_writes(self) -> WriteWatch:
        from lakebloom.spark.auto_refresh import WriteWatch

        if self._writes is None:
            newest = partial(self._catalog.newest_commits, _LISTED_S)
            self._writes = WriteWatch(self._spark, newest, partial(self.refresh_index, progress=False))
        return self._writes

    def explain(self, query: DataFrame | str, predicate: Predicate | str | None = None) -> QueryReport:
        """Say for each table of a query which files are skipped, by which index, and why not more.

        ``query`` is a DataFrame or SQL text; it is not run. ``explain(name, predicate)`` explains a condition on an
        index, as ``lookup`` and ``read`` would answer it now; this also works without Spark.
        """
        if predicate is not None:
            return self._explain_condition(query, predicate)
        from lakebloom.index.query.explain import covering, explain
        from lakebloom.spark.query_text import execution_of, require_query
        from lakebloom.spark.sources.resolve import is_connect

        require_query(self._spark, query, self._catalog.names)
        spark = self._session()
        if is_connect(spark):
            from lakebloom.spark.connect_reads import explain_on_connect

            return explain_on_connect(spark, cast("DataFrame", query))
        skipping = self._rule()
        found = self._publish()
        execution = execution_of(spark, query)
        scans = skipping.describe(execution)
        covers = lambda roots: covering(found, roots)  # noqa: E731
        report = explain(skipping.scan_pruner, covers, scans, self._timeout_s(), partial(_explain_source, spark))
        return replace(report, joins=skipping.describe_joins(execution))

    def _explain_condition(self, name: object, predicate: Predicate | str) -> QueryReport:
        from lakebloom.index.lookup.explain_reads import explain_condition

        if not isinstance(name, str):
            raise InvalidArgumentError(
                "explain with a condition needs the name of an index",
                found=kind_of(name),
                hint='lake.explain("by_user", "user_id = 42"), or put the condition into the query: '
                'lake.explain(df.where("user_id = 42"))',
            )
        chosen = self._predicate(name, predicate)
        return explain_condition(self._reader(name), chosen, self._current)

    def last_query(self) -> LastQuery | None:
        """Return what the scans of the session's last query read, from Spark's own metrics.

        Commands that read files count as queries. Returns None if no query ran since ``enable()``. On Spark Connect,
        this is the last DataFrame of ``read`` that ran; its number of files is None if the table changed since.
        """
        if self._reads is not None:
            return self._reads.last()
        return self._rule().last_query()

    def register_functions(self) -> list[str]:
        """Register the SQL functions lakebloom_indexes(), lakebloom_history('index') and lakebloom_candidates('index',
        'column', 'value'), and return their names. Works on Spark Connect too.

        Raises UnsupportedSessionError without a session, and for a location that only Spark can reach.
        """
        from lakebloom.spark.table_functions import register

        return register(self._session(), self.location, self._catalog.options)

    def might_contain(self, name: str, column: str, spark_column: Column | str) -> Column:
        """Return a Spark column that is False where the indexed column certainly does not hold a value.

        Use it on the other side of a join: ``orders.where(lake.might_contain("by_user", "user_id", orders.user_id))``
        drops rows without a match before they are shuffled. The index needs a global filter. Unindexed files are read
        and added to it, up to ``spark.lakebloom.join.mergeMaxBytes``; above that, this raises StaleIndexError.
        """
        from lakebloom.spark.build.job import SparkBuilder
        from lakebloom.spark.joins import might_contain_column

        spark, _ = self._workshop(None)
        snapshot = self._reader(name).snapshot()
        table = self._current(snapshot)
        files = SparkBuilder(spark, self._catalog).list_files(table)
        found = self._join_filters().of(snapshot, parse_name(column), files, self._settings(), table.record)
        return might_contain_column(spark, found, spark_column)

    def prune_join(self, indexed: DataFrame, small: DataFrame, on: str | Sequence[str]) -> DataFrame:
        """Return ``indexed`` without the files that hold no key of ``small``, to be joined with ``small``.

        ``on`` names the join columns, which both sides have: ``lake.prune_join(events, users, "user_id").join(users,
        "user_id")``. A Spark job collects the distinct keys of ``small``, up to ``spark.lakebloom.join.maxKeys`` for
        each column. If there are more, or if nearly every file holds one, ``indexed`` is returned unchanged, with a
        log line. Use it for joins that drop rows of ``indexed`` without a match: inner, semi, and the outer and anti
        joins that keep all rows of ``small``.

        For a Delta or Iceberg table the keys become a condition of ``indexed``: its files are skipped after ``enable``.

        On Spark Connect, ``indexed`` must be a table, a path or ``lake.read`` without further operations; ``read``
        reads it again with the keys as a condition.
        """
        from lakebloom.spark.joins import pruned_by_keys
        from lakebloom.spark.sources.resolve import is_connect

        if self._spark is not None and is_connect(self._spark):
            from lakebloom.spark.connect_joins import read_by_keys

            commits = self._catalog.newest_commits(self._timeout_s())
            most = self._settings().join_max_keys
            return read_by_keys(self._spark, (indexed, small), column_list(on), commits, self.read, most)
        skipping = self._rule()
        self._publish()
        return pruned_by_keys(skipping, indexed, small, [on] if isinstance(on, str) else on, self._settings())

    def _rule(self) -> Skipping:
        from lakebloom.index.query.scans import ScanPruner
        from lakebloom.spark.rule.callback import JoinCallback
        from lakebloom.spark.rule.install import Skipping, require_classic

        spark = require_classic(self._spark)
        if self._skipping is None:
            scan_pruner = ScanPruner(self._reader)
            joins = JoinCallback(self._reader, self._join_filters(), self._settings, scan_pruner)
            self._skipping = Skipping(spark, scan_pruner, self._timeout_s, joins)
        return self._skipping

    def _join_filters(self) -> JoinFilters:
        from lakebloom.index.query.join_filters import JoinFilters

        if self._known_join_filters is None:
            self._known_join_filters = JoinFilters(self._catalog.options)
        return self._known_join_filters


def _explain_source(spark: SparkSession, options: Mapping[str, str]) -> ScanReport:
    """Explain a scan of the data source, whose module loads only where there is one."""
    from lakebloom.spark.data_source.source import explain_source

    return explain_source(spark, options)
