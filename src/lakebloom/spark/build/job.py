"""The build job: each task writes one segment. It uses only the DataFrame API, and so runs on Spark Connect too.

Tasks read Parquet files that Python can open with PyArrow; no value passes through the JVM. Spark scans all other files
(other formats, other file systems), hashes in the JVM, and sends hashes sorted by file; see ``spark_reader.py``. Both
give the same filters, byte for byte.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa

from lakebloom.display.progress import Progress
from lakebloom.errors import BuildFailedError, EncryptedFileError, InvalidArgumentError
from lakebloom.index.build.in_process import build_here, is_small
from lakebloom.index.build.plan import BuildPlan, BuildResult, Shard, ShardResult
from lakebloom.index.build.task import build_segment
from lakebloom.sbbf.kernels.choose import load_compiled
from lakebloom.spark.build.changed_files import settled, with_rejected, without_changed
from lakebloom.spark.build.global_filters import GlobalFilters, merge_partials, partial_rows
from lakebloom.spark.build.progress import progress_of, watch
from lakebloom.spark.build.results import CapturedFiles, captured_rows, result_row
from lakebloom.spark.build.spark_reader import scan_tasks, session_for_scan, with_empty
from lakebloom.spark.build.tasks import shard_tasks
from lakebloom.spark.error_cause import cause
from lakebloom.spark.sources.catalog_tables import CatalogTables
from lakebloom.spark.sources.listing import list_table, reachable
from lakebloom.spark.sources.resolve import is_connect
from lakebloom.spark.versions import ctrl_c_interrupts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakebloom.index.catalog import Catalog, Index
    from lakebloom.index.current_table import CurrentTable
    from lakebloom.storage import Storage
    from lakebloom.store.merge import RunRanges
    from lakebloom.store.records import TableRecord
    from lakebloom.tables.file_identity import TableFile

_RANGE = 1 << 16
_KEYS_SETTING = "parquet.crypto.factory.class"
"""parquet-java finds keys with this setting."""
_NOT_INSTALLED = "No module named 'lakebloom'"


class SparkBuilder:
    """Lists tables and builds segments with a Spark session."""

    def __init__(self, spark: SparkSession, catalog: Catalog, driver_max_bytes: int = 0) -> None:
        self._spark = spark
        self._catalog = catalog
        self._driver_max_bytes = driver_max_bytes
        self._tables = CatalogTables(spark, catalog.options)

    def table(self, record: TableRecord) -> CurrentTable:
        """Return the table as its catalog or its log describes it now; a path does not change."""
        return self._tables.current(record)

    def list_files(self, table: CurrentTable) -> list[TableFile]:
        """Return the table's files as they are now."""
        return list_table(self._spark, table, self._catalog.options)

    def parallelism(self) -> int:
        """Return how many tasks run at once."""
        return parallelism(self._spark)

    def require_buildable(self, plan: BuildPlan, table: TableRecord, files: Sequence[TableFile]) -> None:
        """Raise an error if Spark has to read the files, but may not or cannot."""
        if not _is_scanned(plan, table, files):
            return
        if table.format == "parquet" and not plan.allow_plaintext_filters:
            _require_no_keys(self._spark, table)
        if plan.granularity not in ("auto", "file"):  # automatic units of such files are files
            raise InvalidArgumentError(
                "Spark's own scan, which reads these files, gives no row positions",
                found=f"granularity {plan.granularity!r}",
                hint='use granularity="file"',
            )

    def merger(self, index: Index) -> RunRanges | None:
        """Return what merges segments in a Spark job; None for an index that only the driver can reach."""
        from lakebloom.spark.merge import spark_merger

        return spark_merger(self._spark, index)

    def build(
        self,
        plan: BuildPlan,
        table: TableRecord,
        shards: Sequence[Shard],
        progress: Callable[[Progress], None] | None,
    ) -> BuildResult:
        """Run the tasks and collect their results. A small build runs here, without a job."""
        storage = self._catalog.index(plan.index_uri.rpartition("/")[2]).storage
        files = [file for shard in shards for file in shard.files]
        scanned = _is_scanned(plan, table, files)
        shards, too_new = settled(shards)
        if not scanned and is_small(files, self._driver_max_bytes) and _runs_here(self._spark):
            result = build_here(plan, shards, storage, lambda done: _report(progress, shards, done))
        else:
            result = self._run_job(plan, table, shards, storage, progress, scanned=scanned)
        result = with_rejected(result, too_new)
        if [done.shard for done in result.shards] != [shard.number for shard in shards]:
            raise BuildFailedError(
                "the Spark job lost or repeated a shard of files",
                found=f"{len(result.shards)} answers for {len(shards)} shards",
                hint="try again, and report this",
            )
        _report(progress, shards, result.shards)
        return result

    def _run_job(
        self,
        plan: BuildPlan,
        table: TableRecord,
        shards: Sequence[Shard],
        storage: Storage,
        progress: Callable[[Progress], None] | None,
        *,
        scanned: bool,
    ) -> BuildResult:
        capture = not reachable(plan.index_uri)
        with (
            watch(storage, plan, shards, progress),
            failures_named("the Spark job that builds the index failed"),
            interruptible(self._spark, f"lakebloom-{plan.build_id}"),
        ):
            if not any(shard.files for shard in shards):
                rows = []
            elif scanned:
                with session_for_scan(self._spark, self.parallelism(), table):
                    rows = _merged(scan_tasks(self._spark, plan, table, shards, capture=capture), plan).collect()
            else:
                rows = _merged(_parquet_tasks(self._spark, plan, shards, capture=capture), plan).collect()
        result = _gathered(rows, storage, plan)
        if scanned or not rows:
            result = with_empty(result, plan, storage, shards)
            result = without_changed(result, plan, storage, shards, self.list_files(self.table(table)))
        return result


def _runs_here(spark: SparkSession) -> bool:
    """Return whether tasks run on this machine, not on a cluster or behind a Connect server."""
    return not is_connect(spark) and re.fullmatch(r"local(\[.*\])?", spark.sparkContext.master or "") is not None


def _report(
    progress: Callable[[Progress], None] | None, shards: Sequence[Shard], results: Sequence[ShardResult]
) -> None:
    """Return the progress of a build from the results of its shards."""
    if progress is not None:
        rows = {done.shard: 0 if done.segment is None else done.segment.num_rows for done in results}
        progress(progress_of(shards, rows))


def _is_scanned(plan: BuildPlan, table: TableRecord, files: Sequence[TableFile]) -> bool:
    """Return whether Spark reads the files instead of the tasks."""
    return table.format != "parquet" or plan.allow_plaintext_filters or not all(map(_is_reachable, files))


def _is_reachable(file: TableFile) -> bool:
    return reachable(file.uri)


def _require_no_keys(spark: SparkSession, table: TableRecord) -> None:
    """Refuse a scan that may decrypt columns: their filters would reveal the values."""
    given = {key.lower(): value for key, value in table.options.items()}.get(_KEYS_SETTING)
    found = given or spark.conf.get(_KEYS_SETTING, "") or spark.conf.get(f"spark.hadoop.{_KEYS_SETTING}", "")
    if not found and not is_connect(spark):
        found = spark._jsparkSession.sessionState().newHadoopConf().get(_KEYS_SETTING)
    if found:
        raise EncryptedFileError(
            "Spark decrypts these files, and filters of encrypted columns would reveal their values",
            found=f"{_KEYS_SETTING}={found}",
            hint="if that is acceptable, create the index with allow_plaintext_filters=True",
        )


@contextmanager
def interruptible(spark: SparkSession, tag: str) -> Iterator[None]:
    """Cancel the jobs of a block that Ctrl-C ends.

    Spark's own handler fails if the signal comes while Python waits for Java: its call would use the connection that
    is waiting. Here that call is over, and only the jobs of the block are cancelled.
    """
    # In a classic session, only tags of the Spark context reach the jobs that Python starts.
    add, cancel, remove = (
        (spark.addTag, spark.interruptTag, spark.removeTag)
        if is_connect(spark)
        else (
            spark.sparkContext.addJobTag,
            spark.sparkContext.cancelJobsWithTag,
            spark.sparkContext.removeJobTag,
        )
    )
    add(tag)
    try:
        with ctrl_c_interrupts():
            yield
    except KeyboardInterrupt:
        with suppress(Exception):
            cancel(tag)
        raise
    finally:
        with suppress(Exception):
            remove(tag)


def parallelism(spark: SparkSession) -> int:
    """Return how many tasks a session runs at once."""
    if not is_connect(spark):
        return int(spark.sparkContext.defaultParallelism)
    from pyspark.sql import functions as F  # noqa: N812

    # Connect has no call for this, but it divides a range into as many partitions.
    parts = spark.range(_RANGE).select(F.spark_partition_id().alias("part"))
    return int(parts.agg(F.max("part")).collect()[0][0]) + 1


def _merged(tasks: DataFrame, plan: BuildPlan) -> DataFrame:
    return tasks if plan.global_blocks is None else merge_partials(tasks)


@contextmanager
def failures_named(failed: str) -> Iterator[None]:
    """Raise BuildFailedError with the error of Spark for a job that failed."""
    try:
        yield
    except Exception as error:
        found = cause(error)
        hint = "see Spark's log for the task"
        if _NOT_INSTALLED in found:
            hint = "install lakebloom in the Python of Spark's workers, or set PYSPARK_PYTHON to one that has it"
        raise BuildFailedError(failed, found=found, hint=hint) from error


def _gathered(rows: list[Any], storage: Storage, plan: BuildPlan) -> BuildResult:
    filters = GlobalFilters(plan)
    results: list[ShardResult] = []
    for row in rows:
        payload = bytes(row["payload"])
        match row["kind"]:
            case "file":
                storage.write(row["name"], payload)
            case "partial":
                filters.take(row["name"], row["number"], payload)
            case "result":
                results.append(msgspec.json.decode(payload, type=ShardResult))
    return BuildResult(sorted(results, key=lambda result: result.shard), filters.finished())


def _parquet_tasks(spark: SparkSession, plan: BuildPlan, shards: Sequence[Shard], *, capture: bool) -> DataFrame:
    return shard_tasks(spark, shards, partial(run_shard, plan, capture=capture))


def run_shard(plan: BuildPlan, shard: Shard, *, capture: bool) -> Iterator[pa.RecordBatch]:
    """Build one segment in a task, and yield what the driver needs."""
    load_compiled()  # many small arrays, in a process that runs many tasks
    captured = CapturedFiles(plan.index_uri) if capture else None
    result, global_filters = build_segment(plan, shard, captured)
    if captured is not None:
        yield from captured_rows(captured, result)
    for column, f in enumerate(global_filters):
        yield from partial_rows(column, f)
    yield result_row(result)
