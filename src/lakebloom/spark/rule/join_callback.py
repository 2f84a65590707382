"""What Java calls about a join: which files a global filter knows, then the filter itself."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import msgspec

from lakebloom.errors import IndexStateError, LakebloomError, StaleIndexError
from lakebloom.index.query.pruning import resolver
from lakebloom.index.query.scans import Reading, why_not
from lakebloom.index.timeout import within
from lakebloom.predicate.reasons import Reason
from lakebloom.spark.joins import filter_words
from lakebloom.spark.rule.callback import Callback
from lakebloom.spark.rule.wire import file_lines
from lakebloom.tables.file_identity import spark_file

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakebloom.index.query.join_filters import JoinFilters
    from lakebloom.index.query.reader import Reader
    from lakebloom.index.query.scans import ScanPruner
    from lakebloom.index.settings import Settings
    from lakebloom.index.snapshot import Snapshot
    from lakebloom.tables.columns import ColumnPath

__all__ = ["JoinCallback"]


class JoinQuestion(Reading, frozen=True):
    """How the indexed side is read, and what is asked: first without ``missing``, then with it."""

    index: str
    column: tuple[str, ...]
    known: str
    """The fingerprint of the files that the asker knows."""
    missing: tuple[tuple[str, int, int, str | None], ...] | None = None
    """The files that the index does not know."""
    filter: str = ""
    """The fingerprint of the filter that the asker has."""


class JoinCallback(Callback):
    """Answers questions about global filters."""

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

    def apply(self, question: str) -> str:
        """Return the answer, as JSON: what was asked for, or a reason. Never raises."""
        self.asked += 1
        try:
            decoded = msgspec.json.decode(question, type=JoinQuestion)
            settings = self._settings()
            answer = self._in_time(decoded, settings)
        except TimeoutError as error:
            answer = self._failed(Reason.TIMED_OUT, error)
        except IndexStateError:
            answer = {"reason": Reason.DELETED.value}
        except StaleIndexError:
            answer = {"reason": Reason.STALE_FILTER.value}
        except (LakebloomError, Exception) as error:
            answer = self._failed(Reason.INDEX_UNREADABLE, error)
        return msgspec.json.encode(answer).decode()

    def _in_time(self, question: JoinQuestion, settings: Settings) -> dict[str, Any]:
        if self._scan_pruner.is_resting(question.index):
            return {"reason": Reason.TIMED_OUT.value}
        try:
            return within(settings.query_timeout_ms / 1000, lambda: self._answer(question, settings))
        except TimeoutError:
            self._scan_pruner.rest(question.index)
            raise

    def _failed(self, reason: Reason, error: Exception) -> dict[str, Any]:
        self.warn_once(reason.value, "a join is not filtered, %s: %s", reason.value, str(error) or repr(error))
        return {"reason": reason.value}

    def _answer(self, question: JoinQuestion, settings: Settings) -> dict[str, Any]:
        snapshot = self._reader(question.index).snapshot()
        if not _same_values(snapshot, question, question.column):
            return {"reason": Reason.READ_DIFFERS.value}
        if question.missing is None:
            files = None if question.known == snapshot.fingerprint else file_lines(snapshot.numbered_files[0])
            return {"fingerprint": snapshot.fingerprint, "files": files}
        if question.known != snapshot.fingerprint:
            return {"reason": Reason.STALE_FILTER.value}  # refreshed since, so that other files may be missing
        missing = [spark_file(*file) for file in question.missing]
        found = self._filters.of(snapshot, question.column, [*missing, *self._filters.changed(snapshot)], settings)
        words = None
        if question.filter != found.fingerprint:
            words = base64.b64encode(filter_words(found.filter).astype("<i4", copy=False).tobytes()).decode()
        return {
            "filter": found.fingerprint,
            "words": words,
            "rate": found.rate,
            "bytes": found.filter.num_bytes,
            "merged": found.files_merged,
        }


def _same_values(snapshot: Snapshot, reading: Reading, column: ColumnPath) -> bool:
    """Tell whether the query reads exactly the values that were indexed, in their own type."""
    if why_not(snapshot.commit.table, reading) is not None:
        return False
    schema, found = reading.read_schema([snapshot.commit.table]), resolver(snapshot)(column)
    types = [known.type for known in snapshot.commit.config.columns if known.path == found]
    return len(types) == 1 and schema.reads_as(column, types[0]) and not schema.has_default(column)
