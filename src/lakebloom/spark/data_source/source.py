"""``spark.read.format("lakebloom")``: a Python data source that reads a table through an index.

It needs no optimizer rule, so it works on Spark Connect and in SQL. It skips all units; the rule only skips files.
Spark plans a scan in a Python process on the driver, which probes the index and lists the table. Tasks read row groups
and pages of the files with PyArrow. Spark checks every row with the conditions of the query. If the index cannot be
used, more is read.

The option ``where`` decides what is skipped. Conditions of the query are used only with the option ``readOnce``, which
promises that no other query uses the loaded DataFrame: Spark 4.1 to 4.3 keep the tasks that were planned for one query,
and reuse them for the next query on the same DataFrame or view, which then misses rows.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import pickle
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
from msgspec.structs import replace
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from lakebloom.errors import CorruptIndexError, UnsupportedSourceError
from lakebloom.index.catalog import Catalog
from lakebloom.index.current_table import CurrentTable, logged_table, pinned_table, recorded_table
from lakebloom.index.lookup.explain_reads import explain_reads, plan_reads, unreadable_report
from lakebloom.index.lookup.file_reads import FileShape, Read, batches_of, file_shapes, packed
from lakebloom.index.query.query_reports import ScanFigures
from lakebloom.index.query.reader import Reader, require_predicate
from lakebloom.index.query.scan_reports import ScanReport
from lakebloom.predicate.rows.evaluate import row_mask
from lakebloom.predicate.tree import And, Predicate, to_json
from lakebloom.spark.conf import default_location
from lakebloom.spark.data_source.options import SourceOptions
from lakebloom.spark.data_source.pushed_filters import predicate_of
from lakebloom.spark.data_source.schema import SourceSchema
from lakebloom.spark.sources.listing import reachable
from lakebloom.spark.versions import loses_rows_without_columns, require_columns
from lakebloom.storage import normalise
from lakebloom.tables.file_identity import changed_ms
from lakebloom.tables.file_matching import ABSENT
from lakebloom.tables.parquet.rows import TableRows
from lakebloom.timeout import within

if TYPE_CHECKING:
    import os

    from pyspark.sql import DataFrame, SparkSession

    from lakebloom.index.snapshot import Snapshot
    from lakebloom.store.records import TableRecord
    from lakebloom.tables.file_identity import TableFile
    from lakebloom.tables.formats.partition_list import Values
    from lakebloom.tables.formats.table_snapshot import DataFile

__all__ = [
    "LakebloomReader",
    "LakebloomSource",
    "PushingReader",
    "explain_source",
    "load",
    "register",
    "source_reader",
    "task_figures",
]

_LOGGER = logging.getLogger(__name__)
_CLOCKS_DIFFER_MS = 60_000
"""How far the clocks of an object store and of this machine may differ."""
_REGISTERED: weakref.WeakKeyDictionary[SparkSession, type[LakebloomSource]] = weakref.WeakKeyDictionary()
"""What was last registered with a session; ``explain`` uses the same indexes."""


def register(
    spark: SparkSession, location: str | os.PathLike[str] | None = None, *, options: Mapping[str, str] | None = None
) -> None:
    """Register the format with a session, classic or Connect.

    ``location`` and ``options`` (of an object store) are the defaults for queries that name none; without them, the
    location of ``Lakebloom(spark)``.
    """
    defaults = {"location": normalise(location or default_location(spark)), "storage": dict(options or {})}
    # A new class for each registration: it carries the defaults to the processes that plan and read.
    source = type("RegisteredSource", (LakebloomSource,), defaults)
    spark.dataSource.register(source)
    _REGISTERED[spark] = source


def explain_source(spark: SparkSession, options: Mapping[str, str]) -> ScanReport:
    """Explain a scan of the data source with these options, as it would be planned now."""
    return source_reader(spark, options).report()


def source_reader(spark: SparkSession, options: Mapping[str, str]) -> LakebloomReader:
    """Return the reader that plans a scan with these options."""
    source = _REGISTERED.get(spark, LakebloomSource)(dict(options))
    return source.reader(source.schema())


def load(
    spark: SparkSession,
    index: str,
    predicate: Predicate | None = None,
    columns: Sequence[str] | None = None,
    *,
    table: TableRecord,
    location: str,
    timeout_ms: int | None = None,
    changed: CurrentTable | None = None,
) -> DataFrame:
    """Return the rows that match a predicate. The source must be registered; ``table`` is that of the index.

    ``changed`` is the table as it is now, if it differs from what the index recorded.

    Raises ColumnNotFoundError and InvalidArgumentError here: errors inside Spark reach the user only as text.
    """
    schema = SourceSchema(table)
    reader = spark.read.format(LakebloomSource.name()).option("location", location)
    if predicate is not None:
        require_predicate(predicate)
        reader = reader.option("where", to_json(schema.bound(predicate)).decode())
    unwanted = None
    if columns is not None:
        names = schema.names(columns)
        if not names and loses_rows_without_columns(spark.version):
            names = [unwanted := schema.any_column(predicate)]
        reader = reader.option("columns", ", ".join(map(_quoted, names)))
    if timeout_ms:
        reader = reader.option("timeoutMs", timeout_ms)
    if changed is not None:
        reader = reader.option("currentTable", changed.to_text())
    frame = reader.load(index)
    return frame if unwanted is None else frame.drop(unwanted)


def changed_table(snapshot: Snapshot, current: Callable[[Snapshot], CurrentTable]) -> CurrentTable | None:
    """Return the table of an index as it is now; None if it is what the index recorded."""
    now = current(snapshot)
    if now.snapshot is not None:
        return now  # pinned: the version that is the newest now
    try:
        recorded = recorded_table(snapshot)
    except CorruptIndexError:
        return now  # the index is damaged: use what the session knows
    table, partitions = recorded.record.with_partitions(None), recorded.partitions
    return None if (table, partitions) == (now.record.with_partitions(None), now.partitions) else now


def _quoted(name: str) -> str:
    """Return a quoted name, so that commas and dots in it have no meaning."""
    return "`" + name.replace("`", "``") + "`"


class LakebloomSource(DataSource):
    """A table that is read through one of its indexes."""

    location: ClassVar[str | None] = None
    storage: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def name(cls) -> str:
        """Return what stands behind ``format`` and ``USING``."""
        return "lakebloom"

    def schema(self) -> StructType:
        """Return the table's columns, or those that the option ``columns`` names."""
        return StructType.fromJson(json.loads(SourceSchema(self._table).output(self._options.columns)))

    def reader(self, schema: StructType) -> LakebloomReader:
        """Return what reads these columns of the table."""
        kind = PushingReader if self._options.read_once else LakebloomReader
        return kind(self._options, self._table, schema.json())

    @cached_property
    def _options(self) -> SourceOptions:
        return SourceOptions.parse(self.options, self.location, self.storage)

    @cached_property
    def _table(self) -> TableRecord:
        if self._options.current_table is not None:
            return _require_readable(CurrentTable.from_text(self._options.current_table).record)
        # Kept from here on: a query can be planned and run even if the index is lost meanwhile.
        table = _require_readable(_index(self._options).snapshot().commit.table)
        return logged_table(table, self._options.storage, self._options.as_of).record


class ReadTask(InputPartition):
    """The files that one task reads."""

    def __init__(
        self,
        reads: Sequence[Read],
        values: Mapping[str, Values] | None = None,
        index: str = "",
        listed: int = 0,
        logged: Mapping[str, DataFile] | None = None,
    ) -> None:
        """``values`` are the partition values of each directory, where a catalog has them.

        ``logged`` are the files of a table with a log: their partition values, and which of their rows are deleted.

        ``index`` and ``listed``, how many files the table has, are for who wants to know what was read.
        """
        self.index, self.listed = index, listed
        self.reads = tuple(reads)
        directories = {read.file.uri.rpartition("/")[0] for read in reads}
        self.values = None if values is None else {directory: values[directory] for directory in directories}
        self.logged = None if logged is None else {read.file.uri: logged[read.file.uri] for read in reads}


def task_figures(pickled: Sequence[bytes], rows: int | None) -> ScanFigures:
    """Return what the tasks of a scan read; Spark counted the rows."""
    tasks = [task for task in map(pickle.loads, pickled) if isinstance(task, ReadTask)]
    if not tasks:
        return ScanFigures("a scan by the source lakebloom", None, None, rows, None, None)
    reads = [read for task in tasks for read in task.reads]
    files = {read.file.uri: read.file.size_bytes for read in reads}
    whole = all(read.row_groups is None for read in reads)
    size = sum(files.values()) if whole else None
    return ScanFigures(f"index {tasks[0].index}", len(files), size, rows, tasks[0].listed, len(files))


class LakebloomReader(DataSourceReader):
    """Plans and reads one scan."""

    def __init__(self, options: SourceOptions, table: TableRecord, schema_json: str) -> None:
        schema = SourceSchema(table)
        self._options = options
        self._table = table
        self.where = None if options.where is None else schema.predicate(options.where)
        self._columns = schema.chosen(schema_json, self.where)
        self._predicate: Predicate = And(()) if self.where is None else self.where

    @property
    def index(self) -> str:
        """The name of the index."""
        return self._options.index

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The columns that the query names; None means all."""
        return self._options.columns

    def partitions(self) -> list[ReadTask]:
        """Return the tasks. Each reads about ``partitionBytes`` bytes."""
        require_columns(self._columns.names)
        table = self._current()
        listed = table.list_files(self._options.storage)
        try:
            reads, shapes = within(self._options.timeout_ms / 1000, lambda: self._planned(listed))
        except Exception as error:
            _LOGGER.warning("the index %s cannot be used, so all files are read: %s", self._options.index, error)
            reads, shapes = [Read(file, None) for file in listed], {}
        else:
            _report(self._options.index, listed, reads, shapes)
        shares = packed(reads, shapes, self._options.partition_bytes) or [()]
        return [ReadTask(share, table.values, self._options.index, len(listed), table.logged) for share in shares]

    def _current(self) -> CurrentTable:
        if self._table.snapshot is not None:
            return pinned_table(self._table, self._options.storage)
        if self._options.current_table is not None:
            return CurrentTable.from_text(self._options.current_table)
        if self._table.partitions is None:
            return CurrentTable(self._table)
        return CurrentTable(self._table, _index(self._options).snapshot().partitions)

    def _planned(self, listed: Sequence[TableFile]) -> tuple[list[Read], dict[TableFile, FileShape]]:
        return _index(self._options).with_newest(lambda snapshot: self._plan(snapshot, listed))

    def _plan(self, snapshot: Snapshot, listed: Sequence[TableFile]) -> tuple[list[Read], dict[TableFile, FileShape]]:
        planned = plan_reads(snapshot, self._table, self._predicate, listed)
        # Every task checks the whole predicate: shorter lists for each file would all be sent with the plan.
        reads = [replace(read, predicate=None) for read in planned.reads]
        return reads, {} if planned.pruned is None else file_shapes(snapshot, reads)

    def report(self) -> ScanReport:
        """Explain what ``partitions`` would return now. Conditions that Spark pushes down are not included."""
        listed = self._current().list_files(self._options.storage)
        reader = _index(self._options)
        ask = lambda: reader.with_newest(  # noqa: E731
            lambda snapshot: explain_reads(snapshot, self._table, self._predicate, listed)
        )
        try:
            found = within(self._options.timeout_ms / 1000, ask)
        except Exception as error:
            found = unreadable_report(self._options.index, self._table, listed, error)
        return dataclasses.replace(
            found,
            predicate="" if self.where is None else found.predicate,
            at_run_time=self._options.read_once,
        )

    def is_unchanged(self, version: int, since_ms: int) -> bool:
        """Return whether every plan since a time of this machine's clock equals the plan that would be made now.

        False if the index has another version, or if a file was written or may have been deleted since.
        """
        snapshot = _index(self._options).snapshot()
        if self._table.snapshot is not None:  # a version of a table never changes
            return snapshot.commit.version == version
        listed = self._current().list_files(self._options.storage)
        settled_ms = since_ms if all(file.uri.startswith("file:") for file in listed) else since_ms - _CLOCKS_DIFFER_MS
        return (
            snapshot.commit.version == version
            and all(changed_ms(file) < settled_ms for file in listed)
            and not np.any(snapshot.compared(listed).matched.places == ABSENT)
        )

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one task."""
        if not isinstance(partition, ReadTask):
            return  # nothing to read
        rows, columns, where = self._rows(partition), self._columns, self.where
        schema = rows.schema_of(columns.read)
        for read in partition.reads:
            for batch in batches_of(rows, read, schema, self._options.storage):
                table = pa.Table.from_batches([batch])
                if where is not None:
                    table = table.filter(row_mask(where, table, rows.types))
                yield from map(columns.shown, table.select(columns.names).to_batches())

    def _rows(self, task: ReadTask) -> TableRows:
        return TableRows(
            self._table.locations,
            self._columns.schema,
            self._table.partition_columns,
            self._options.storage,
            partition_values=task.values,
            logged=task.logged,
        )


class PushingReader(LakebloomReader):
    """Also uses the conditions that Spark pushes down: Spark 4.1 and later, combined with AND.

    Spark refuses it unless ``spark.sql.python.filterPushdown.enabled`` is set.
    """

    def pushFilters(self, filters: list[Any]) -> list[Any]:  # noqa: N802
        """Record the pushed filters as a predicate. All filters are returned: Spark checks the rows too."""
        self._predicate = And((self._predicate, predicate_of(filters)))
        return filters


def _index(options: SourceOptions) -> Reader:
    return Reader(Catalog(options.location, options.storage).index(options.index))


def _require_readable(table: TableRecord) -> TableRecord:
    unreachable = next((uri for uri in table.locations if not reachable(uri)), None)
    if table.format == "parquet" and unreachable is None:
        return table
    raise UnsupportedSourceError(
        "the lakebloom data source reads only Parquet files that Python can open",
        found=f"a {table.format} table" if unreachable is None else unreachable,
        hint="query the table with Spark, which lakebloom speeds up after enable()",
    )


def _report(
    index: str, listed: Sequence[TableFile], reads: Sequence[Read], shapes: Mapping[TableFile, FileShape]
) -> None:
    none = FileShape(0, 0)
    groups = sum(
        shapes.get(read.file, none).row_groups if read.row_groups is None else len(read.row_groups) for read in reads
    )
    _LOGGER.info(
        "index %s: reading %d of %d files, %d of the %d row groups in them that are indexed",
        *(index, len(reads), len(listed), groups, sum(shapes.get(read.file, none).row_groups for read in reads)),
    )
