"""One operation on an index: its id in file names, the time of its phases, its files until they are committed.

Imports little: ``Phases`` starts to count before the modules that it times are loaded.
"""

from __future__ import annotations

import time
import uuid
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lakebloom.errors import BuildFailedError, StorageError
from lakebloom.tuning import LISTED_PLACES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lakebloom.index.catalog import Index
    from lakebloom.store.records import Commit

__all__ = ["Phases", "discard", "discarding", "new_operation_id", "require_stored"]


def new_operation_id() -> str:
    """Return a prefix for the names of all files of one operation, so that it can delete them."""
    return uuid.uuid4().hex[:12]


@dataclass(slots=True)
class Phases:
    """How long each phase of an operation took. Together they are its whole time, from ``Phases()`` on."""

    seconds: dict[str, float] = field(default_factory=dict)
    clock: Callable[[], float] = time.perf_counter
    _counted_to_s: float = field(init=False)

    def __post_init__(self) -> None:
        self._counted_to_s = self.clock()

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Add the time of a block to a phase, and the time since the previous phase."""
        try:
            yield
        finally:
            now_s = self.clock()
            self.seconds[name] = self.seconds.get(name, 0.0) + now_s - self._counted_to_s
            self._counted_to_s = now_s


@contextmanager
def discarding(index: Index, operation_id: str) -> Iterator[None]:
    """Delete the files of an operation if its commit fails.

    Not after a StorageError or an interruption: the commit may have been stored nevertheless, and then its files must
    stay. Vacuum removes them if it was not.
    """
    try:
        yield
    except (StorageError, KeyboardInterrupt):
        raise
    except Exception:
        discard(index, operation_id)
        raise


def require_stored(index: Index, commit: Commit, base: Commit | None = None) -> Commit:
    """Return a commit that is about to be written. Raises BuildFailedError unless all its files exist.

    Files that ``base`` names are not checked. A vacuum removes files that no version names once they are older than
    its grace period: a build may have taken longer, or the clock of a store may have jumped.
    """
    known = frozenset[str]() if base is None else base.paths
    sizes = {file.path: file.size_bytes for file in commit.files if file.path not in known}
    folders = {path.rpartition("/")[0] for path in sizes}
    if len(folders) > LISTED_PLACES:
        folders = {folder.partition("/")[0] for folder in folders}
    stored = {file.path: file.size_bytes for folder in sorted(folders) for file in index.storage.list(folder)}
    for path, size_bytes in sizes.items():
        if stored.get(path) != size_bytes:
            raise BuildFailedError(
                f"cannot commit to index {index.name!r}: a file that was built for it is missing",
                found=f"{path} with {stored[path]} bytes instead of {size_bytes}" if path in stored else f"no {path}",
                hint="run it again; if a vacuum ran meanwhile, raise spark.lakebloom.vacuum.graceMs",
            )
    return commit


def discard(index: Index, operation_id: str, committed: Commit | None = None) -> bool:
    """Delete the uncommitted files of an operation; tell if there were any. Vacuum removes what cannot be deleted."""
    from lakebloom.store.records import FOLDERS  # imported here: see the module's docstring

    named = frozenset[str]() if committed is None else committed.paths
    with suppress(StorageError):
        written = [file.path for folder in FOLDERS for file in index.storage.list(folder)]
        partial = [path for path in written if f"/{operation_id}-" in path and path not in named]
        for path in partial:
            index.storage.delete(path)
        return bool(partial)
    return True
