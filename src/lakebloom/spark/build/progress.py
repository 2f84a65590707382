"""The progress of a running build: finished segments are found in storage, which works with every kind of session."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from lakebloom.display.progress import Progress
from lakebloom.errors import StorageError
from lakebloom.index.build.plan import BuildPlan, Shard
from lakebloom.tuning import PROGRESS_INTERVAL_S

if TYPE_CHECKING:
    from lakebloom.storage import Storage


@contextmanager
def watch(
    storage: Storage, plan: BuildPlan, shards: Sequence[Shard], report: Callable[[Progress], None] | None
) -> Iterator[None]:
    """Call ``report`` at the start and whenever shards are finished. Without a callback, do nothing."""
    if report is None:
        yield
        return
    watching = _Watching(storage, plan, shards)
    stop = threading.Event()

    def look() -> None:
        shown = 0
        while not stop.wait(PROGRESS_INTERVAL_S):
            try:
                progress = watching.look()
            except StorageError:
                continue  # only the progress display fails; the next try may work
            if progress.files_done > shown:
                shown = progress.files_done
                report(progress)

    watcher = threading.Thread(target=look, name="lakebloom-progress", daemon=True)
    report(progress_of(shards, {}))
    watcher.start()
    try:
        yield
    finally:
        stop.set()
        watcher.join()


def progress_of(shards: Sequence[Shard], rows_of: dict[int, int]) -> Progress:
    """Return the progress if the shards in ``rows_of`` are finished, with these numbers of rows."""
    done = [shard for shard in shards if shard.number in rows_of]
    return Progress(
        files_done=sum(len(shard.files) for shard in done),
        files=sum(len(shard.files) for shard in shards),
        bytes_done=sum(shard.size_bytes for shard in done),
        bytes=sum(shard.size_bytes for shard in shards),
        rows_done=sum(rows_of.values()),
    )


def spark_bar_quieter(spark: Any) -> Callable[[], None] | None:
    """Return a function that hides Spark's own progress bar for half a second; None if there is no bar.

    Spark decides at its start whether there is a bar. After ``finishAll`` the bar waits, as between two jobs.
    """
    if spark is None or not hasattr(spark, "_jsparkSession"):
        return None
    try:
        found = spark.sparkContext._jsc.sc().progressBar()
        return found.get().finishAll if found.isDefined() else None
    except Exception:
        return None  # the session has ended; other code reports it


class _Watching:
    def __init__(self, storage: Storage, plan: BuildPlan, shards: Sequence[Shard]) -> None:
        self._storage, self._shards = storage, shards
        self._prefix = f"segments/{plan.build_id}-"
        self._rows: dict[int, int] = {}

    def look(self) -> Progress:
        """Find new unit tables since the last call; the unit table is the last file of a segment."""
        for file in self._storage.list("segments"):
            if file.path.startswith(self._prefix) and file.path.endswith("/units.arrow"):
                shard = int(file.path.removeprefix(self._prefix).partition("-")[0])
                if shard not in self._rows:
                    table = pa.ipc.open_stream(pa.py_buffer(self._storage.read(file.path))).read_all()
                    self._rows[shard] = pc.sum(table["row_count"]).as_py() or 0
        return progress_of(self._shards, self._rows)
