"""What all parts of ``Lakebloom`` share: the location, the session, and open readers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakebloom.display.visible import visible
from lakebloom.errors import (
    IndexNotFoundError,
    InvalidArgumentError,
    LakebloomError,
    UnsupportedSessionError,
    UnsupportedSourceError,
)
from lakebloom.index.as_of import NEWEST
from lakebloom.index.catalog import Catalog
from lakebloom.index.current_table import logged_table, recorded_table, table_at
from lakebloom.index.query.reader import Reader
from lakebloom.index.threads import closed, opened

# Modules that only building and maintaining need are imported where they are used, so that a lookup starts sooner.

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping
    from contextlib import AbstractContextManager

    from pyspark.sql import SparkSession

    from lakebloom.display.progress import ProgressOption, Report
    from lakebloom.index.as_of import AsOf
    from lakebloom.index.build.run import Workshop
    from lakebloom.index.current_table import CurrentTable
    from lakebloom.index.lookup.lookup import Lookups
    from lakebloom.index.query.join_filters import JoinFilters
    from lakebloom.index.settings import Settings
    from lakebloom.index.snapshot import Snapshot
    from lakebloom.predicate.tree import Predicate
    from lakebloom.spark.auto_refresh import WriteWatch
    from lakebloom.spark.rule.install import Skipping
    from lakebloom.spark.sources.catalog_tables import CatalogTables
    from lakebloom.store.records import Commit

__all__ = ["LakeState"]

_PATIENCE_S = 5.0
"""How long to list the location for a better error message."""


def _require_session(spark: object) -> None:
    if spark is not None and not hasattr(spark, "createDataFrame"):
        raise InvalidArgumentError(
            "the first argument must be a Spark session",
            found=spark,
            hint='Lakebloom(spark, "/path/to/indexes"), or Lakebloom(location="/path/to/indexes") without Spark; '
            "the table is an argument of create_index",
        )


class LakeState:
    """The location of the indexes, and the session if there is one."""

    def __init__(
        self,
        spark: SparkSession | None = None,
        location: str | os.PathLike[str] | None = None,
        *,
        options: Mapping[str, str] | None = None,
    ) -> None:
        _require_session(spark)
        chosen = location
        if spark is not None:
            from lakebloom.spark.conf import default_location
            from lakebloom.spark.versions import require_connect

            require_connect(spark)
            chosen = location or default_location(spark)
        self._spark = spark
        if chosen is None:
            raise InvalidArgumentError(
                "without a Spark session, the location of the indexes must be given",
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
        self._published: dict[str, Commit] = {}
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
        """The location of the indexes, as a URI."""
        return self._catalog.location

    @property
    def catalog(self) -> Catalog:
        """The logs and files of the indexes, for tools."""
        return self._catalog

    def _current(self, snapshot: Snapshot) -> CurrentTable:
        """Return the table of an index as it is now: from the session's catalog, or as the index recorded it."""
        if self._spark is None or snapshot.commit.table.catalog is None:
            return recorded_table(snapshot, self._catalog.options)
        if self._tables is None:
            from lakebloom.spark.sources.catalog_tables import CatalogTables

            self._tables = CatalogTables(self._spark, self._catalog.options)
        return self._tables.of_snapshot(snapshot)

    def _settings(self) -> Settings:
        from lakebloom.index.settings import Settings

        if self._spark is None:
            return Settings()
        from lakebloom.spark.conf import settings_of

        return settings_of(self._spark)

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

    def _predicate(self, name: str, predicate: Predicate | str, as_of: AsOf = NEWEST) -> Predicate:
        """Return a predicate that was made with ``col``, or parse its SQL text."""
        if not isinstance(predicate, str):
            return predicate
        from lakebloom.predicate.sql.parse import parse

        table = self._catalog.index(name).log.newest().table
        if table.is_of_session:
            snapshot = self._reader(name).snapshot()
            table = table_at(snapshot, self._catalog.options, as_of, self._current).record
        elif table.snapshot is not None:
            table = logged_table(table, self._catalog.options, as_of).record
        return parse(predicate, table.schema.types.items(), case_sensitive=table.case_sensitive)

    def close(self) -> None:
        """Release what this object holds: the optimizer rule, callbacks, threads, watches and caches.

        Later queries of the session read all files. Closing twice is fine. The object can be used again: it then opens
        what it needs.
        """
        writes, skipping = self._writes, self._skipping
        self._writes = self._skipping = self._known_join_filters = None
        if writes is not None:
            writes.close()
        if skipping is not None:
            skipping.close()
        self._readers, self._lookups = {}, {}
        self._catalog.release()
        closed(self)

    def _timeout_s(self) -> float:
        # Reads one key only: a query waits for this, and reading all keys takes longer.
        from lakebloom.index.settings import TIMEOUT_KEY, Settings

        value = None if self._spark is None else self._spark.conf.get(TIMEOUT_KEY, None)
        return Settings.parse({} if value is None else {TIMEOUT_KEY: value}).query_timeout_ms / 1000

    def _publish(self) -> Mapping[str, Commit | Exception]:
        """Pass the newest commits of all indexes to the optimizer rule, and return them.

        An index that does not answer keeps its last known commit.
        """
        if self._skipping is None:
            return {}
        timeout_s = self._timeout_s()
        try:
            found = self._catalog.newest_commits(timeout_s)
        except TimeoutError as error:
            found = {**self._published, self.location: error}
        for name, commit in found.items():
            if isinstance(commit, TimeoutError) and name in self._published:
                found[name] = self._published[name]
        self._published = {name: commit for name, commit in found.items() if not isinstance(commit, Exception)}
        self._skipping.publish(self._published.values())
        return found

    def _shown(self, title: str, progress: ProgressOption) -> AbstractContextManager[Report | None]:
        """Show the progress of an operation."""
        from lakebloom.display.progress import shown

        if self._spark is None or progress is False or callable(progress):
            return shown(title, progress)
        from lakebloom.spark.build.progress import spark_bar_quieter

        return shown(title, progress, quieten=spark_bar_quieter(self._spark))

    def _suggested(self, error: IndexNotFoundError) -> IndexNotFoundError:
        """Return the error with the most similar name of an existing index as a hint."""
        import difflib
        from contextlib import suppress

        from lakebloom.timeout import within

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
