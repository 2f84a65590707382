"""Skipping files in the queries of a classic session: one optimizer rule, which asks back.

``LakebloomRule.java`` sees a condition above files, knows from what ``publish`` told it whether an index may help, and
only then calls ``_Callback``. Whatever goes wrong on either side, the query reads everything.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from lakebloom.errors import UnsupportedSessionError
from lakebloom.index.current_table import places_of
from lakebloom.index.query.explain import DescribedScan, Note
from lakebloom.index.query.query_reports import JoinFigures, JoinReport, LastQuery, ScanFigures
from lakebloom.index.query.scans import PrunedFiles, Reading, ScanPruner, Unanswered
from lakebloom.predicate.reasons import Reason
from lakebloom.spark.jvm import is_stopped, new_object
from lakebloom.spark.rule.callback import LOG, Callback, exposed, new_secret, withdraw
from lakebloom.spark.rule.list_rows import handing_on
from lakebloom.spark.rule.wire import file_lines
from lakebloom.spark.sources.resolve import is_connect
from lakebloom.spark.versions import frame_of, scala_sequence
from lakebloom.tables.reader_settings import ALL, keys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyspark.sql import DataFrame, SparkSession

    from lakebloom.spark.rule.join_callback import JoinCallback
    from lakebloom.store.records import Commit

_RULES = "extraOptimizations"


class Question(Reading, frozen=True):
    """A reading, the indexes to ask, and the fingerprints of the files that the asker knows."""

    indexes: list[str]
    known: dict[str, str]


class _FinishedScan(msgspec.Struct, frozen=True, rename="camel"):
    """A scan that ran. What is not there is not known."""

    roots: tuple[str, ...] = ()
    num_files: int | None = None
    files_size: int | None = None
    num_output_rows: int | None = None
    files: int | None = None
    files_kept: int | None = None
    table: str | None = None
    tasks: tuple[str, ...] | None = None
    """Those of lakebloom's own data source, as Spark has them; none at all where there are too many."""

    def figures(self) -> ScanFigures:
        if self.tasks is not None:
            from lakebloom.spark.data_source.source import task_figures

            return task_figures([base64.b64decode(task) for task in self.tasks], self.num_output_rows)
        table = self.table or ", ".join(self.roots)
        return ScanFigures(table, self.num_files, self.files_size, self.num_output_rows, self.files, self.files_kept)


class _FinishedJoin(msgspec.Struct, frozen=True):
    mark: str
    rows: int
    rows_passed: int


class _Finished(msgspec.Struct, frozen=True):
    action: str
    seconds: float
    failed: bool
    scans: tuple[_FinishedScan, ...]
    joins: tuple[_FinishedJoin, ...]


class _Filter(msgspec.Struct, frozen=True):
    index: str
    column: str
    rate: float
    bytes: int
    merged: int


class _Join(msgspec.Struct, frozen=True):
    index: str
    column: str
    key: str
    side: str
    join: str
    filter: _Filter | None = None
    reason: str | None = None

    def report(self) -> JoinReport:
        place = (self.index, self.column, self.key, self.side, self.join)
        if self.filter is None:
            return JoinReport(*place, reason=Reason.of_unknown(self.reason or ""))
        return JoinReport(*place, self.filter.rate, self.filter.bytes, self.filter.merged)


class Answer(msgspec.Struct, frozen=True):
    """Which files of an index can match: bit by bit, in the order of ``files``, which is sent only if it is new."""

    name: str
    fingerprint: str
    kept: str
    files: str | None
    changed: list[int]
    """The numbers of files that changed since they were indexed, though Spark's listing may not show it."""


def require_classic(spark: SparkSession | None) -> SparkSession:
    """Return the session if it has an optimizer that can be told. Raises UnsupportedSessionError."""
    if spark is None or is_connect(spark):
        raise UnsupportedSessionError(
            "only a classic Spark session can skip files in all queries",
            found="no session" if spark is None else "a Spark Connect session",
            hint='read with spark.read.format("lakebloom"), the data source, which skips files on Spark Connect too',
        )
    return spark


class Skipping:
    """The rule of one Lakebloom object in one session."""

    def __init__(
        self, spark: SparkSession, scan_pruner: ScanPruner, timeout_s: Callable[[], float], joins: JoinCallback
    ) -> None:
        from pyspark.java_gateway import ensure_callback_server_started

        self._spark: Any = spark
        ensure_callback_server_started(self._spark.sparkContext._gateway)  # type: ignore[no-untyped-call]
        self.scan_pruner = scan_pruner
        self.callback = _Callback(scan_pruner, timeout_s)
        self.joins = joins
        secret = new_secret()
        self._exposed = exposed(self.callback, secret), exposed(joins, secret)
        self.rule = new_object(spark, "LakebloomRule", self._spark._jsparkSession, *self._exposed, secret)
        self.rule.setReaderKeys(msgspec.json.encode({name: keys(name) for name in sorted(ALL)}).decode())
        self.rule.setHandingOn(_handing_on(spark))
        self.watch = new_object(spark, "QueryWatch", self.rule)

    @property
    def installed(self) -> bool:
        """Whether the session's optimizer has the rule."""
        return any(rule.equals(self.rule) for rule in self._rules())

    def publish(self, commits: Iterable[Commit]) -> None:
        """Tell the rule which indexes there are."""
        described = [
            {
                "name": commit.config.name,
                "locations": places_of(commit.table),
                "columns": [column.path for column in commit.config.columns],
                "global": commit.config.global_filter,
            }
            for commit in commits
            if commit.state == "active"
        ]
        self.rule.setIndexes(msgspec.json.encode(described).decode())

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
        return msgspec.json.decode(self.rule.describe(plan), type=list[DescribedScan])

    def describe_joins(self, execution: Any) -> tuple[JoinReport, ...]:
        """Return what became of the joins whose keys a global filter is about."""
        plan = execution.optimizedPlan()
        joins = msgspec.json.decode(self.rule.describeJoins(plan), type=list[_Join])
        return tuple(join.report() for join in joins)

    def without_partners(self, frame: DataFrame, column: str, keys: DataFrame) -> DataFrame | Reason:
        """Return a frame without the files that hold none of the keys, the one column of another; or why it stays."""
        pruned = self.rule.prunedByKeys(frame._jdf.queryExecution(), column, keys._jdf.queryExecution())
        if isinstance(pruned, str):
            return Reason.of_unknown(pruned)
        return frame_of(frame, pruned)

    def last_query(self) -> LastQuery | None:
        """Return what the scans of the last query counted; None before the first."""
        self._spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
        text = self.watch.last()
        if text is None:
            return None
        query = msgspec.json.decode(text, type=_Finished)
        joins = tuple(figures for join in query.joins if (figures := self._join_figures(join)) is not None)
        scans = tuple(scan.figures() for scan in query.scans)
        return LastQuery(query.action, query.seconds, scans, joins, query.failed)

    def _join_figures(self, join: _FinishedJoin) -> JoinFigures | None:
        text = self.rule.joinFilter(join.mark)  # None where another Lakebloom put it there
        if text is None:
            return None
        found = msgspec.json.decode(text, type=_Filter)
        return JoinFigures(found.index, found.column, join.rows, join.rows_passed)

    def _rules(self) -> list[Any]:
        rules = getattr(self._spark._jsparkSession.experimental(), _RULES)()
        return [rules.apply(i) for i in range(rules.size())]

    def _set_rules(self, rules: list[Any]) -> None:
        sequence = scala_sequence(self._spark, rules)
        getattr(self._spark._jsparkSession.experimental(), f"{_RULES}_$eq")(sequence)


class _Callback(Callback):
    """What Java calls with a question about files."""

    def __init__(self, scan_pruner: ScanPruner, timeout_s: Callable[[], float]) -> None:
        super().__init__()
        self._scan_pruner = scan_pruner
        self._timeout_s = timeout_s

    def apply(self, question: str) -> str:
        """Return the answers, as JSON. Never raises."""
        self.asked += 1
        names: list[str] = []
        try:
            decoded = msgspec.json.decode(question, type=Question)
            names = decoded.indexes
            pruned_files = self._scan_pruner.prune(decoded.indexes, decoded, self._timeout_s())
            useful = [item for item in pruned_files if isinstance(item, PrunedFiles) and item.has_effect]
            answers = [_answer(item, decoded.known.get(item.name)) for item in useful]
            return msgspec.json.encode({"answers": answers, "note": Note.of(pruned_files)}).decode()
        except Exception as error:
            problem = repr(error)
            self.warn_once(problem, "no file is skipped, because a question could not be answered: %s", problem)
            failed = [Unanswered(name, Reason.INDEX_UNREADABLE, problem) for name in names]
            return msgspec.json.encode({"answers": [], "note": Note.of(failed)}).decode()


def _handing_on(spark: SparkSession) -> str:
    """What tells lists from other RDDs; nothing where this version of PySpark makes frames of them in another way."""
    try:
        return handing_on(spark)
    except Exception as error:
        LOG.info("joins with lists leave out no files: %r", error)
        return "[]"


def _answer(pruned_files: PrunedFiles, known: str | None) -> Answer:
    kept = np.packbits(pruned_files.kept, bitorder="little").tobytes()
    files = None if known == pruned_files.fingerprint else file_lines(pruned_files.files)
    changed = np.flatnonzero(pruned_files.changed).tolist()
    return Answer(pruned_files.name, pruned_files.fingerprint, base64.b64encode(kept).decode(), files, changed)
