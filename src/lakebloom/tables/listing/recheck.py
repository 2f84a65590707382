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
from typing import TYPE_CHECKING, Any

import numpy as np

from lakebloom.locks import new_lock
from lakebloom.storage.uri import to_local_path
from lakebloom.tables.file_identity import is_same, local_file
from lakebloom.tables.listing.inotify import Watch
from lakebloom.tuning import FEW_DIRECTORIES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakebloom.tables.file_identity import TableFile

    BoolArray = np.ndarray[Any, np.dtype[np.bool_]]

__all__ = ["Recheck"]


class Recheck:
    """Tells which of some files are not what they were. Files on other machines count as unchanged."""

    def __init__(self, files: Sequence[TableFile]) -> None:
        self._files = files
        self._lock = new_lock()
        self._directories: dict[str, dict[str, int]] | None = None
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
            self._directories = _by_directory(self._files)
        changed = np.zeros(len(self._files), dtype=np.bool_)
        above, by_name = _watched(self._directories)
        for directory in above:
            watch.enter(directory, is_root=directory in by_name)
        for directory, names in self._directories.items():
            changed[list(names.values())] = True
            try:
                watch.enter(directory, is_root=directory in by_name or os.path.islink(directory))  # noqa: PTH114
                with os.scandir(directory) as entries:
                    for entry in entries:
                        number = names.get(entry.name)
                        if number is not None:
                            changed[number] = self._differs(number, entry, watch)
            except OSError:
                watch.give_up()
        return changed

    def _differs(self, number: int, entry: os.DirEntry[str], watch: Watch) -> bool:
        try:
            status = entry.stat()
        except OSError:
            return True
        if status.st_nlink > 1 or entry.is_symlink():
            watch.give_up()  # it can be changed under its other name
        file = self._files[number]
        return not is_same(file, local_file(file.uri, status))


def _by_directory(files: Sequence[TableFile]) -> dict[str, dict[str, int]]:
    """Return the numbers of local files by directory and name."""
    found: dict[str, dict[str, int]] = {}
    for number, file in enumerate(files):
        if file.uri.startswith("file:"):
            directory, _, name = to_local_path(file.uri).rpartition("/")
            found.setdefault(directory or "/", {})[name] = number
    return found


def _watched(directories: dict[str, dict[str, int]]) -> tuple[set[str], set[str]]:
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
