"""Listing indexes, and reading rows through them."""

from __future__ import annotations

import pathlib
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from lakebloom.errors import (
    StorageError,
)
from lakebloom.index.arguments import as_of_arguments, column_list
from lakebloom.index.as_of import NEWEST
from lakebloom.index.current_table import table_at
from lakebloom.lake.state import LakeState

# Modules that only some methods need are imported where they are used, so that a lookup starts sooner.

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence
    from datetime import datetime

    import pyarrow as pa
    from pyspark.sql import DataFrame

    from lakebloom.display.tables import RecordTable
    from lakebloom.index.lookup.file_reads import Unindexed
    from lakebloom.index.maintain.status import IndexStatus
    from lakebloom.index.reports import IndexRecord, VersionRecord
    from lakebloom.predicate.tree import Predicate
    from lakebloom.spark.connect_reads import ConnectReads
    from lakebloom.tables.columns import ColumnPath

__all__ = ["Reading"]


class Reading(LakeState):
    """Lists indexes, and reads rows through them."""

    def indexes(self) -> RecordTable[IndexRecord]:
        """Return all indexes, also deleted ones. Those that cannot be read have the state "damaged" or "unreadable"."""
        from lakebloom.display.tables import RecordTable
        from lakebloom.index.reports import records_of

        return RecordTable(records_of(self._catalog))

    def index(self, name: str) -> IndexRecord:
        """Return one index as it is now."""
        from lakebloom.index.reports import IndexRecord

        return IndexRecord.of(self._catalog.index(name).log.newest())

    def status(self, name: str | None = None) -> RecordTable[IndexStatus]:
        """Compare an index, or all that are not deleted, with the table: coverage, lag, size, rate. Lists the table."""
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
        """Write an HTML page about an index, and return its path: coverage, sizes, rates, and what to do next.

        With a predicate, the page also shows which files it skips.
        """
        from lakebloom.report import gather, render

        chosen = None if predicate is None else self._predicate(name, predicate)
        page = render(gather(self._catalog, name, chosen, self._current)).encode()
        target = pathlib.Path(path)
        try:
            target.write_bytes(page)
        except OSError as error:
            raise StorageError(f"cannot write {target}", found=str(error), hint="choose another path") from error
        return target

    def columns(self, name: str) -> list[tuple[ColumnPath, str]]:
        """Return all columns of the table when it was indexed: the parts of each name, and its Spark type."""
        return list(self._catalog.index(name).log.newest().table.schema.types.items())

    def candidates(self, name: str, predicate: Predicate | str) -> pa.Table:
        """Return the units that can match: path, row_start, row_count, row_groups. Reads only the index.

        Here and everywhere, a predicate is made with ``col``, or is SQL text such as ``"user_id = 42"``.

        Unindexed files (new or changed since they were indexed) are not in the result.
        """
        return self._reader(name).candidates(self._predicate(name, predicate), self._current)

    def lookup(
        self,
        name: str,
        predicate: Predicate | str,
        columns: Sequence[str] | None = None,
        limit: int | None = None,
        *,
        unindexed: Unindexed = "scan",
        version: int | None = None,
        timestamp: datetime | str | None = None,
    ) -> pa.Table:
        """Return the rows that match the predicate, as a full scan would.

        ``unindexed`` says what to do with files that are new or changed since they were indexed: read them in full
        ("scan"), leave them out ("skip"), or raise an error ("error").

        A Delta or Iceberg table is read in its newest version, in another ``version`` (of Iceberg: a snapshot's id), or
        in the one that was the newest at a ``timestamp``: a datetime with a time zone, or a text such as
        "2024-05-01T12:00:00Z".
        """
        as_of = as_of_arguments(version, timestamp)
        predicate = self._predicate(name, predicate, as_of)
        if name not in self._lookups:
            from lakebloom.index.lookup.lookup import Lookups

            self._lookups[name] = Lookups(self._reader(name), self._current)
        return self._lookups[name].rows(predicate, column_list(columns), limit, unindexed, as_of)

    def register_source(self) -> None:
        """Register ``spark.read.format("lakebloom").load(name)`` with the session; works on Spark Connect too.

        The data source uses this object's location, unless a query names another; see docs/DATA_SOURCE.md.
        """
        from lakebloom.spark.versions import require_data_source

        require_data_source()
        from lakebloom.spark.data_source.source import register

        spark, _ = self._workshop(None)
        register(spark, self.location, options=self._catalog.options)
        self._registered = True

    def read(
        self,
        name: str,
        predicate: Predicate | str | None = None,
        columns: Sequence[str] | None = None,
        *,
        version: int | None = None,
        timestamp: datetime | str | None = None,
    ) -> DataFrame:
        """Return the rows that match the predicate as a DataFrame, read through the index by the data source.

        A Delta or Iceberg table is read in the version that is the newest now, or in the one that ``version`` or
        ``timestamp`` names, as in ``lookup``.
        """
        as_of = as_of_arguments(version, timestamp)
        from lakebloom.spark.versions import require_data_source

        require_data_source()
        from lakebloom.spark.data_source.source import changed_table, load

        spark, _ = self._workshop(None)
        if not self._registered or self._catalog.options:  # another object may have registered its options since
            self.register_source()
        chosen = None if predicate is None else self._predicate(name, predicate, as_of)
        snapshot = self._reader(name).snapshot()
        if as_of == NEWEST:
            changed = changed_table(snapshot, self._current)
        else:
            changed = table_at(snapshot, self._catalog.options, as_of, self._current)
        table = snapshot.commit.table if changed is None else changed.record
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
            self._reads.add(frame, name, snapshot.commit.version)
        return frame

    @cached_property
    def _reads(self) -> ConnectReads | None:
        from lakebloom.spark.sources.resolve import is_connect

        if self._spark is None or not is_connect(self._spark):
            return None
        from lakebloom.spark.connect_reads import ConnectReads

        return ConnectReads(self._spark)
