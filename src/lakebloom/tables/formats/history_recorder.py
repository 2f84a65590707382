"""Notes when files come and go while someone walks through the versions of a table, oldest first.

What changes is said before the version that has the change. A file is known by a key of the format: one that is there
under its key with other deletes is another file from then on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakebloom.tables.formats.table_history import RetainedFile

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakebloom.tables.formats.table_history import RetainedVersion
    from lakebloom.tables.formats.table_snapshot import DataFile

__all__ = ["HistoryRecorder"]


class HistoryRecorder:
    """The versions so far, and the files of all of them."""

    def __init__(self) -> None:
        self.versions: list[RetainedVersion] = []
        self._present: dict[str, tuple[DataFile, int]] = {}
        self._gone: list[RetainedFile] = []

    def put(self, key: str, file: DataFile) -> None:
        """Note that the next version has a file. Nothing changes if the last one had it, too."""
        known = self._present.get(key)
        if known is not None and known[0] == file:
            return
        if known is not None:
            self.drop(key, None)
        self._present[key] = file, len(self.versions)

    def drop(self, key: str, removed_ms: int | None) -> None:
        """Note that the next version does not have a file, and when it was removed, where that is known."""
        known = self._present.pop(key, None)
        if known is not None and known[1] < len(self.versions):
            self._gone.append(RetainedFile(known[0], known[1], len(self.versions) - 1, removed_ms))

    def replace(self, files: Mapping[str, DataFile], removed_ms: int | None) -> None:
        """Note all files of the next version; the time is when those were removed that it does not have."""
        for key in [key for key, (file, _) in self._present.items() if files.get(key) != file]:
            self.drop(key, removed_ms)
        for key, file in files.items():
            self.put(key, file)

    def finish_version(self, version: RetainedVersion) -> None:
        """Note the version that has these files."""
        self.versions.append(version)

    def files(self) -> tuple[RetainedFile, ...]:
        """Return all files, with the versions that have them; those of the newest one are the last."""
        last = len(self.versions) - 1
        return (*self._gone, *(RetainedFile(file, first, last, None) for file, first in self._present.values()))
