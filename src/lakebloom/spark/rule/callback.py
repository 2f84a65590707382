"""What Java calls while a query is planned: to prune a scan, and for the filter of a join.

A callback never raises: whatever goes wrong, its reply says so, and the query reads everything.
"""

from __future__ import annotations

import abc
import logging
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

import msgspec
import numpy as np

from lakebloom.errors import IndexStateError, StaleIndexError
from lakebloom.index.query.explain import Note
from lakebloom.index.query.pruning import resolver
from lakebloom.index.query.scans import PrunedFiles, Unanswered, is_temporal, why_not
from lakebloom.predicate.reasons import Reason
from lakebloom.spark.joins import filter_words
from lakebloom.spark.rule.join_sql import join_filter_sql
from lakebloom.spark.rule.wire import (
    JoinFilesReply,
    JoinFilterReply,
    JoinRequest,
    KeptFiles,
    PruneReply,
    PruneRequest,
    dump,
    file_lines,
    parse,
)
from lakebloom.tables.file_identity import spark_file
from lakebloom.timeout import within

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lakebloom.index.query.join_filters import JoinFilters
    from lakebloom.index.query.reader import Reader
    from lakebloom.index.query.scans import Reading, ScanPruner
    from lakebloom.index.settings import Settings
    from lakebloom.index.snapshot import Snapshot
    from lakebloom.store.records import TableRecord
    from lakebloom.tables.columns import ColumnPath

__all__ = ["LOG", "Callback", "JoinCallback", "PruneCallback"]

LOG = logging.getLogger("lakebloom")
MAX_WARNINGS = 100
"""How many different problems a callback logs; more are not remembered, and not logged."""
Request = TypeVar("Request", bound=msgspec.Struct)


class Callback(abc.ABC, Generic[Request]):
    """Takes a request of Java and returns the reply, both JSON."""

    kind: ClassVar[type[msgspec.Struct]]
    """The struct of requests, ``Request``."""

    def __init__(self) -> None:
        self.calls = 0
        self._warned: set[str] = set()

    def apply(self, text: str) -> str:
        """Return the reply. Never raises."""
        self.calls += 1
        request: Request | None = None
        try:
            request = parse(text, self.kind)  # type: ignore[assignment]
            reply = self.reply(request)  # type: ignore[arg-type]
        except Exception as error:
            reply = self.failure(request, error)
        return "" if reply is None else dump(reply)

    @abc.abstractmethod
    def reply(self, request: Request) -> msgspec.Struct | None:
        """Return the reply to a request; None where Java expects none. May raise."""

    @abc.abstractmethod
    def failure(self, request: Request | None, error: Exception) -> msgspec.Struct | None:
        """Return the reply for an error; the request is None if it could not be parsed."""

    def warn_once(self, about: str, message: str, *arguments: object) -> None:
        """Log a warning, once for each thing that it is about."""
        if about not in self._warned and len(self._warned) < MAX_WARNINGS:
            self._warned.add(about)
            LOG.warning(message, *arguments)


class PruneCallback(Callback[PruneRequest]):
    """Prunes the files of a scan."""

    kind = PruneRequest

    def __init__(self, scan_pruner: ScanPruner, timeout_s: Callable[[], float]) -> None:
        super().__init__()
        self.scan_pruner = scan_pruner
        self._timeout_s = timeout_s

    def reply(self, request: PruneRequest) -> PruneReply:
        """Return which files can match."""
        answers = self.scan_pruner.prune(request.indexes, request, self._timeout_s())
        useful = [answer for answer in answers if isinstance(answer, PrunedFiles) and answer.has_effect]
        return _reply([_kept(answer, request.known.get(answer.name)) for answer in useful], answers)

    def failure(self, request: PruneRequest | None, error: Exception) -> PruneReply:
        """Return that no index decided anything."""
        problem = repr(error)
        self.warn_once(problem, "no file is skipped, because of an error: %s", problem)
        names = () if request is None else request.indexes
        return _reply([], [Unanswered(name, Reason.INDEX_UNREADABLE, problem) for name in names])


def _reply(kept: list[KeptFiles], answers: Sequence[PrunedFiles | Unanswered]) -> PruneReply:
    reasons = [answer.reason.value for answer in answers if isinstance(answer, Unanswered)]
    return PruneReply(tuple(kept), Note.of(answers), reasons[-1] if reasons else None)


def _kept(answer: PrunedFiles, known: str | None) -> KeptFiles:
    bits = np.packbits(answer.kept, bitorder="little").tobytes()
    changed = np.flatnonzero(answer.changed).tolist()
    if known == answer.fingerprint:
        return KeptFiles(answer.name, answer.fingerprint, bits, None, 0, changed)
    if answer.snapshot is None:
        return KeptFiles(answer.name, answer.fingerprint, bits, file_lines(answer.files.chunks()), 0, changed)
    files, after = _new_files(answer.snapshot, known)
    return KeptFiles(answer.name, answer.fingerprint, bits, files, after, changed)


def _new_files(snapshot: Snapshot, known: str | None) -> tuple[str, int]:
    """Return the files that Java does not have, and how many it has: those of a version with fewer segments."""
    prints = snapshot.fingerprints
    first = prints.index(known) if known in prints else 0
    return file_lines(snapshot.files.chunks(first)), snapshot.files.starts[first]


class JoinCallback(Callback[JoinRequest]):
    """Hands out the global filters that filter a side of a join."""

    kind = JoinRequest

    def __init__(
        self,
        reader: Callable[[str], Reader],
        filters: JoinFilters,
        settings: Callable[[], Settings],
        scan_pruner: ScanPruner,
    ) -> None:
        super().__init__()
        self._scan_pruner = scan_pruner
        self._reader = reader
        self._filters = filters
        self._settings = settings

    def reply(self, request: JoinRequest) -> JoinFilesReply | JoinFilterReply:
        """Return the files or the filter, in time."""
        settings = self._settings()
        if self._scan_pruner.is_resting(request.index):
            return _refused(Reason.TIMED_OUT)
        try:
            return within(settings.query_timeout_ms / 1000, lambda: self._reply(request, settings))
        except TimeoutError:
            self._scan_pruner.rest(request.index)
            raise

    def failure(self, request: JoinRequest | None, error: Exception) -> JoinFilesReply:
        """Return why the join is not filtered."""
        if isinstance(error, IndexStateError):
            return _refused(Reason.DELETED)
        if isinstance(error, StaleIndexError):
            return _refused(Reason.STALE_FILTER)
        reason = Reason.TIMED_OUT if isinstance(error, TimeoutError) else Reason.INDEX_UNREADABLE
        self.warn_once(reason.value, "a join is not filtered, %s: %s", reason.value, str(error) or repr(error))
        return _refused(reason)

    def _reply(self, request: JoinRequest, settings: Settings) -> JoinFilesReply | JoinFilterReply:
        snapshot = self._reader(request.index).snapshot()
        column_type = _column_type(snapshot, request, request.column)
        if column_type is None:
            return _refused(Reason.READ_DIFFERS)
        if request.missing is None:
            if request.known == snapshot.fingerprint:
                return JoinFilesReply(fingerprint=snapshot.fingerprint)
            files, after = _new_files(snapshot, request.known)
            return JoinFilesReply(fingerprint=snapshot.fingerprint, files=files, after=after)
        if request.known != snapshot.fingerprint:
            return _refused(Reason.STALE_FILTER)  # refreshed since, so that other files may be missing
        version = request.table(snapshot.commit.table)
        if version is None:
            missing = [spark_file(*file) for file in request.missing]
            found = self._filters.of(snapshot, request.column, [*missing, *self._filters.changed(snapshot)], settings)
        elif request.missing:
            return _refused(Reason.STALE_FILTER)  # the log knows what their rows are, and only its reader applies it
        else:
            found = self._filters.of(snapshot, request.column, [], settings, version)
        return JoinFilterReply(
            fingerprint=found.fingerprint,
            words=None if request.filter == found.fingerprint else filter_words(found.filter).astype("<i4").tobytes(),
            sql=join_filter_sql(request.mark, column_type, found.filter.num_blocks),
            rate=found.rate,
            size_bytes=found.filter.num_bytes,
            merged=found.files_merged,
        )


def _refused(reason: Reason) -> JoinFilesReply:
    """Return a refusal: only a reason, which ``JoinFilterReply`` has, too."""
    return JoinFilesReply(reason=reason.value)


def _column_type(snapshot: Snapshot, reading: Reading, column: ColumnPath) -> str | None:
    """Return the type of a column; None if the query does not read exactly the values that were indexed."""
    if why_not(snapshot.commit.table, reading) is not None:
        return None
    version = reading.table(snapshot.commit.table)
    if version is not None:
        return _logged_type(snapshot, reading, version, column)
    schema, found = reading.read_schema([snapshot.commit.table]), resolver(snapshot)(column)
    types = [known.type for known in snapshot.commit.config.columns if known.path == found]
    if len(types) != 1 or not schema.reads_as(column, types[0]) or schema.has_default(column):
        return None
    return types[0]


def _logged_type(snapshot: Snapshot, reading: Reading, version: TableRecord, column: ColumnPath) -> str | None:
    """Return the type of a column of a table with a log, in the version that is read; None as ``_column_type`` does.

    Columns are known by what files call them. Where files lack the column, its default is read, and is not indexed.
    """
    schema = version.schema
    path = schema.names.find(column)
    found = None if path is None else resolver(snapshot, version)(path)
    types = [known.type for known in snapshot.commit.config.columns if known.path == found]
    if path is None or len(types) != 1 or schema.types[path] != types[0]:
        return None
    has_default = path in schema.initial_defaults or path[0] in schema.defaults
    other_times = is_temporal(types[0]) and reading.reads_other_times([snapshot.commit.table])
    return None if has_default or other_times else types[0]
