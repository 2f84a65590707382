"""Files that somebody listed some time ago: which of them changed since.

Spark lists a table when a DataFrame is made, or when a catalog table is read first, and reads the files as they are
when a query runs. Files on this machine's disks are looked at again before they are skipped: one scan of their
directories at the first question, which then are under watch (``watch.py``), so that later ones cost microseconds.
Where directories cannot be watched, each question scans them.

Object stores and file systems that only Hadoop reaches would have to be asked over the network, at each planning of a
query. They are not (docs/FILE_IDENTITY.md).
"""

from __future__ import annotations

import os
import stat
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from lakebloom.locks import new_lock
from lakebloom.storage.uri import to_local_path
from lakebloom.tables.file_columns import FileColumns, texts
from lakebloom.tables.file_identity import NS_PER_MS, local_tag
from lakebloom.tables.file_matching import Listing
from lakebloom.tables.listing.inotify import Watch
from lakebloom.tuning import FEW_DIRECTORIES

if TYPE_CHECKING:
    from collections.abc import Collection

    from lakebloom.tables.file_columns import FileRuns

    BoolArray = np.ndarray[Any, np.dtype[np.bool_]]

__all__ = ["Recheck"]

_NAME = attrgetter("name")


class Recheck:
    """Tells which of some files are not what they were. Files on other machines count as unchanged."""

    def __init__(self, files: FileRuns) -> None:
        self._files = files
        self._lock = new_lock()
        self._directories: dict[str, str] | None = None
        self._is_local: BoolArray = np.zeros(files.num_rows, dtype=np.bool_)
        self._known: tuple[Watch, BoolArray] | None = None

    def changed(self) -> BoolArray:
        """Return for each file whether it changed, or is not there, or cannot be looked at."""
        with self._lock:
            if self._known is not None and self._known[0].is_quiet():
                return self._known[1]
            self._known = None
            watch = Watch()
            changed = self._scanned(watch)
            changed.flags.writeable = False
            self._known = watch, changed
            return changed

    def _scanned(self, watch: Watch) -> BoolArray:
        if self._directories is None:
            self._directories = self._local_directories()
        above, by_name = _watched(self._directories)
        for directory in above:
            watch.enter(directory, is_root=directory in by_name)
        found = _Found()
        for directory, uri in self._directories.items():
            try:
                watch.enter(directory, is_root=directory in by_name or os.path.islink(directory))  # noqa: PTH114
                found.add(directory, uri)
            except OSError:
                watch.give_up()
        matched = found.listing().match(self._files.chunks(), self._files.num_rows)
        if np.append(found.linked, False)[matched.places].any():  # the last place is for files that are absent
            watch.give_up()  # a file that can be changed under its other name
        return self._is_local & ~matched.same

    def _local_directories(self) -> dict[str, str]:
        """Return the URI of each local directory, and note which files are local."""
        found: dict[str, str] = {}
        start = 0
        for run in self._files.chunks():
            uris = run.uris.to_pylist()
            local = [uri.startswith("file:") for uri in uris]
            self._is_local[start : start + run.num_rows] = local
            start += run.num_rows
            for uri in dict.fromkeys(uri[: uri.rfind("/") + 1] for uri, here in zip(uris, local, strict=True) if here):
                found[to_local_path(uri).rstrip("/") or "/"] = uri
        return found


class _Found:
    """Files on local disk, collected in columns: this takes most of the time that the first query waits."""

    def __init__(self) -> None:
        self._uris: list[str] = []
        self._states: list[os.stat_result] = []
        self.linked: list[bool] = []
        """For each file whether it may have another name."""

    def add(self, directory: str, uri: str) -> None:
        """Add the files of a directory in the order of their names. Raises OSError."""
        # By its descriptor: the path of the directory is then followed once, and not again for each file.
        descriptor = os.open(directory, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0))
        try:
            with os.scandir(descriptor) as entries:
                listed = sorted([entry for entry in entries if not entry.is_dir()], key=_NAME)
            for entry in listed:
                try:
                    state = entry.stat()
                except OSError:
                    continue
                if stat.S_ISREG(state.st_mode):
                    self._uris.append(uri + entry.name)
                    self._states.append(state)
                    self.linked.append(state.st_nlink > 1 or entry.is_symlink())
        finally:
            os.close(descriptor)

    def listing(self) -> Listing:
        """Return the files, each as ``local_file`` describes it."""
        count = len(self._states)
        sizes = np.fromiter((state.st_size for state in self._states), np.int64, count)
        times_ns = np.fromiter((state.st_mtime_ns for state in self._states), np.int64, count)
        tags = texts([local_tag(state) for state in self._states])
        columns = FileColumns(texts(self._uris), sizes, times_ns // NS_PER_MS, tags)
        return Listing(columns)


def _watched(directories: Collection[str]) -> tuple[set[str], set[str]]:
    """Return the directories above that are to be watched as well, and those of all that are looked at by name.

    A watch does not notice that a directory above was exchanged. Somebody has to, for every directory.
    """
    above: set[str] = set()
    level = set(directories)
    while len(level) > FEW_DIRECTORIES:
        parents = {os.path.dirname(directory) for directory in level}  # noqa: PTH120
        if len(parents) >= len(level):
            break
        above |= parents - set(directories)
        level = parents
    return above, level
