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
from lakebloom.index.build.plan import BuildPlan, FileGroup
from lakebloom.tuning import PROGRESS_INTERVAL_S

if TYPE_CHECKING:
    from lakebloom.storage import Storage


@contextmanager
def watch(
    storage: Storage, plan: BuildPlan, groups: Sequence[FileGroup], report: Callable[[Progress], None] | None
) -> Iterator[None]:
    """Call ``report`` at the start and whenever groups are finished. Without a callback, do nothing."""
    if report is None:
        yield
        return
    watching = _Watching(storage, plan, groups)
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
    report(progress_of(groups, {}))
    watcher.start()
    try:
        yield
    finally:
        stop.set()
        watcher.join()


def progress_of(groups: Sequence[FileGroup], rows_of: dict[int, int]) -> Progress:
    """Return the progress if the groups in ``rows_of`` are finished, with these numbers of rows."""
    done = [group for group in groups if group.number in rows_of]
    return Progress(
        files_done=sum(len(group.files) for group in done),
        files=sum(len(group.files) for group in groups),
        bytes_done=sum(group.size_bytes for group in done),
        bytes=sum(group.size_bytes for group in groups),
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
    def __init__(self, storage: Storage, plan: BuildPlan, groups: Sequence[FileGroup]) -> None:
        self._storage, self._groups = storage, groups
        self._prefix = f"segments/{plan.build_id}-"
        self._rows: dict[int, int] = {}

    def look(self) -> Progress:
        """Find new unit tables since the last call; the unit table is the last file of a segment."""
        for file in self._storage.list("segments"):
            if file.path.startswith(self._prefix) and file.path.endswith("/units.arrow"):
                group = int(file.path.removeprefix(self._prefix).partition("-")[0])
                if group not in self._rows:
                    table = pa.ipc.open_file(pa.py_buffer(self._storage.read(file.path))).read_all()
                    self._rows[group] = pc.sum(table["row_count"]).as_py() or 0
        return progress_of(self._groups, self._rows)
