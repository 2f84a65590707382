"""Embeds Bloom filters into all Parquet files of a lake; each task handles one shard of files.

Every file is replaced atomically, so the lake stays readable if the job fails or is stopped, and the job can be run
again. Spark's listing of the path is refreshed. A DataFrame that was created before has the old file sizes: create it
again. For an index of lakebloom these files have changed: refresh it afterwards.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from lakebloom.calls import typed_call
from lakebloom.display.progress import Progress, shown
from lakebloom.display.tables import Printable
from lakebloom.errors import LakebloomError, NoFilesError, StorageError
from lakebloom.index.build.plan import RejectedFile, Shard, shard_files
from lakebloom.index.operation import new_operation_id
from lakebloom.parquet.embedding import column_names, embed
from lakebloom.sbbf import sizing
from lakebloom.spark.build.job import failures_named, interruptible, parallelism
from lakebloom.spark.build.tasks import answers
from lakebloom.tables.listing.listing import list_files
from lakebloom.tuning import PROGRESS_INTERVAL_S

if TYPE_CHECKING:
    import os

    from pyspark.sql import SparkSession

    from lakebloom.display.progress import ProgressOption
    from lakebloom.tables.file_identity import TableFile

__all__ = ["EmbedLakeReport", "embed_lake"]


@dataclass(frozen=True, slots=True)
class EmbedLakeReport(Printable):
    """The result of embedding filters into the files of a lake."""

    path: str
    files: int
    """Files that have filters now."""
    rows: int
    filters: int
    bytes: int
    """Their size before."""
    bytes_added: int
    skipped: tuple[RejectedFile, ...]
    """Files that were not changed, each with the reason."""
    elapsed_s: float


class _Result(msgspec.Struct, frozen=True):
    """The result of one task."""

    files: int = 0
    rows: int = 0
    filters: int = 0
    bytes: int = 0
    bytes_added: int = 0
    skipped: tuple[RejectedFile, ...] = ()


@dataclass(frozen=True, slots=True)
class _Request:
    columns: tuple[str, ...]
    fpp: float
    force: bool
    options: Mapping[str, str]


@typed_call
def embed_lake(
    spark: SparkSession,
    path: str | os.PathLike[str],
    columns: Sequence[str],
    fpp: float = 0.01,
    *,
    force: bool = False,
    options: Mapping[str, str] | None = None,
    progress: ProgressOption = None,
) -> EmbedLakeReport:
    """Add filters for ``columns`` to each Parquet file at ``path`` (a directory, a file or a glob pattern), in place.

    A file that lacks a column or is damaged is not changed, and is reported with the reason. ``progress`` is that of
    ``Lakebloom.create_index``; ``fpp``, ``force`` and ``options`` are those of ``lakebloom.parquet.embed``.

    Raises UnsupportedSourceError for files that belong to a Delta Lake, Iceberg or Hudi table, NoFilesError,
    NotFoundError, InvalidArgumentError, and BuildFailedError if the Spark job fails.
    """
    started = time.perf_counter()
    request = _Request(tuple(column_names(columns)), sizing.rate_argument(fpp), force, dict(options or {}))
    location = str(path)
    files = list_files([location], request.options)
    if not files:
        raise NoFilesError(f"there are no files at {location}", hint="check the path")
    with shown(f"embedding filters in {location}", progress) as tell:
        shards = shard_files(files, parallelism(spark))
        with (
            _watched(location, files, request.options, tell),
            failures_named("the Spark job that embeds filters failed"),
            interruptible(spark, f"lakebloom-{new_operation_id()}"),
        ):
            results = answers(spark, shards, partial(embed_shard, request), _Result)
        spark.catalog.refreshByPath(location)
        report = _summary(location, results, time.perf_counter() - started)
        if tell is not None:
            tell(_progress(files, files, report.rows))
    return report


def embed_shard(request: _Request, shard: Shard) -> _Result:
    """Embed filters into the files of one shard, in a task. A task that is tried again replaces its own filters."""
    reports, skipped = [], []
    for file in shard.files:
        try:
            done = embed(
                file.uri, None, list(request.columns), request.fpp, force=request.force, options=request.options
            )
        except LakebloomError as error:
            skipped.append(RejectedFile(file.uri, error.code, str(error)))
        else:
            reports.append(done)
    return _Result(
        files=len(reports),
        rows=sum(report.rows for report in reports),
        filters=sum(report.filters for report in reports),
        bytes=sum(report.bytes_before for report in reports),
        bytes_added=sum(report.bytes_added for report in reports),
        skipped=tuple(skipped),
    )


def _summary(path: str, results: Sequence[_Result], elapsed_s: float) -> EmbedLakeReport:
    return EmbedLakeReport(
        path=path,
        files=sum(result.files for result in results),
        rows=sum(result.rows for result in results),
        filters=sum(result.filters for result in results),
        bytes=sum(result.bytes for result in results),
        bytes_added=sum(result.bytes_added for result in results),
        skipped=tuple(sorted((file for result in results for file in result.skipped), key=lambda file: file.uri)),
        elapsed_s=elapsed_s,
    )


@contextmanager
def _watched(
    location: str,
    files: Sequence[TableFile],
    options: Mapping[str, str],
    report: Callable[[Progress], None] | None,
) -> Iterator[None]:
    """Call ``report`` at the start and whenever files have changed; they are listed again to see this."""
    if report is None:
        yield
        return
    stop = threading.Event()

    def look() -> None:
        shown = 0
        while not stop.wait(PROGRESS_INTERVAL_S):
            try:
                now = set(list_files([location], options))
            except StorageError:
                continue  # only the progress display fails; the next listing may work
            changed = [file for file in files if file not in now]
            if len(changed) > shown:
                shown = len(changed)
                report(_progress(files, changed, 0))

    watcher = threading.Thread(target=look, name="lakebloom-progress", daemon=True)
    report(_progress(files, (), 0))
    watcher.start()
    try:
        yield
    finally:
        stop.set()
        watcher.join()


def _progress(files: Sequence[TableFile], done: Sequence[TableFile], rows: int) -> Progress:
    return Progress(
        files_done=len(done),
        files=len(files),
        bytes_done=sum(file.size_bytes for file in done),
        bytes=sum(file.size_bytes for file in files),
        rows_done=rows,
    )
