"""The files of one version of a table, as records and as columns, and the list of the next version made from it.

Versions of a large table differ by few files. What is known about the others is taken over, so that following a log
costs what is new, and little for each file that stays.
"""

from __future__ import annotations

from bisect import bisect_left
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from lakebloom.tables.file_columns import FileColumns
from lakebloom.tables.file_identity import TableFile

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

__all__ = ["FileList", "total_bytes"]

_FEW = 8
"""A list is made from another one if less than one file in so many differs. Otherwise sorting again is as quick."""


class FileList(list[TableFile]):
    """Files sorted by URI, each URI once. Nobody may change it: other lists and the columns are made from it."""

    @classmethod
    def of(cls, files: Iterable[TableFile]) -> FileList:
        """Return these files in their order."""
        return cls(sorted(files))

    @cached_property
    def columns(self) -> FileColumns:
        """The same files as columns."""
        return FileColumns.of(self)

    @cached_property
    def size_bytes(self) -> int:
        """The size of all files."""
        return int(self.columns.sizes.sum())

    def changed(self, added: Collection[TableFile], removed: Collection[TableFile]) -> FileList:
        """Return the list without some of its files, and with others. No URI may be there twice then."""
        if _FEW * (len(added) + len(removed)) >= len(self):
            without = set(removed)
            return FileList.of([*(file for file in self if file not in without), *added])
        gone, new = sorted(map(self._place, removed)), sorted(added)
        found = FileList(self)
        for place in reversed(gone):
            del found[place]
        places = [bisect_left(found, file) for file in new]
        for number, (place, file) in enumerate(zip(places, new, strict=True)):
            found.insert(place + number, file)
        if "columns" in self.__dict__:
            rows = np.insert(np.delete(np.arange(len(self)), gone), places, len(self) + np.arange(len(new)))
            found.__dict__["columns"] = FileColumns.concat([self.columns, FileColumns.of(new)]).take(rows)
        return found

    def _place(self, file: TableFile) -> int:
        place = bisect_left(self, file)
        if self[place : place + 1] != [file]:
            raise ValueError(f"{file.uri} is not in the list")
        return place


def total_bytes(files: Sequence[TableFile]) -> int:
    """Return the size of all these files."""
    return files.size_bytes if isinstance(files, FileList) else sum(file.size_bytes for file in files)
