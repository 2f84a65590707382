"""``enable(auto_refresh=True)``: refreshes an index after the session wrote to its table.

``WriteWatch.java`` is a query listener: after each write it reports the location. ``AutoRefresh`` refreshes the indexes
in a background thread, so writes do not wait for it and cannot fail because of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lakebloom.errors import BuildFailedError, LakebloomError, UnsupportedSessionError
from lakebloom.index.maintain.auto_refresh import AutoRefresh, Written, indexes_over
from lakebloom.spark.error_cause import cause
from lakebloom.spark.jvm import is_stopped, new_object
from lakebloom.spark.rule.callback import Callback
from lakebloom.spark.rule.exposed import exposed, new_secret, withdraw
from lakebloom.spark.sources.resolve import is_connect
from lakebloom.storage import from_decoded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from pyspark.sql import SparkSession

    from lakebloom.store.records import Commit

__all__ = ["WriteWatch"]

_LISTENED_S = 60
"""How long to wait for Spark's listener bus. It is milliseconds behind, unless another listener blocks it."""


class WriteWatch:
    """Listens to the writes of one session, for one Lakebloom object."""

    def __init__(
        self,
        spark: SparkSession | None,
        commits: Callable[[], Mapping[str, Commit | Exception]],
        refresh: Callable[[str], object],
    ) -> None:
        """``commits`` returns the newest commit of each index. Raises UnsupportedSessionError."""
        if spark is None or is_connect(spark):
            raise UnsupportedSessionError(
                "auto_refresh needs a classic Spark session",
                found="no session" if spark is None else "a Spark Connect session, which does not report its writes",
                hint="call lake.refresh_index(name) after the write, or run `lakebloom refresh --all` on a schedule",
            )
        from pyspark.java_gateway import ensure_callback_server_started

        self._spark: Any = spark
        self._commits = commits
        self._refresh_index = refresh
        ensure_callback_server_started(self._spark.sparkContext._gateway)  # type: ignore[no-untyped-call]
        self.background = AutoRefresh(self._indexes, self._refresh)
        secret = new_secret()
        self._exposed = exposed(_WriteCallback(self.background), secret)
        self._java = new_object(spark, "WriteWatch", self._spark._jsparkSession, self._exposed, secret)

    def start(self) -> None:
        """Start listening."""
        if not self.background.running:
            self.background.start()
            self._listeners().register(self._java)

    def stop(self) -> None:
        """Stop listening, and start no other refresh."""
        if self.background.running:
            self.background.stop()
            self._listeners().unregister(self._java)

    def close(self) -> None:
        """Stop, and release the callback in Java."""
        if is_stopped(self._spark):
            self.background.stop()
        else:
            self.stop()
        withdraw(self._spark, [self._exposed])

    def wait(self, timeout_s: float | None) -> bool:
        """Wait for the refreshes of all finished writes. Returns False if some are left after the timeout."""
        limit_s = _LISTENED_S if timeout_s is None else timeout_s
        try:
            self._spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(round(limit_s * 1000))
        except Exception:
            if not is_stopped(self._spark):
                return False  # another listener blocks the bus
        return self.background.wait(timeout_s)

    def _refresh(self, name: str) -> None:
        try:
            self._refresh_index(name)
        except LakebloomError:
            if not is_stopped(self._spark):
                raise
        except Exception as error:
            if not is_stopped(self._spark):
                raise BuildFailedError(f"cannot refresh index {name!r}", found=cause(error)) from error

    def _listeners(self) -> Any:
        return self._spark._jsparkSession.listenerManager()

    def _indexes(self, written: Iterable[Written]) -> list[str]:
        return indexes_over(self._commits(), map(self._located, written))

    def _located(self, written: Written) -> Written:
        """Return a write with the locations of its tables: an index may be on the path of a table."""
        return Written((*written.paths, *self._places(written.tables)), written.tables)

    def _places(self, tables: Iterable[tuple[str, ...]]) -> Iterator[str]:
        for table in tables:
            location = self._java.location(*table)
            if location is not None:
                yield from_decoded(location)


class _WriteCallback(Callback[Written]):
    """What Java calls after a write."""

    kind = Written

    def __init__(self, background: AutoRefresh) -> None:
        super().__init__()
        self._background = background

    def reply(self, request: Written) -> None:
        """Note the write. Never waits."""
        self._background.wrote(Written(tuple(_canonical(request.paths)), request.tables))

    def failure(self, request: Written | None, error: Exception) -> None:
        """Log that the write was not noticed."""
        problem = repr(error)
        self.warn_once(problem, "a write was not noticed, and refreshes no index: %s", problem)


def _canonical(paths: Iterable[str]) -> Iterator[str]:
    for path in paths:
        try:
            yield from_decoded(path)
        except LakebloomError:
            continue  # a location that no index can be on
