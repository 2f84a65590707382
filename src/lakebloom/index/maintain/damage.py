"""Finds damage in a version: reads and checks every file that it names.

A file that cannot be read at the moment does not count as damaged: its error is reported.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lakebloom.errors import IndexFormatError, StorageError
from lakebloom.index.snapshot import Snapshot
from lakebloom.store.files import read_blob
from lakebloom.store.global_filters import read_global
from lakebloom.store.segments import Segment
from lakebloom.store.tiles import TileReader

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakebloom.storage import Storage
    from lakebloom.store.records import Commit

__all__ = ["Damage", "examine"]


@dataclass(slots=True)
class Damage:
    """The damage of a version."""

    segments: set[str] = field(default_factory=set)
    """The ids of segments with a damaged or missing file."""
    global_filters: set[int] = field(default_factory=set)
    """The columns whose global filter is damaged or missing."""
    errors: list[IndexFormatError] = field(default_factory=list)
    unreadable: list[StorageError] = field(default_factory=list)
    """Errors of the store. They do not mean that files are damaged."""

    @contextmanager
    def noting(self) -> Iterator[None]:
        """Collect the errors of a block."""
        try:
            yield
        except IndexFormatError as error:
            self.errors.append(error)
        except StorageError as error:
            self.unreadable.append(error)

    def require_readable(self) -> None:
        """Raise the first error of the store."""
        if self.unreadable:
            raise self.unreadable[0]


def examine(storage: Storage, commit: Commit) -> Damage:
    """Read all files of a version."""
    damage = Damage()
    for record in commit.segments:
        known = len(damage.errors)
        for file in (*record.tables, *record.page_files):
            with damage.noting():
                read_blob(storage, file)
        if len(damage.errors) == known:
            with damage.noting():
                segment = Segment(storage, record, commit.config)
                segment.units.examine()
                if segment.pages is not None:
                    segment.pages.examine()
        for tile in record.tiles:
            for part in TileReader(storage, tile).parts:
                with damage.noting():
                    part.check()
        if len(damage.errors) > known:
            damage.segments.add(record.id)
    for found in commit.global_filters:
        known = len(damage.errors)
        with damage.noting():
            read_global(storage, found)
        if len(damage.errors) > known:
            damage.global_filters.add(found.column)
    with damage.noting():
        _ = Snapshot(storage, commit).partitions  # a refresh writes the list again
    return damage
