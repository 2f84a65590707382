"""Skips files in the queries of a classic session: one optimizer rule, which calls back.

``LakebloomRule.java`` sees a condition above files, knows from what ``publish`` told it whether an index may help, and
only then calls ``PruneCallback``. Whatever goes wrong on either side, the query reads everything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from lakebloom.errors import UnsupportedSessionError
from lakebloom.index.current_table import places_of
from lakebloom.index.query.query_reports import JoinFigures, JoinReport, LastQuery, ScanFigures
from lakebloom.index.settings import KEYS, PREFIX, Settings
from lakebloom.predicate.reasons import Reason
from lakebloom.spark.jvm import is_stopped, new_object
from lakebloom.spark.rule.callback import LOG, PruneCallback
from lakebloom.spark.rule.exposed import exposed, new_secret, withdraw
from lakebloom.spark.rule.list_rows import list_pickles
from lakebloom.spark.rule.wire import (
    DescribedJoin,
    DescribedScan,
    FinishedJoin,
    FinishedQuery,
    FinishedScan,
    JoinFilter,
    ListPickle,
    PublishedIndex,
    RuleSettings,
    dump,
    parse,
)
from lakebloom.spark.sources.resolve import is_connect
from lakebloom.spark.versions import frame_of, scala_sequence
from lakebloom.tables.reader_settings import ALL, keys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyspark.sql import DataFrame, SparkSession

    from lakebloom.index.query.scans import ScanPruner
    from lakebloom.spark.rule.callback import JoinCallback
    from lakebloom.store.records import Commit

_RULES = "extraOptimizations"
JAVA_KEYS = tuple(f"{PREFIX}join.{name}" for name in ("minBytes", "maxKeys", "maxKeyBytes"))
"""The settings that Java reads from the session, while a query is planned."""


def require_classic(spark: SparkSession | None) -> SparkSession:
    """Return the session if it has an optimizer that can be told. Raises UnsupportedSessionError."""
    if spark is None or is_connect(spark):
        raise UnsupportedSessionError(
            "only a classic Spark session can skip files in all queries",
            found="no session" if spark is None else "a Spark Connect session",
            hint='read with spark.read.format("lakebloom"), the data source, which skips files on Spark Connect too',
        )
    return spark


class WithoutPartners(NamedTuple):
    """A frame that reads fewer files, because they hold no key of another."""

    frame: DataFrame
    is_condition: bool
    """Whether the keys are a condition: then the rule skips the files when the query is planned."""


class Skipping:
    """The rule of one Lakebloom object in one session."""

    def __init__(
        self, spark: SparkSession, scan_pruner: ScanPruner, timeout_s: Callable[[], float], joins: JoinCallback
    ) -> None:
        from pyspark.java_gateway import ensure_callback_server_started

        self._spark: Any = spark
        ensure_callback_server_started(self._spark.sparkContext._gateway)  # type: ignore[no-untyped-call]
        self.scan_pruner = scan_pruner
        self.callback = PruneCallback(scan_pruner, timeout_s)
        self.joins = joins
        secret = new_secret()
        self._exposed = exposed(self.callback, secret), exposed(joins, secret)
        self.rule = new_object(spark, "LakebloomRule", self._spark._jsparkSession, *self._exposed, secret)
        self.rule.setSettings(dump(_settings(spark)))
        self.watch = new_object(spark, "QueryWatch", self.rule)

    @property
    def installed(self) -> bool:
        """Whether the session's optimizer has the rule."""
        return any(rule.equals(self.rule) for rule in self._rules())

    def publish(self, commits: Iterable[Commit]) -> None:
        """Tell the rule which indexes there are."""
        described = [
            PublishedIndex(
                commit.config.name,
                tuple(places_of(commit.table)),
                tuple(column.path for column in commit.config.columns),
                commit.config.global_filter,
                commit.table.snapshot is not None,
            )
            for commit in commits
            if commit.state == "active"
        ]
        self.rule.setIndexes(dump(described))

    def install(self) -> None:
        """Add the rule after those that are there."""
        if not self.installed:
            self._set_rules([*self._rules(), self.rule])
            self._spark._jsparkSession.listenerManager().register(self.watch)

    def remove(self) -> None:
        """Take the rule out, and leave all others."""
        self._set_rules([rule for rule in self._rules() if not rule.equals(self.rule)])
        self._spark._jsparkSession.listenerManager().unregister(self.watch)

    def close(self) -> None:
        """Take the rule out, and let Java forget the callbacks."""
        if not is_stopped(self._spark):
            self.remove()
        withdraw(self._spark, self._exposed)

    def describe(self, execution: Any) -> list[DescribedScan]:
        """Return the scans of the optimized plan of a query, which is Java's QueryExecution."""
        plan = execution.optimizedPlan()
        return parse(self.rule.describe(plan), list[DescribedScan])

    def describe_joins(self, execution: Any) -> tuple[JoinReport, ...]:
        """Return what became of the joins whose keys a global filter is about."""
        plan = execution.optimizedPlan()
        return tuple(map(_join_report, parse(self.rule.describeJoins(plan), list[DescribedJoin])))

    def without_partners(self, frame: DataFrame, column: str, keys: DataFrame) -> WithoutPartners | Reason:
        """Return a frame without the files that hold none of the keys, the one column of another; or why it stays."""
        execution = frame._jdf.queryExecution()
        pruned = self.rule.prunedByKeys(execution, column, keys._jdf.queryExecution())
        if isinstance(pruned, str):
            return Reason.of_unknown(pruned)
        below = [pruned.children().apply(i) for i in range(pruned.children().size())]
        is_condition = len(below) == 1 and below[0].fastEquals(execution.analyzed())
        return WithoutPartners(frame_of(frame, pruned), is_condition)

    def last_query(self) -> LastQuery | None:
        """Return what the scans of the last query counted; None before the first."""
        self._spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
        text = self.watch.last()
        if text is None:
            return None
        query = parse(text, FinishedQuery)
        joins = tuple(figures for join in query.joins if (figures := self._join_figures(join)) is not None)
        scans = tuple(map(_scan_figures, query.scans))
        return LastQuery(query.action, query.seconds, scans, joins, query.failed)

    def _join_figures(self, join: FinishedJoin) -> JoinFigures | None:
        text = self.rule.joinFilter(join.mark)  # None where another Lakebloom put it there
        if text is None:
            return None
        found = parse(text, JoinFilter)
        return JoinFigures(found.index, found.column, join.rows, join.rows_passed)

    def _rules(self) -> list[Any]:
        rules = getattr(self._spark._jsparkSession.experimental(), _RULES)()
        return [rules.apply(i) for i in range(rules.size())]

    def _set_rules(self, rules: list[Any]) -> None:
        sequence = scala_sequence(self._spark, rules)
        getattr(self._spark._jsparkSession.experimental(), f"{_RULES}_$eq")(sequence)


def _settings(spark: SparkSession) -> RuleSettings:
    defaults = Settings()
    return RuleSettings(
        defaults={key: str(getattr(defaults, KEYS[key])) for key in JAVA_KEYS},
        reader_keys={name: keys(name) for name in sorted(ALL)},
        list_pickles=_list_pickles(spark),
    )


def _list_pickles(spark: SparkSession) -> tuple[ListPickle, ...]:
    """What tells lists from other RDDs; nothing where this version of PySpark makes frames of them in another way."""
    try:
        return list_pickles(spark)
    except Exception as error:
        LOG.info("joins with lists skip no files: %r", error)
        return ()


def _join_report(join: DescribedJoin) -> JoinReport:
    place = (join.index, join.column, join.key, join.side, join.join)
    if join.filter is None:
        return JoinReport(*place, reason=Reason.of_unknown(join.reason or ""))
    return JoinReport(*place, join.filter.rate, join.filter.size_bytes, join.filter.merged)


def _scan_figures(scan: FinishedScan) -> ScanFigures:
    if scan.tasks is not None:
        from lakebloom.spark.data_source.source import task_figures

        return task_figures(scan.tasks, scan.rows)
    table = scan.table or ", ".join(scan.roots)
    return ScanFigures(table, scan.files_read, scan.bytes_read, scan.rows, scan.files, scan.files_kept)
