"""One version of an index, open for questions."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from lakebloom.store.segments import Segment

if TYPE_CHECKING:
    from lakebloom.sbbf.kernels import BoolArray
    from lakebloom.storage import Storage
    from lakebloom.store.records import Entry
    from lakebloom.tables.files import TableFile


class Snapshot:
    """The segments of one version. Unit tables are read once and kept; tiles are read block by block."""

    def __init__(self, storage: Storage, entry: Entry) -> None:
        self.entry = entry
        self.storage = storage
        self.segments = [Segment(storage, record, entry.config) for record in entry.segments]

    @cached_property
    def files(self) -> dict[str, TableFile]:
        """Each file that the index knows, as it was when it was last indexed."""
        return {file.uri: file for segment in self.segments for file in segment.units.files}

    @cached_property
    def current(self) -> list[BoolArray]:
        """For each segment, the units that count: a file that was indexed again counts in the last segment only."""
        last: dict[str, int] = {}
        for number, segment in enumerate(self.segments):
            last.update(dict.fromkeys((file.uri for file in segment.units.files), number))
        return [
            np.array([last[file.uri] == number for file in segment.units.files], dtype=np.bool_)
            for number, segment in enumerate(self.segments)
        ]
