"""A cache of checked batches of tables, with one memory limit for the process. The oldest batch goes first."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from lakebloom.locks import new_lock
from lakebloom.tuning import KEPT_BATCH_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

__all__ = ["kept_batch"]


class _Kept:
    """Parts by their table and number, the one that was used last at the end."""

    def __init__(self) -> None:
        self.lock = new_lock()
        self.start_anew()

    def start_anew(self) -> None:
        """Clear the cache, also in the child of a fork: another thread may have been changing it at that moment."""
        self._batches: dict[tuple[object, int], pa.RecordBatch] = {}
        self._size_bytes = 0

    def get(self, key: tuple[object, int]) -> pa.RecordBatch | None:
        with self.lock:
            batch = self._batches.pop(key, None)
            if batch is not None:
                self._batches[key] = batch
            return batch

    def put(self, key: tuple[object, int], batch: pa.RecordBatch) -> None:
        with self.lock:
            if key in self._batches:
                return
            self._batches[key] = batch
            self._size_bytes += batch.nbytes
            while self._size_bytes > KEPT_BATCH_BYTES and len(self._batches) > 1:
                oldest = next(iter(self._batches))
                self._size_bytes -= self._batches.pop(oldest).nbytes


_KEPT = _Kept()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_KEPT.start_anew)


def kept_batch(table: object, number: int, read: Callable[[], pa.RecordBatch]) -> pa.RecordBatch:
    """Return a batch of a table from the cache, or read it. Two threads may both read it."""
    batch = _KEPT.get((table, number))
    if batch is None:
        batch = read()
        _KEPT.put((table, number), batch)
    return batch
